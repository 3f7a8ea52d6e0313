package simulator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	localv1alpha1 "github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/reboot"
	"github.com/drover-dev/drover/internal/schematest"
)

// TestRepairs has pools with the defaults of the schema and with profiles of health. Their Nodes lose devices and kubelets,
// clouds refuse or ignore reboots, and users request reboots, roll, scale, freeze and delete meanwhile. The controllers and the
// providers of VMs are killed between any two writes, and continue with caches from before. At each moment the bounds of the
// pool and the budget of replacements must hold, and no VM may be rebooted twice for one request. In the end each Machine
// must be repaired or replaced, or the pool must report that too many are unhealthy.
func TestRepairs(t *testing.T) {
	spec := defaultSpec(t)
	checkSome(t, "rebooted", func(t *rapid.T) int { return repairs(t, *spec.DeepCopy()) })
}

// defaultSpec is that of a MachineDeployment with only the required fields, and profiles of health.
func defaultSpec(t *testing.T) machinev1alpha1.MachineDeploymentSpec {
	t.Helper()
	object := map[string]any{}
	for _, err := range []error{
		yaml.Unmarshal([]byte(`
apiVersion: machine.drover.dev/v1alpha1
kind: MachineDeployment
metadata: {name: md, namespace: default}
spec:
  selector: {matchLabels: {pool: a}}
  template:
    metadata: {labels: {pool: a}}
    spec:
      classRef: {name: small}
      version: v1.0.0
      health: {profiles: [kubelet-v1, nvidia-v1]}
`), &object), schematest.Load(t, "../../../apis/machine/xrds/machine.drover.dev_machinedeployments.yaml").Validate(object, nil).ToAggregate(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	md := &machinev1alpha1.MachineDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, md); err != nil {
		t.Fatal(err)
	}
	if r := md.Spec.Remediation; r.MaxUnhealthy == nil || r.MaxUnhealthy.String() != machinev1alpha1.DefaultMaxUnhealthy || budgetOf(md) != machinev1alpha1.DefaultMaxInFlight {
		t.Fatalf("the schema has other defaults: %+v", r)
	}
	return md.Spec
}

// repairs returns the number of reboots that the cloud carried out.
func repairs(t *rapid.T, spec machinev1alpha1.MachineDeploymentSpec) int {
	spec.Replicas = rapid.Int32Range(1, 6).Draw(t, "replicas")
	cloud := Cloud{ID: 30 * time.Second, Boot: 4 * time.Minute, Drain: time.Minute, GPUs: 8}
	cloud.Reboot = time.Duration(rapid.IntRange(0, 4).Draw(t, "minutes of a reboot")) * time.Minute
	w := NewWorld(spec, cloud)
	p := newRebootProvider(t, w)
	w.Provide = p.reconcile
	w.OnTick = func() { checkReboots(t, w) }
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("the pool does not start:\n%s", w)
	}
	if rapid.Bool().Draw(t, "processes are killed") {
		p.kills = func() bool { return rapid.IntRange(0, 9).Draw(t, "killed") == 9 }
		w.Kill = p.kills
		w.Crash = func() bool { return rapid.IntRange(0, 19).Draw(t, "crash") == 19 }
	}
	for range rapid.IntRange(1, 8).Draw(t, "steps") {
		breakSomething(t, w)
		w.Run(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
	}
	w.Kill, w.Crash, p.kills = nil, func() bool { return false }, never
	w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Labels = nil })
	for n := 0; !w.RunUntil(48*time.Hour, w.Settled); n++ {
		deleteAsReported(t, w, n)
	}
	if len(w.Violations) > 0 {
		t.Fatalf("%s\n%s", w.Violations[0], w)
	}
	return p.done
}

func never() bool { return false }

// breakSomething takes one action of a cloud, a Node or a user.
func breakSomething(t *rapid.T, w *World) {
	name := ""
	if ms := w.Machines(); len(ms) > 0 {
		name = ms[rapid.IntRange(0, len(ms)-1).Draw(t, "machine")].Name
	}
	switch rapid.IntRange(0, 12).Draw(t, "what") {
	case 0, 1, 2:
		w.LoseGPU(name, rapid.IntRange(1, 3).Draw(t, "reboots that cure it"))
	case 3, 4:
		w.BreakKubelet(name, rapid.IntRange(1, 3).Draw(t, "reboots that cure it"))
	case 5:
		w.LoseVM(name)
	case 6, 7:
		// There are few IDs, so that users repeat them.
		id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "ID")
		w.Change(name, func(m *machinev1alpha1.Machine) {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[machinev1alpha1.AnnotationReboot] = id
		})
	case 8:
		w.Change(name, func(m *machinev1alpha1.Machine) { delete(m.Annotations, machinev1alpha1.AnnotationReboot) })
	case 9:
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.Version = rapid.SampledFrom([]string{"v1.0.0", "v1.1.0"}).Draw(t, "version")
		})
	case 10:
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Replicas = rapid.Int32Range(1, 6).Draw(t, "replicas")
		})
	case 11:
		w.DeleteByUser(name)
	case 12:
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			if d.Labels = nil; rapid.Bool().Draw(t, "frozen") {
				d.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
			}
		})
	}
	w.touch()
}

// checkReboots checks that no more Machines reboot by their health than the budget allows. It does not limit users.
func checkReboots(t *rapid.T, w *World) {
	byHealth := 0
	for _, m := range w.Machines() {
		if r := m.Status.Reboot; m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRebooting && r.ByHealth != "" {
			byHealth++
		}
	}
	if most := w.budget(); byHealth > most {
		t.Fatalf("the health of %d Machines reboots them, of at most %d:\n%s", byHealth, most, w)
	}
}

// deleteAsReported deletes an unhealthy Machine of a pool that is at rest and not complete, as a user does: the pool must report
// that too many Machines are unhealthy. The limit does not hold users.
func deleteAsReported(t *rapid.T, w *World, n int) {
	d := w.Deployment()
	c := meta.FindStatusCondition(d.Status.Conditions, machinev1alpha1.ConditionRemediationAllowed)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != machinev1alpha1.ReasonTooManyUnhealthy || n > 20 {
		t.Fatalf("a Machine is neither repaired nor replaced, and RemediationAllowed is %+v:\n%s", c, w)
	}
	unhealthy, first := 0, ""
	for _, m := range w.Machines() {
		if p := m.Status.Phase; m.DeletionTimestamp == nil && (p == machinev1alpha1.MachineUnknown || p == machinev1alpha1.MachineFailed) {
			if unhealthy++; first == "" {
				first = m.Name
			}
		}
	}
	// 40 %, rounded up.
	if limit := (int(d.Spec.Replicas)*2 + 4) / 5; unhealthy <= limit {
		t.Fatalf("%d Machines are unhealthy, of at most %d, and none is repaired or replaced:\n%s", unhealthy, limit, w)
	}
	w.DeleteByUser(first)
	w.wake()
}

// A rebootProvider carries out requests with the code of the providers.
type rebootProvider struct {
	t     *rapid.T
	w     *World
	kills func() bool
	// killed means that the process was killed in this reconcile.
	killed bool
	vms    map[string]*vmResource
	// done counts the reboots that the cloud carried out, and for which requests.
	done     int
	requests map[string]bool
	// boots are the boots that the Node had reported when the cloud first rebooted the VM for an ID.
	boots map[string]int
}

func newRebootProvider(t *rapid.T, w *World) *rebootProvider {
	return &rebootProvider{t: t, w: w, kills: never, vms: map[string]*vmResource{}, requests: map[string]bool{}, boots: map[string]int{}}
}

// untilWithdrawn is the time within which a controller that is killed a few times has withdrawn a request that was proven.
const untilWithdrawn = 30 * time.Second

// errThrottled is a refusal without effect.
var errThrottled = errors.New("slow down")

// errKilled is the result of each call of a process that is killed.
var errKilled = errors.New("killed")

// reconcile the VM resource of a Machine, from a cache that may be older than the last writes, as after a restart. A process
// that is killed, or whose reconcile failed, tries again.
func (p *rebootProvider) reconcile(name string) {
	request, exists := p.w.Asked(name)
	if !exists {
		return
	}
	vm := p.vms[name]
	if vm == nil {
		vm = &vmResource{kills: p.isKilled}
		vm.write(&localv1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		p.vms[name] = vm
	}
	vm.request(request)
	seen := vm.cached(rapid.IntRange(0, 3).Draw(p.t, "writes that the cache lacks"))
	p.killed = false
	err := p.carryOut(name, seen, vm)
	vm.setStatus(seen)
	if _, open := reboot.Requested(vm.last()); open || err != nil {
		p.w.In(10*time.Second, func() { p.reconcile(name) })
	}
	p.w.Reported(name, vm.report())
}

// isKilled reports whether the process is killed now. Nothing that it does after that has an effect.
func (p *rebootProvider) isKilled() bool {
	p.killed = p.killed || p.kills()
	return p.killed
}

func (p *rebootProvider) carryOut(name string, seen *localv1alpha1.VirtualMachine, kube client.Client) error {
	request := seen.Annotations[machinev1alpha1.AnnotationReboot]
	return reboot.CarryOut(context.Background(), seen, kube, func(_ context.Context, mode machinev1alpha1.RebootMode) error {
		if p.isKilled() {
			return errKilled
		}
		err := p.call(name, request, mode)
		if p.isKilled() {
			return errKilled
		}
		return err
	}, func(err error) bool { return errors.Is(err, errThrottled) })
}

// call the cloud. An operating system that hangs ignores a soft reboot.
func (p *rebootProvider) call(name, request string, mode machinev1alpha1.RebootMode) error {
	switch answer := rapid.SampledFrom([]string{"", "", "", "", "ignores", "refuses", "throttles"}).Draw(p.t, "answer"); {
	case answer == "throttles":
		return errThrottled
	case answer == "refuses":
		return errors.New("no guest tools")
	case answer == "ignores" && mode == machinev1alpha1.RebootSoft:
		return nil
	}
	if p.done++; p.requests[name+" "+request] {
		p.t.Fatalf("%s is rebooted twice for %s", name, request)
	}
	p.requests[name+" "+request] = true
	_, id, _ := machinev1alpha1.ParseRebootRequest(request)
	v, key := p.w.vms[name], name+" "+id
	if boots, again := p.boots[key]; again && boots != v.bootID && v.node == "True" && p.w.Now.Sub(v.nodeSince) > untilWithdrawn {
		p.t.Fatalf("%s is rebooted again for ID %s, %s after its Node has proven it", name, id, p.w.Now.Sub(v.nodeSince))
	} else if !again {
		p.boots[key] = v.bootID
	}
	p.w.RebootVM(name)
	return nil
}

// A vmResource is a VM resource in the API server, with its earlier states.
type vmResource struct {
	client.Client
	log   []*localv1alpha1.VirtualMachine
	kills func() bool
}

func (r *vmResource) last() *localv1alpha1.VirtualMachine { return r.log[len(r.log)-1].DeepCopy() }

// cached returns the resource as a cache has it that lacks the last writes.
func (r *vmResource) cached(lacks int) *localv1alpha1.VirtualMachine {
	return r.log[max(0, len(r.log)-1-lacks)].DeepCopy()
}

func (r *vmResource) write(vm *localv1alpha1.VirtualMachine) {
	vm.ResourceVersion = strconv.Itoa(len(r.log) + 1)
	r.log = append(r.log, vm.DeepCopy())
}

// request as the controller of the Machine does.
func (r *vmResource) request(value string) {
	vm := r.last()
	if vm.Annotations[machinev1alpha1.AnnotationReboot] == value {
		return
	}
	vm.Annotations = maps.Clone(vm.Annotations)
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[machinev1alpha1.AnnotationReboot] = value
	r.write(vm)
}

func (r *vmResource) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	r.last().DeepCopyInto(o.(*localv1alpha1.VirtualMachine))
	return nil
}

// Update of all but the status, if the object is the last one.
func (r *vmResource) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	if r.kills() {
		return errKilled
	}
	vm, now := o.(*localv1alpha1.VirtualMachine), r.last()
	if vm.ResourceVersion != now.ResourceVersion {
		return kerrors.NewConflict(schema.GroupResource{Resource: "virtualmachines"}, vm.Name, fmt.Errorf("it is %s", now.ResourceVersion))
	}
	now.Annotations = maps.Clone(vm.Annotations)
	r.write(now)
	if r.kills() {
		return errKilled
	}
	r.last().DeepCopyInto(vm)
	return nil
}

// setStatus as the reconciler of managed resources does at the end of a reconcile.
func (r *vmResource) setStatus(vm *localv1alpha1.VirtualMachine) {
	now := r.last()
	if vm.ResourceVersion != now.ResourceVersion || equal(vm.Status, now.Status) || r.kills() {
		return
	}
	vm.Status.DeepCopyInto(&now.Status)
	r.write(now)
}

// report as the step infrastructure reads it.
func (r *vmResource) report() plan.RebootReport {
	vm := r.last()
	out, c := plan.RebootReport{Begun: vm.Annotations[machinev1alpha1.AnnotationRebooted]}, vm.GetCondition(machinev1alpha1.ConditionRebooted)
	request, message, _ := strings.Cut(c.Message, ": ")
	switch c.Status {
	case corev1.ConditionFalse:
		out.Refused, out.Message = request, message
	case corev1.ConditionUnknown:
		out.Delayed, out.Message = request, message
	}
	return out
}
