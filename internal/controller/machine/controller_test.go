package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/drain"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/target"
)

// living returns a world with a Machine that has just been created.
func living(t *testing.T) *world {
	t.Helper()
	m := aMachine(false)
	m.SetFinalizers(nil)
	m.Spec.Version, m.Status = "v1.35.4", v1alpha1.MachineStatus{}
	w := newWorld(t, m, aClass(), revision("machine-cloud", 1))
	w.script = drover(t)
	return w
}

func (w *world) server() *unstructured.Unstructured {
	w.t.Helper()
	return w.get(vmKind, names.OfMachine("m", "uid-m"))
}

func (w *world) servers() int {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(vmKind.GroupVersion().WithKind(vmKind.Kind + "List"))
	if err := w.client.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// provide writes to the VM as its provider does.
func (w *world) provide(field, value string) {
	w.t.Helper()
	v := w.server()
	if err := unstructured.SetNestedField(v.Object, value, "status", "atProvider", field); err != nil {
		w.t.Fatal(err)
	}
	w.update(v)
}

func (w *world) wantStep(reason string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.step()); d != "" {
		w.t.Errorf("%s: writes (-want +got):\n%s", reason, d)
	}
}

func (w *world) wantRest(reason string) {
	w.t.Helper()
	w.target.ClearActions()
	for range 2 {
		if got := w.step(); len(got) > 0 {
			w.t.Errorf("%s: writes %v", reason, got)
		}
	}
	if got := nodetest.Writes(w.target); len(got) > 0 {
		w.t.Errorf("%s: writes to the target cluster %v", reason, got)
	}
}

// running returns a world with a Machine that runs, and for which no write is due.
func running(t *testing.T) *world {
	t.Helper()
	w := living(t)
	w.step()
	w.step()
	w.provide("id", nodetest.ID)
	w.step()
	w.join(joinedNode(w.machine()))
	w.step()
	if m := w.machine(); m.Status.Phase != v1alpha1.MachineRunning {
		t.Fatalf("status %+v", m.Status)
	}
	w.target.ClearActions()
	return w
}

// TestTheLifeOfAMachine lists each write that a Machine needs from its creation until it runs.
func TestTheLifeOfAMachine(t *testing.T) {
	w := living(t)
	w.wantStep("a new Machine is held first", "patch Machine")
	w.wantStep("the status names the VM before the VM exists", "create Secret", "patch Machine/status", "apply Server")
	m := w.machine()
	want := []v1alpha1.ComposedReference{{Role: v1alpha1.ResourceVM, APIVersion: "cloud.example.org/v1", Kind: "Server", Name: names.OfMachine("m", "uid-m")}}
	if d := cmp.Diff(want, m.Status.ResourceRefs); d != "" || m.Status.CompositionRevision != "machine-cloud-1" {
		t.Errorf("revision %q, references (-want +got):\n%s", m.Status.CompositionRevision, d)
	}
	v := w.server()
	if !metav1.IsControlledBy(v, m) || v.GetAnnotations()[roleAnnotation] != v1alpha1.ResourceVM || v.GetLabels()[labelComposite] != "m" || !slices.Contains(v.GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Errorf("VM %+v", v.Object["metadata"])
	}
	w.wantRest("nothing happens until the provider writes")

	w.provide("id", nodetest.ID)
	w.wantStep("the providerID is recorded in the spec, then in the status", "patch Machine", "patch Machine/status")
	if m := w.machine(); m.Spec.ProviderID == nil || *m.Spec.ProviderID != nodetest.ID || m.Status.Phase != v1alpha1.MachineJoining {
		t.Errorf("spec %+v, status %+v", m.Spec, m.Status)
	}
	w.wantTraced(vmReference)
	for _, c := range w.machine().Status.Conditions {
		if c.ObservedGeneration != w.machine().GetGeneration() {
			t.Errorf("condition %s is of generation %d, the Machine of %d", c.Type, c.ObservedGeneration, w.machine().GetGeneration())
		}
	}
	w.wantRest("the VM starts")

	w.join(joinedNode(m))
	w.target.ClearActions()
	w.wantStep("the Node and all that it brings are one write", "patch Machine/status")
	if got := nodetest.Writes(w.target); !slices.Equal(got, []string{"patch nodes"}) {
		t.Errorf("writes to the target cluster %v", got)
	}
	m = w.machine()
	if m.Status.NodeRef == nil || m.Status.NodeRef.UID != "uid-1" || m.Status.Phase != v1alpha1.MachineRunning || !meta.IsStatusConditionTrue(m.Status.Conditions, "Ready") {
		t.Errorf("status %+v", m.Status)
	}
	if d := cmp.Diff([]string{"NodeJoined: Node " + m.Status.NodeRef.Name + " joined", "Running: The Machine runs"}, w.events.all); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	w.wantRest("it runs")
	w.restart()
	w.wantRest("after a restart")
	if len(w.events.all) != 2 {
		t.Errorf("events %v", w.events.all)
	}
}

func TestAWriteOfTheProviderIsOneStatusWrite(t *testing.T) {
	w := running(t)
	w.provide("state", "Running")
	w.wantStep("the state is in a condition", "patch Machine/status")
	w.wantRest("and then")
	w.provide("uptime", "7s")
	w.wantStep("what no step reads is no write")
}

// TestAStaleMachineCreatesNothing has a cache that shows a Machine alive that is not.
func TestAStaleMachineCreatesNothing(t *testing.T) {
	for name, happens := range map[string]func(*world, *v1alpha1.Machine){
		"ItIsBeingDeleted": func(w *world, m *v1alpha1.Machine) {
			if err := w.client.Delete(w.t.Context(), m); err != nil {
				w.t.Fatal(err)
			}
		},
		"ItIsGone": func(w *world, m *v1alpha1.Machine) { w.gone(m) },
		"AnotherOneHasItsName": func(w *world, m *v1alpha1.Machine) {
			w.gone(m.DeepCopy())
			again := m.DeepCopy()
			again.SetUID("uid-2")
			again.SetResourceVersion("")
			if err := w.client.Create(w.t.Context(), again); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := living(t)
			w.step()
			w.step()
			m := w.machine()
			w.stale = m.DeepCopy()
			w.gone(w.server()) // So that there is a VM to create, and no status to write.
			w.restart()
			happens(w, m)
			w.writes = nil
			res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
			if err != nil || res.RequeueAfter != afterConflict {
				t.Errorf("result %+v, error %v", res, err)
			}
			if w.servers() > 0 || slices.Contains(w.writes, "apply Server") || len(w.events.all) > 0 {
				t.Errorf("writes %v, events %v", w.writes, w.events.all)
			}
		})
	}
}

// TestAConflictIsRetriedAndNotReported has another writer of the status.
func TestAConflictIsRetriedAndNotReported(t *testing.T) {
	w := running(t)
	events := len(w.events.all)
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		if machineIn(t, req).Status.FailureMessage == "" {
			rsp.Results = append(rsp.Results, normalResult("Decided", "once"))
		}
		rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().Fields["failureMessage"] = structOf(t, map[string]any{"a": "decided"}).GetFields()["a"]
		return rsp, err
	}
	w.stale = w.machine()
	m := w.machine()
	m.SetLabels(map[string]string{"of": "another writer"})
	w.update(m)
	for range 2 {
		res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
		if err != nil || res.RequeueAfter != afterConflict || len(w.events.all) != events {
			t.Fatalf("result %+v, error %v, events %v", res, err, w.events.all)
		}
	}
	if m := w.machine(); m.Status.FailureMessage != "" || !meta.IsStatusConditionTrue(m.Status.Conditions, "Synced") {
		t.Errorf("status %+v", m.Status)
	}
	w.stale = nil
	w.wantStep("the cache has it", "patch Machine/status")
	w.wantRest("and then")
	if got := w.events.of("Decided"); len(got) != 1 {
		t.Errorf("events %v", w.events.all)
	}
}

// TestACacheThatLagsBehindItsOwnWritesWritesNothingTwice: neither the VM nor the status.
func TestACacheThatLagsBehindItsOwnWritesWritesNothingTwice(t *testing.T) {
	w := living(t)
	w.step()
	w.stale = w.machine()
	w.r.resources = lacking{Reader: w.client, kind: vmKind.Kind}
	w.wantStep("it is created", "create Secret", "patch Machine/status", "apply Server")
	w.wantRest("while the cache lags")
	w.stale, w.r.resources = nil, w.client
	w.wantRest("when the cache has it")
}

// TestAnApplyOfAVMThatIsGoneCreatesNoOther: the UID makes it a conflict.
func TestAnApplyOfAVMThatIsGoneCreatesNoOther(t *testing.T) {
	w := running(t)
	w.r.resources = frozenReader{Reader: w.client, obj: w.server()}
	w.gone(w.server())
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		rsp.GetDesired().GetResources()[v1alpha1.ResourceVM] = &fnv1.Resource{Resource: structOf(t, desiredVM(machineIn(t, req), "large"))}
		return rsp, err
	}
	if got := w.step(); !slices.Equal(got, []string{"apply Server"}) || w.servers() > 0 {
		t.Errorf("writes %v, %d VMs", got, w.servers())
	}
}

func TestAnUnreachableClusterIsReportedOnceAndKeepsTheMachine(t *testing.T) {
	w := running(t)
	var errs []string
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		errs = append(errs, nodeIn(t, req).Observation.Error)
		return drover(t)(ctx, req)
	}
	w.unreachable = &target.Error{Kind: target.Unreachable, Detail: "refused"}
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter != afterError {
		t.Errorf("result %+v, error %v", res, err)
	}
	if last := errs[len(errs)-1]; !strings.Contains(last, "refused") {
		t.Errorf("the pipeline was given the errors %q", errs)
	}
	if m := w.machine(); m.Status.NodeRef == nil || m.Status.Phase != v1alpha1.MachineRunning {
		t.Errorf("status %+v: what was seen last stays", m.Status)
	}
	w.unreachable = nil
	w.step()
	if last := errs[len(errs)-1]; last != "" {
		t.Errorf("the pipeline was given the error %q", last)
	}
}

// TestAKubeletThatTheAPIServerDoesNotSupportIsAProblemBeforeThereIsAVM, and none once the API
// server is upgraded.
func TestAKubeletThatTheAPIServerDoesNotSupportIsAProblemBeforeThereIsAVM(t *testing.T) {
	w := living(t)
	var last plan.JoinState
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		last = plan.JoinState{}
		into(t, req.GetContext().GetFields()[step.ContextJoin].GetStructValue(), &last)
		return drover(t)(ctx, req)
	}
	w.version = "v1.31.2-gke.100"
	if err := w.reconcile(); err != nil { // It adds the finalizer.
		t.Fatal(err)
	}
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter != afterError {
		t.Errorf("result %+v, error %v", res, err)
	}
	p := last.Problem
	if p == nil || p.Reason != v1alpha1.ReasonVersionSkew || !strings.Contains(p.Message, w.machine().Spec.Version) || !strings.Contains(p.Message, w.version) {
		t.Fatalf("the pipeline was given %+v", last)
	}
	if last.Error != "" || w.servers() > 0 {
		t.Errorf("error %q, %d VMs", last.Error, w.servers())
	}
	w.version = w.machine().Spec.Version
	w.step()
	if last.Problem != nil || w.servers() != 1 {
		t.Errorf("after the upgrade: %+v, %d VMs", last, w.servers())
	}
}

// TestAFailedApplyIsReportedOnce: the retries are silent until the error is another one.
func TestAFailedApplyIsReportedOnce(t *testing.T) {
	w := living(t)
	w.step()
	text := "quota"
	w.refuse = func(write string) error {
		if write == "apply Server" {
			return errors.New(text)
		}
		return nil
	}
	for range 3 {
		if err := w.reconcile(); err == nil || !strings.Contains(err.Error(), `cannot apply Server`) {
			t.Fatalf("error %v", err)
		}
	}
	c := meta.FindStatusCondition(w.machine().Status.Conditions, "Synced")
	if got := w.events.of(v1alpha1.EventReconcileError); len(got) != 1 || c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "quota") {
		t.Errorf("events %v, condition %+v", got, c)
	}
	w.refuse = nil
	w.step()
	if !meta.IsStatusConditionTrue(w.machine().Status.Conditions, "Synced") || w.servers() != 1 {
		t.Errorf("status %+v", w.machine().Status)
	}
}

// TestARefusedStatusHasNoEvents has an API server that does not accept the status.
func TestARefusedStatusHasNoEvents(t *testing.T) {
	w := running(t)
	events := len(w.events.all)
	w.refuse = func(write string) error {
		return kerrors.NewInvalid(schema.GroupKind{Kind: "Machine"}, "m", nil)
	}
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		rsp.Results = append(rsp.Results, normalResult("Decided", "once"))
		rsp.Conditions = append(rsp.Conditions, condition("Extra", fnv1.Status_STATUS_CONDITION_TRUE, "New"))
		return rsp, err
	}
	if err := w.reconcile(); err == nil || len(w.events.all) != events {
		t.Errorf("error %v, events %v", err, w.events.all)
	}
}

// TestAManualPolicyPinsTheRevisionAndGoesOn: the controller's own write enqueues nothing.
func TestAManualPolicyPinsTheRevisionAndGoesOn(t *testing.T) {
	w := living(t)
	m := w.machine()
	m.Spec.Crossplane = &v1alpha1.CompositionSelection{CompositionUpdatePolicy: v1alpha1.CompositionUpdateManual}
	w.update(m)
	w.step()
	w.wantStep("it is pinned and created at once", "patch Machine", "create Secret", "patch Machine/status", "apply Server")
	if ref := w.machine().Spec.Crossplane.CompositionRevisionRef; ref == nil || ref.Name != "machine-cloud-1" {
		t.Errorf("pinned to %+v", ref)
	}
	w.wantRest("and then")
	if err := w.client.Create(t.Context(), revision("machine-cloud", 2)); err != nil {
		t.Fatal(err)
	}
	w.wantRest("when there is a new revision")
	if got := w.machine().Status.CompositionRevision; got != "machine-cloud-1" {
		t.Errorf("it follows %s", got)
	}
}

// TestARecreatedMachineIsNotTakenForTheFirst: the memory of the first Machine does not apply to the second.
func TestARecreatedMachineIsNotTakenForTheFirst(t *testing.T) {
	w := running(t)
	w.script = func(context.Context, *fnRequest) (*fnResponse, error) {
		return nil, errors.New("not of interest")
	}
	m := w.machine()
	w.gone(m.DeepCopy())
	w.gone(w.server())
	again := aMachine(false, v1alpha1.FinalizerTerminator)
	again.SetUID("uid-2")
	if err := w.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(); err == nil {
		t.Fatal("the pipeline did not run")
	}
	if _, ok := w.r.parameters.get("uid-m"); ok {
		t.Error("the first one is remembered for ever")
	}
}

func TestAMachineThatIsGoneIsForgotten(t *testing.T) {
	w := running(t)
	w.r.nodes.Drains.Store(w.machine().GetUID(), &drain.Memory{})
	w.gone(w.machine())
	w.step()
	if _, ok := w.r.parameters.get("uid-m"); ok || len(w.r.written.machines) > 0 {
		t.Error("it is remembered")
	}
	if _, ok := w.r.nodes.Drains.Load("uid-m"); ok {
		t.Error("its drain is remembered")
	}
	for key := range w.r.written.objects {
		if key.kind == machineKind.GroupKind() {
			t.Error("what was written of it is remembered")
		}
	}
}

// TestAFatalPipelineReportsAJoinOnce: the observation is remembered although no step used it.
func TestAFatalPipelineReportsAJoinOnce(t *testing.T) {
	w := living(t)
	w.step()
	w.step()
	w.provide("id", nodetest.ID)
	w.step()
	w.join(joinedNode(w.machine()))
	w.script = fatal(t)
	for range 3 {
		w.step()
		w.now = w.now.Add(time.Minute)
	}
	if got := w.events.of(v1alpha1.EventNodeJoined); len(got) != 1 {
		t.Errorf("events %v", w.events.all)
	}
}

// TestADrainInPlaceWaitsForTheCordon: only a later pass sees the pods that the scheduler bound before.
func TestADrainInPlaceWaitsForTheCordon(t *testing.T) {
	w := running(t)
	w.podsStay()
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		wn := rsp.GetContext().GetFields()["drover.dev/node"].GetStructValue()
		wn.GetFields()["parameters"].GetStructValue().Fields["drained"] = structOf(t, map[string]any{"a": true}).GetFields()["a"]
		return rsp, err
	}
	w.join(nodetest.PodOn("a", func(p *corev1.Pod) { p.Spec.NodeName = names.OfMachine("m", "uid-m") }))
	for i, want := range [][]string{{"patch nodes"}, {"create pods/eviction"}} {
		w.target.ClearActions()
		res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
		if got := nodetest.Writes(w.target); err != nil || !slices.Equal(got, want) || res.RequeueAfter == 0 || res.RequeueAfter > drain.EvictEvery {
			t.Errorf("pass %d: writes %v, result %+v, error %v", i, got, res, err)
		}
	}
}

// TestAKillAfterTheTokenIsDeletedMakesNoOther stops the process before the status has the Node. The next
// process reads the Node first.
func TestAKillAfterTheTokenIsDeletedMakesNoOther(t *testing.T) {
	w := living(t)
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		if machineIn(t, req).Status.NodeRef != nil || nodeIn(t, req).Observation.NodeName != "" {
			b := plan.Bootstrap{}
			into(t, rsp.GetContext().GetFields()[step.ContextBootstrap].GetStructValue(), &b)
			b.Join.Revoked = true
			response.SetContextKey(rsp, step.ContextBootstrap, structpb.NewStructValue(structOf(t, b)))
		}
		return rsp, err
	}
	w.step()
	w.step()
	w.provide("id", nodetest.ID)
	w.step()
	w.join(joinedNode(w.machine()))
	w.target.ClearActions()
	w.refuse = func(write string) error {
		if write == "patch Machine/status" {
			return errors.New("killed")
		}
		return nil
	}
	if err := w.reconcile(); err == nil {
		t.Fatal("the status was written")
	}
	if got := nodetest.Writes(w.target); !slices.Contains(got, "delete secrets") {
		t.Fatalf("writes to the target cluster %v", got)
	}
	w.refuse = nil
	w.restart()
	w.target.ClearActions()
	w.step()
	if got := nodetest.Writes(w.target); slices.Contains(got, "create secrets") {
		t.Errorf("writes to the target cluster %v: the Node has joined", got)
	}
	if w.machine().Status.NodeRef == nil {
		t.Errorf("status %+v", w.machine().Status)
	}
	w.wantRest("and then")
}
