package simulator

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
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
	// applied are the annotations that the controller applied last.
	applied map[string]string
}

// apply writes what the controller desires of a resource that exists, as a server-side apply does: it removes the annotations that
// the controller applied before, and no longer desires. It returns false if that changes nothing.
func (r *typedResource) apply(desired *unstructured.Unstructured) bool {
	next := r.present().DeepCopy()
	annotations := next.GetAnnotations()
	for k := range r.applied {
		delete(annotations, k)
	}
	r.applied = desired.GetAnnotations()
	maps.Copy(annotations, r.applied)
	next.SetAnnotations(annotations)
	next.Object["spec"] = desired.DeepCopy().Object["spec"]
	if equality.Semantic.DeepEqual(next.Object, r.present().Object) {
		return false
	}
	r.seenByController = r.write(next)
	return true
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

// deletionOfVM is the time that the cloud takes to delete a VM.
const deletionOfVM = 3 * time.Second

func (r *typedResource) find(id string) *cloudVM {
	i := slices.IndexFunc(r.cloud, func(c *cloudVM) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return r.cloud[i]
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
