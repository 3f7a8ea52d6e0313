package vsphere

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // tags
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/attempt"
	fakevcenter "github.com/drover-dev/drover/test/fakes/vcenter"
	"github.com/drover-dev/drover/test/patience"
)

const (
	user     = "drover@vsphere.local"
	password = "s3cret"
	vmUID    = "0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11"
	vmName   = "workers-abcde-1"
	template = "golden"
)

// A world is a simulated vCenter with a template, and a control plane with one
// VirtualMachine.
type world struct {
	t        *testing.T
	model    *simulator.Model
	server   *simulator.Server
	admin    *govmomi.Client
	finder   *find.Finder
	kube     client.Client
	reported *events
	clock    *clock
	waits    *waits
	control  *process

	mu       sync.Mutex
	password string         // that the vCenter accepts
	calls    map[string]int // by method, the test's own included
}

// A process of the provider: its memory ends with it.
type process struct {
	reconciler reconcile.Reconciler
	pool       *pool
	memory     *attempt.Memory[note]
}

type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// waits has the last delay that the client requested.
type waits struct{ last time.Duration }

func (w *waits) After(_ client.Object, d time.Duration) { w.last = d }

type events []event.Event

func (e *events) Event(_ runtime.Object, ev event.Event)   { *e = append(*e, ev) }
func (e *events) WithAnnotations(...string) event.Recorder { return e }

func newWorld(t *testing.T, change ...func(*simulator.Model)) *world {
	t.Helper()
	w := &world{t: t, model: simulator.VPX(), reported: &events{}, clock: &clock{}, waits: &waits{}, password: password}
	w.model.Autostart, w.model.Host, w.model.ClusterHost = false, 0, 1
	for _, c := range change {
		c(w.model)
	}
	if err := w.model.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Remove)
	w.model.Service.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	w.model.Service.RegisterEndpoints = true
	w.model.Service.Listen = &url.URL{Host: "127.0.0.1:0", User: url.UserPassword("root", "root")}
	w.model.Map().SessionManager().ValidLogin = func(l *types.Login) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return l.UserName == "root" || l.UserName == user && l.Password == w.password
	}
	w.calls = map[string]int{}
	w.model.Map().Handler = func(ctx *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls[m.Name]++
		return fakevcenter.Handle(ctx, m)
	}
	fakevcenter.KeepRules(w.model.Map())
	w.server = w.model.Service.NewServer()
	t.Cleanup(w.server.Close)

	ctx := t.Context()
	var err error
	if w.admin, err = govmomi.NewClient(ctx, w.server.URL, true); err != nil {
		t.Fatal(err)
	}
	w.finder = find.NewFinder(w.admin.Client)
	dc, err := w.finder.DefaultDatacenter(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.finder.SetDatacenter(dc)
	w.makeTemplate()
	w.makeKube()
	w.restart()
	return w
}

// makeTemplate turns one of the model's VMs into the template.
func (w *world) makeTemplate() {
	vm, err := w.finder.VirtualMachine(w.t.Context(), "DC0_C0_RP0_VM0")
	w.must(err)
	w.done(vm.Rename(w.t.Context(), template))
	w.must(vm.MarkAsTemplate(w.t.Context()))
}

func (w *world) makeKube() {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		w.must(add(s))
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pc.Spec.Server = w.server.URL.Host
	pc.Spec.InsecureSkipVerify = ptr.To(true)
	pc.Spec.Credentials.SecretRef = v1alpha1.SecretKeySelector{Namespace: "system", Name: "vcenter", Key: "credentials"}
	w.kube = fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(&v1alpha1.VirtualMachine{}).WithObjects(
		pc, credentialsSecret(password),
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "user-data"},
			Data:       map[string][]byte{"userData": []byte("#cloud-config")},
		},
	).Build()
}

func credentialsSecret(password string) *corev1.Secret {
	b, err := json.Marshal(map[string]string{"username": user, "password": password})
	if err != nil {
		panic(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "vcenter"}, Data: map[string][]byte{"credentials": b}}
}

// restart restarts the provider: its memory is lost.
func (w *world) restart() { w.control = w.start(w.reported, w.waits) }

// start starts a process of the provider.
func (w *world) start(record event.Recorder, again interface {
	After(client.Object, time.Duration)
}) *process {
	c := &process{pool: newPool(w.clock.now), memory: &attempt.Memory[note]{}}
	connect := &connector{kube: w.kube, pool: c.pool, shared: &shared{
		kube:   w.kube,
		record: record, again: again, memory: c.memory, now: w.clock.now,
	}}
	opts := append([]managed.ReconcilerOption{
		managed.WithTypedExternalConnector[*v1alpha1.VirtualMachine](connect),
		managed.WithManagementPolicies(),
		managed.WithRecorder(record),
	}, options()...)
	c.reconciler = managed.NewReconciler(&xpfake.Manager{Client: w.kube, Scheme: w.kube.Scheme()}, resource.ManagedKind(v1alpha1.VirtualMachineGroupVersionKind), opts...)
	return c
}

// create creates the VirtualMachine.
func (w *world) create(change ...func(*v1alpha1.VirtualMachineParameters)) {
	w.t.Helper()
	w.createAs(vmName, vmUID, change...)
}

// createAs creates a VirtualMachine with another name.
func (w *world) createAs(name string, uid k8stypes.UID, change ...func(*v1alpha1.VirtualMachineParameters)) {
	w.t.Helper()
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid}}
	vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "default"})
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	p := &vm.Spec.ForProvider
	p.Name, p.Template, p.Cluster = ptr.To(name), ptr.To(template), ptr.To("DC0_C0")
	p.CloneMode, p.PowerState = v1alpha1.CloneFull, v1alpha1.PowerOn
	p.GuestInfo = &v1alpha1.GuestInfo{Format: v1alpha1.FormatCloudInit, UserDataSecretRef: &xpv2.LocalSecretKeySelector{
		LocalSecretReference: xpv2.LocalSecretReference{Name: "user-data"}, Key: "userData",
	}}
	for _, c := range change {
		c(p)
	}
	w.must(w.kube.Create(w.t.Context(), vm))
}

var key = k8stypes.NamespacedName{Namespace: "ns", Name: vmName}

// get returns the VirtualMachine, nil if it is gone.
func (w *world) get() *v1alpha1.VirtualMachine {
	w.t.Helper()
	vm := &v1alpha1.VirtualMachine{}
	err := w.kube.Get(w.t.Context(), key, vm)
	if kerrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return vm
}

// change changes the VirtualMachine.
func (w *world) change(f func(*v1alpha1.VirtualMachine)) {
	w.t.Helper()
	vm := w.get()
	f(vm)
	w.must(w.kube.Update(w.t.Context(), vm))
}

func (w *world) delete() {
	w.t.Helper()
	w.must(w.kube.Delete(w.t.Context(), w.get()))
}

// reconcile reconciles once.
func (w *world) reconcile() {
	w.t.Helper()
	_, err := w.control.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	w.must(err)
}

// until reconciles until the condition holds.
func (w *world) until(what string, is func(*v1alpha1.VirtualMachine) bool) *v1alpha1.VirtualMachine {
	w.t.Helper()
	for end := time.Now().Add(patience.Limit()); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		w.reconcile()
		if vm := w.get(); is(vm) {
			return vm
		}
	}
	w.t.Fatalf("the VirtualMachine is never %s: %s, %s; last events %v", what, w.says(xpv2.TypeSynced), w.says(xpv2.TypeReady), (*w.reported)[max(0, len(*w.reported)-5):])
	return nil
}

func (w *world) untilReady() *v1alpha1.VirtualMachine {
	w.t.Helper()
	return w.until("ready", func(vm *v1alpha1.VirtualMachine) bool {
		return vm.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
	})
}

func (w *world) untilGone() {
	w.t.Helper()
	w.until("gone", func(vm *v1alpha1.VirtualMachine) bool { return vm == nil })
}

// The text of a condition.
func (w *world) says(t xpv2.ConditionType) string {
	w.t.Helper()
	vm := w.get()
	if vm == nil {
		return "gone"
	}
	c := vm.GetCondition(t)
	return string(c.Type) + "=" + string(c.Status) + " " + string(c.Reason) + ": " + c.Message
}

// clones returns all VMs in the vCenter with the name, or the instance UUID, of the test's VM.
func (w *world) clones() []mo.VirtualMachine {
	w.t.Helper()
	var out []mo.VirtualMachine
	vms, err := w.finder.VirtualMachineList(w.t.Context(), "*")
	w.must(err)
	for _, vm := range vms {
		var o mo.VirtualMachine
		w.must(vm.Properties(w.t.Context(), vm.Reference(), nil, &o))
		if o.Name == vmName || o.Config.InstanceUuid == vmUID {
			out = append(out, o)
		}
	}
	return out
}

// clone returns the only clone.
func (w *world) clone() mo.VirtualMachine {
	w.t.Helper()
	vms := w.clones()
	if len(vms) != 1 {
		w.t.Fatalf("%d VMs, want 1", len(vms))
	}
	return vms[0]
}

func (w *world) vm(name string) *object.VirtualMachine {
	w.t.Helper()
	vm, err := w.finder.VirtualMachine(w.t.Context(), name)
	w.must(err)
	return vm
}

// edit changes the simulator's object of the test's VM.
func (w *world) edit(f func(*simulator.VirtualMachine)) {
	w.t.Helper()
	ctx := w.model.Service.Context
	vm := ctx.Map.Get(w.clone().Self).(*simulator.VirtualMachine)
	ctx.WithLock(vm, func() { f(vm) })
}

// fault makes calls of a method fail this number of times; 0 is always.
func (w *world) fault(method string, f types.BaseMethodFault, times int) {
	w.model.Service.AddFaultRule(&simulator.FaultInjectionRule{
		MethodName: method, ObjectType: "*", ObjectName: "*", Probability: 1,
		FaultType: simulator.FaultTypeCustom, Fault: f, MaxCount: times, Enabled: true,
	})
}

// called returns how often a method was called.
func (w *world) called(method string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[method]
}

// A templateVM runs another function when it is cloned.
type templateVM struct {
	*simulator.VirtualMachine
	clone func(ctx *simulator.Context, req *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault
}

func (vm *templateVM) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	return vm.clone(ctx, req, func() soap.HasFault { return vm.VirtualMachine.CloneVMTask(ctx, req) })
}

// whenCloned sets the function that runs when the template is cloned.
func (w *world) whenCloned(clone func(ctx *simulator.Context, req *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault) {
	w.t.Helper()
	m := w.model.Service.Context.Map
	vm := m.Get(w.vm(template).Reference()).(*simulator.VirtualMachine)
	m.Put(&templateVM{VirtualMachine: vm, clone: clone})
	w.t.Cleanup(func() { m.Put(vm) })
}

// loseFirstClone loses the response to the first request for a clone, which takes effect. It returns the number of
// requests so far.
func (w *world) loseFirstClone() *int {
	n := 0
	w.whenCloned(func(_ *simulator.Context, _ *types.CloneVM_Task, original func() soap.HasFault) soap.HasFault {
		body := original()
		if n++; n == 1 {
			return &methods.CloneVM_TaskBody{Fault_: simulator.Fault("the connection broke", &types.HostCommunication{})}
		}
		return body
	})
	return &n
}

// slowClones makes clones take this number of milliseconds.
func slowClones(t *testing.T, ms int) {
	t.Helper()
	simulator.TaskDelay.MethodDelay = map[string]int{"CloneVm": ms, "LockHandoff": 0}
	t.Cleanup(func() { simulator.TaskDelay.MethodDelay = nil })
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// done waits for a task that the test started.
func (w *world) done(task *object.Task, err error) {
	w.t.Helper()
	w.must(err)
	w.must(task.Wait(context.WithoutCancel(w.t.Context())))
}
