package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	planvm "github.com/drover-dev/drover/internal/plan/vm"
)

// InstanceTypes of the class in a World. Then each Machine has a VM resource, which the planner of VMs plans, and a
// provider that creates and deletes its VM as crossplane-runtime does.
type InstanceTypes struct {
	// Names of the instance types, in their order.
	Names []string
	// Refused are the error codes with which the cloud refuses instance types, by their names.
	Refused map[string]string
	// Accepts, if it is set, reports whether the cloud accepts a VM of an instance type that it has no room for. Such a VM
	// fails after the time ID of the cloud.
	Accepts func() bool
	// Lag, if it is set, is by how many of its last versions the view of a VM resource lags. A view never lags behind the
	// writes of its own process.
	Lag func() int
	// KillProvider, if it is set, reports whether the provider is killed before its next write.
	KillProvider func() bool
	// OnRequest is called before the cloud is called to create a VM of an instance type.
	OnRequest func(machine, instanceType string)
	// OnRefusal is called when a VM resource shows that its VM is refused or failed.
	OnRefusal func(machine, instanceType string)
}

// A cloudVM is a VM at the cloud.
type cloudVM struct {
	id, instanceType string
	fails            string // the code of the error with which it fails
	running, failed  bool
	deleting         bool
}

// A typedResource is the VM resource of a Machine, with its versions.
type typedResource struct {
	versions []*unstructured.Unstructured // the last one is the present one; nil means that there is none
	// seenByController and seenByProvider are the lowest versions that the caches of these processes can have: those that
	// they wrote or saw last.
	seenByController, seenByProvider int
	uids                             int
	calling                          bool
	cloud                            []*cloudVM
	ids                              int
	bootBegan                        bool
}

func (r *typedResource) present() *unstructured.Unstructured {
	if len(r.versions) == 0 {
		return nil
	}
	return r.versions[len(r.versions)-1]
}

func (r *typedResource) write(u *unstructured.Unstructured) int {
	if u != nil {
		u = u.DeepCopy()
		u.SetResourceVersion(strconv.Itoa(len(r.versions) + 1))
	}
	r.versions = append(r.versions, u)
	return len(r.versions) - 1
}

// view returns a version of the resource that a cache may have, and never one that is older than the last one. The watch wakes
// the process when the cache has the present one.
func (w *World) view(r *typedResource, lowest *int, wake func(time.Duration)) *unstructured.Unstructured {
	if len(r.versions) == 0 {
		return nil
	}
	at := len(r.versions) - 1
	if lag := w.InstanceTypes.Lag; lag != nil {
		at = max(*lowest, at-lag())
	}
	*lowest = at
	if at < len(r.versions)-1 {
		wake(time.Second)
	}
	return r.versions[at]
}

const errorOfCreation = "create failed: "

// bindingOfTypes binds the VM resources of a World.
var bindingOfTypes = sync.OnceValue(func() *planvm.Binding {
	in := &fn.Infrastructure{
		Provider: "local",
		VirtualMachine: fn.VirtualMachineBinding{
			APIVersion: "local.drover.dev/v1alpha1", Kind: "VirtualMachine", InstanceTypePath: "spec.forProvider.size",
			Fields: []fn.FieldBinding{{Path: "spec.forProvider.name", Value: "name"}},
		},
		Status: fn.StatusBinding{ProviderID: `vm.status.?id.orValue("")`, Failed: `vm.status.?failed.orValue("")`},
	}
	for _, code := range []fn.ErrorCode{fn.ErrorCapacityExhausted, fn.ErrorQuotaExceeded, fn.ErrorInvalidRequest} {
		in.Status.ErrorClasses = append(in.Status.ErrorClasses, fn.ErrorClass{Code: code, Match: string(code)})
	}
	b, err := planvm.Bind(in)
	if err != nil {
		panic(err)
	}
	return b
})

// resourceOf a Machine's VM.
func (v *vm) resourceOf() *typedResource {
	if v.resource == nil {
		v.resource = &typedResource{}
	}
	return v.resource
}

// planVM plans the VM resource of a Machine.
func (w *World) planVM(m *machinev1alpha1.Machine, v *vm) (planvm.Desired, *unstructured.Unstructured) {
	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = m.Spec.ClassRef.Name, "local"
	for _, name := range w.InstanceTypes.Names {
		class.Spec.InstanceTypes = append(class.Spec.InstanceTypes, machinev1alpha1.InstanceType{Name: name})
	}
	o := planvm.Observed{
		Now: w.Now, Machine: m, RawMachine: map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}, Class: class, Installation: "installation",
		Bootstrap: plan.Bootstrap{SecretName: m.Name + "-user-data", Key: "userData"}, UserData: "#cloud-config\n",
	}
	r := v.resourceOf()
	seen := w.view(r, &r.seenByController, func(d time.Duration) { w.enqueueMachine(m.Name, d) })
	if seen != nil {
		o.VM = &plan.Object{Unstructured: seen}
	}
	return planvm.Plan(bindingOfTypes(), nil, o), seen
}

// launch does with the VM resource of a Machine what its controller does after the status is written.
func (w *World) launch(name string, v *vm, d planvm.Desired, seen *unstructured.Unstructured) {
	r := v.resourceOf()
	is := r.present()
	switch {
	case seen == nil && d.VM != nil:
		if is != nil {
			return // The API server refuses it, or merges what is the same.
		}
		made := d.VM.DeepCopy()
		r.uids++
		made.SetUID(types.UID(fmt.Sprintf("%s-%d", name, r.uids)))
		made.SetFinalizers([]string{plan.FinalizerManaged})
		r.seenByController = r.write(made)
		w.enqueueProvider(name, reaction)
	case seen == nil || d.Word.Discard != seen.GetUID() || is == nil || is.GetUID() != seen.GetUID():
	case is.GetDeletionTimestamp() == nil && is.GetResourceVersion() != seen.GetResourceVersion():
		w.enqueueMachine(name, reaction) // A conflict.
	case is.GetDeletionTimestamp() == nil:
		next := is.DeepCopy()
		now := metav1.NewTime(w.Now)
		next.SetDeletionTimestamp(&now)
		r.seenByController = r.write(next)
		w.enqueueProvider(name, reaction)
	}
}

func (w *World) enqueueProvider(name string, d time.Duration) {
	w.enqueue("provider/"+name, d, func() { w.provideVM(name) })
}

// isProviderKilled enqueues the reconcile of the provider's next start.
func (w *World) isProviderKilled(name string) bool {
	if kill := w.InstanceTypes.KillProvider; kill == nil || !kill() {
		return false
	}
	w.enqueueProvider(name, restartOfController)
	return true
}

// provideVM is a reconcile of crossplane-runtime.
func (w *World) provideVM(name string) {
	v := w.vms[name]
	if v == nil || v.leaving || v.resource == nil || v.resource.calling {
		return
	}
	r := v.resource
	seen := w.view(r, &r.seenByProvider, func(d time.Duration) { w.enqueueProvider(name, d) })
	if seen == nil {
		return
	}
	// update writes the resource, unless it changed since it was read.
	update := func(change func(*unstructured.Unstructured)) bool {
		is := r.present()
		if is == nil || is.GetResourceVersion() != seen.GetResourceVersion() {
			w.enqueueProvider(name, time.Second)
			return false
		}
		next := is.DeepCopy()
		change(next)
		r.seenByProvider = r.write(next)
		seen = r.present()
		w.enqueueMachine(name, reaction)
		return true
	}
	if meta.ExternalCreateIncomplete(seen) {
		if seen.GetDeletionTimestamp() == nil && conditionMessage(seen) == "" || !strings.Contains(conditionMessage(seen), "cannot determine") {
			update(func(u *unstructured.Unstructured) { setSynced(u, "cannot determine creation result") })
		}
		return
	}
	found := r.find(meta.GetExternalName(seen))
	switch {
	case seen.GetDeletionTimestamp() != nil && found != nil:
		w.deleteVM(name, r, found)
	case seen.GetDeletionTimestamp() != nil:
		if is := r.present(); is != nil && is.GetUID() == seen.GetUID() {
			r.seenByProvider = r.write(nil)
			w.enqueueMachine(name, reaction)
		}
	case found == nil && meta.GetExternalName(seen) == "":
		w.createVM(name, v, update, func() *unstructured.Unstructured { return seen })
	case found != nil:
		update(func(u *unstructured.Unstructured) {
			setSynced(u, "")
			status, _ := u.Object["status"].(map[string]any)
			status["id"] = "local:///zone/" + found.id
			if found.failed {
				status["failed"] = found.fails
				if f := w.InstanceTypes.OnRefusal; f != nil {
					f(name, found.instanceType)
				}
			}
			if found.running {
				setReady(u)
			}
		})
	}
}

// createVM records the begin of a creation, calls the cloud, and records the result.
func (w *World) createVM(name string, v *vm, update func(func(*unstructured.Unstructured)) bool, seen func() *unstructured.Unstructured) {
	r := v.resource
	if failed := meta.GetExternalCreateFailed(seen()); !failed.IsZero() && w.Now.Before(failed.Add(time.Second)) {
		w.enqueueProvider(name, time.Second) // The times in the annotations have whole seconds.
		return
	}
	if w.isProviderKilled(name) || !update(func(u *unstructured.Unstructured) { meta.SetExternalCreatePending(u, w.Now) }) {
		return
	}
	instanceType, _, _ := unstructured.NestedString(seen().Object, "spec", "forProvider", "size")
	if w.isProviderKilled(name) {
		return
	}
	if f := w.InstanceTypes.OnRequest; f != nil {
		f(name, instanceType)
	}
	r.calling = true
	code := w.InstanceTypes.Refused[instanceType]
	var made *cloudVM
	if code == "" || w.InstanceTypes.Accepts != nil && w.InstanceTypes.Accepts() {
		r.ids++
		made = &cloudVM{id: fmt.Sprintf("%s-%d", name, r.ids), instanceType: instanceType, fails: code}
		r.cloud = append(r.cloud, made)
		w.boot(name, v, made)
	}
	w.In(reaction, func() {
		r.calling = false
		if w.vms[name] != v || v.leaving || w.isProviderKilled(name) {
			return
		}
		// The annotations are written also if the resource changed, and then its status, unless it did.
		is := r.present()
		next := is.DeepCopy()
		if made != nil {
			meta.SetExternalName(next, made.id)
			meta.SetExternalCreateSucceeded(next, w.Now)
		} else {
			meta.SetExternalCreateFailed(next, w.Now)
		}
		r.seenByProvider = r.write(next)
		w.enqueueMachine(name, reaction)
		w.enqueueProvider(name, time.Second)
		if made != nil || w.isProviderKilled(name) {
			return
		}
		next = r.present().DeepCopy()
		setSynced(next, errorOfCreation+code)
		r.seenByProvider = r.write(next)
		if f := w.InstanceTypes.OnRefusal; f != nil {
			f(name, instanceType)
		}
		w.enqueueProvider(name, providerRetries)
	})
	w.wake()
}

// boot a VM in the cloud, or let it fail.
func (w *World) boot(name string, v *vm, c *cloudVM) {
	id, boot, _ := w.Cloud.Latencies(v.n)
	w.In(id, func() {
		if c.deleting || v.leaving {
			return
		}
		if c.failed = c.fails != ""; !c.failed {
			c.running = true
			w.In(boot, func() {
				if !c.deleting && !v.leaving && !w.Cloud.NoJoin {
					v.node, v.nodeSince = "True", w.Now
					w.enqueueMachine(name, reaction)
				}
			})
		}
		w.enqueueProvider(name, reaction)
	})
}

// deletionOfVM is the time that the cloud takes to delete a VM.
const deletionOfVM = 3 * time.Second

func (w *World) deleteVM(name string, r *typedResource, c *cloudVM) {
	if c.deleting {
		return
	}
	c.deleting = true
	w.In(deletionOfVM, func() {
		r.cloud = slices.DeleteFunc(r.cloud, func(o *cloudVM) bool { return o == c })
		w.enqueueProvider(name, reaction)
	})
}

func (r *typedResource) find(id string) *cloudVM {
	i := slices.IndexFunc(r.cloud, func(c *cloudVM) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return r.cloud[i]
}

// VMs returns the instance types of the VMs that the cloud has for a Machine, those that are being deleted included.
func (w *World) VMs(name string) []string {
	v := w.vms[name]
	if v == nil || v.resource == nil {
		return nil
	}
	var out []string
	for _, c := range v.resource.cloud {
		out = append(out, c.instanceType)
	}
	return out
}

func setSynced(u *unstructured.Unstructured, message string) {
	status := "False"
	if message == "" {
		status = "True"
	}
	setCondition(u, "Synced", status, message)
}

func setReady(u *unstructured.Unstructured) { setCondition(u, "Ready", "True", "") }

func setCondition(u *unstructured.Unstructured, typ, status, message string) {
	of, ok := u.Object["status"].(map[string]any)
	if !ok {
		of = map[string]any{}
		u.Object["status"] = of
	}
	list, _ := of["conditions"].([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(c any) bool { return c.(map[string]any)["type"] == typ }) //nolint:forcetypeassert // Nothing else is in it.
	of["conditions"] = append(list, map[string]any{"type": typ, "status": status, "reason": "Any", "message": message})
}

func conditionMessage(u *unstructured.Unstructured) string {
	return plan.SyncErrorOf(plan.Object{Unstructured: u})
}
