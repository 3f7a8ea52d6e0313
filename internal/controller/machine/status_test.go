package machine

import (
	"context"
	"slices"
	"testing"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
)

// lacking is a cache that has no object of a kind yet.
type lacking struct {
	client.Reader
	kind string
}

func (l lacking) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if obj.GetObjectKind().GroupVersionKind().Kind == l.kind {
		key.Name += "-of-which-nothing-is-known-yet"
	}
	return l.Reader.Get(ctx, key, obj, opts...)
}

// frozenReader is a cache that has an earlier version of an object.
type frozenReader struct {
	client.Reader
	obj *unstructured.Unstructured
}

func (f frozenReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GroupVersionKind() == f.obj.GroupVersionKind() {
		f.obj.DeepCopyInto(u)
		return nil
	}
	return f.Reader.Get(ctx, key, obj, opts...)
}

// fatal is a step that sets one condition, warns, and fails.
func fatal(t *testing.T) func(context.Context, *fnRequest) (*fnResponse, error) {
	t.Helper()
	return func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp := answer(t, req, answered{conditions: []*fnv1.Condition{condition("InfrastructureReady", fnv1.Status_STATUS_CONDITION_FALSE, "Broken")}})
		rsp.Results = []*fnv1.Result{
			{Severity: fnv1.Severity_SEVERITY_WARNING, Message: "before"},
			{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "the input is wrong"},
		}
		return rsp, ctx.Err()
	}
}

func TestAFatalResultMakesOtherConditionsUnknown(t *testing.T) {
	w := running(t)
	m := w.machine()
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: "NodeReady", Status: metav1.ConditionTrue, Reason: "Fine", ObservedGeneration: 1})
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	before := w.machine().Status
	w.script = fatal(t)
	res, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: nameOfM})
	if err != nil || res.RequeueAfter != time.Minute {
		t.Errorf("result %+v, error %v", res, err)
	}
	m = w.machine()
	for name, want := range map[string]metav1.Condition{
		"InfrastructureReady": {Status: metav1.ConditionFalse, Reason: "Broken"},
		"NodeReady":           {Status: metav1.ConditionUnknown, Reason: string(v1alpha1.ReasonFatalResult)},
		"Synced":              {Status: metav1.ConditionFalse, Reason: string(xpv2.ReasonReconcileError)},
		"Ready":               {Status: metav1.ConditionTrue, Reason: string(xpv2.ReasonAvailable)},
	} {
		c := meta.FindStatusCondition(m.Status.Conditions, name)
		if c == nil || c.Status != want.Status || c.Reason != want.Reason || name != "Ready" && c.ObservedGeneration != m.GetGeneration() {
			t.Errorf("condition %s: %+v", name, c)
		}
	}
	if m.Status.Phase != before.Phase || m.Status.ProviderID != before.ProviderID || m.Status.NodeRef == nil || len(m.Status.ResourceRefs) != 1 {
		t.Errorf("status %+v: the rest must stay", m.Status)
	}
	w.wantRest("and then")
	if got := w.events.of(v1alpha1.ReasonFatalResult); len(got) != 1 {
		t.Errorf("events %v", w.events.all)
	}
	w.script = drover(t)
	w.wantStep("it recovers", "patch Machine/status")
	if !meta.IsStatusConditionTrue(w.machine().Status.Conditions, "Synced") {
		t.Errorf("status %+v", w.machine().Status)
	}
}

func TestAPausedMachineIsLeftAlone(t *testing.T) {
	for name, deleting := range map[string]bool{"Living": false, "Deleting": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, withNode(aMachine(deleting, v1alpha1.FinalizerTerminator, metav1.FinalizerDeleteDependents)), aVM(), aClass(), revision("machine-cloud", 1))
			w.script = drover(t)
			w.join(itsNode())
			m := w.machine()
			m.SetAnnotations(map[string]string{xpmeta.AnnotationKeyReconciliationPaused: "true"})
			w.update(m)
			w.wantStep("it is reported", "patch Machine/status")
			c := meta.FindStatusCondition(w.machine().Status.Conditions, "Synced")
			if c == nil || c.Reason != string(xpv2.ReasonReconcilePaused) || c.ObservedGeneration != m.GetGeneration() || w.machine().Status.NodeRef == nil {
				t.Errorf("condition %+v, status %+v", c, w.machine().Status)
			}
			w.wantRest("while it is paused")
			if got := w.nodeWrites(); len(got) > 0 || !w.isVMHeld() || len(w.events.all) > 0 {
				t.Errorf("writes to the target cluster %v, events %v", got, w.events.all)
			}
			m = w.machine()
			m.SetAnnotations(nil)
			w.update(m)
			if got := w.step(); len(got) == 0 {
				t.Error("it does not go on")
			}
		})
	}
}

func TestARefusedMachineReportsWhyOnce(t *testing.T) {
	w := living(t)
	if err := w.client.Delete(t.Context(), aClass()); err != nil {
		t.Fatal(err)
	}
	w.step()
	w.wantStep("it is reported", "patch Machine/status")
	w.wantRest("and then")
	m := w.machine()
	valid, ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValid), meta.FindStatusCondition(m.Status.Conditions, "Ready")
	if valid == nil || valid.Status != metav1.ConditionFalse || valid.Reason != "ClassNotFound" || ready == nil || ready.Status != metav1.ConditionFalse || m.Status.Phase != v1alpha1.MachinePending {
		t.Errorf("status %+v", m.Status)
	}
	if d := cmp.Diff([]string{`ClassNotFound: spec.classRef.name: there is no MachineClass "small" in namespace "ns"`}, w.events.all); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if err := w.client.Create(t.Context(), aClass()); err != nil {
		t.Fatal(err)
	}
	w.step()
	if w.servers() != 1 {
		t.Error("it does not go on when the class is there")
	}
}

// TestConditionsOfASystemTypeAreTheControllersOwn: as in Crossplane.
func TestConditionsOfASystemTypeAreTheControllersOwn(t *testing.T) {
	got := conditionsOf([]*fnv1.Condition{
		condition("Ready", fnv1.Status_STATUS_CONDITION_TRUE, "A"), condition("Synced", fnv1.Status_STATUS_CONDITION_TRUE, "B"),
		condition("Mine", fnv1.Status_STATUS_CONDITION_UNSPECIFIED, "C"), condition("Other", fnv1.Status_STATUS_CONDITION_FALSE, "D"),
	})
	want := []metav1.Condition{{Type: "Mine", Status: metav1.ConditionUnknown, Reason: "C"}, {Type: "Other", Status: metav1.ConditionFalse, Reason: "D"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestAConditionThatNoStepSetsStays with the generation that it was set for.
func TestAConditionThatNoStepSetsStays(t *testing.T) {
	w := running(t)
	was := meta.FindStatusCondition(w.machine().Status.Conditions, "InfrastructureReady")
	m := w.machine()
	m.SetGeneration(m.GetGeneration() + 1)
	w.update(m)
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		rsp, err := drover(t)(ctx, req)
		rsp.Conditions = nil
		return rsp, err
	}
	w.wantStep("the other conditions are of the new generation", "patch Machine/status")
	got := w.machine()
	if d := cmp.Diff(was, meta.FindStatusCondition(got.Status.Conditions, "InfrastructureReady")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if c := meta.FindStatusCondition(got.Status.Conditions, "Ready"); c.ObservedGeneration != got.GetGeneration() {
		t.Errorf("condition %+v of generation %d", c, got.GetGeneration())
	}
}

// TestAForgedReferenceDoesNotHideTheVM: a status never replaces a resource that the pipeline names.
func TestAForgedReferenceDoesNotHideTheVM(t *testing.T) {
	w := running(t)
	fake := aVM()
	fake.SetName("fake")
	fake.SetAnnotations(nil)
	if err := unstructured.SetNestedField(fake.Object, "of-another", "status", "atProvider", "id"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), fake); err != nil {
		t.Fatal(err)
	}
	m := w.machine()
	m.Status.ResourceRefs[0].Name = "fake"
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.step()
	if m := w.machine(); m.Status.ProviderID != nodetest.ID || m.Status.ResourceRefs[0].Name == "fake" {
		t.Errorf("status %+v", m.Status)
	}
}

func TestWhatTheMachineDoesNotControlIsNotObserved(t *testing.T) {
	notMine := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		v := aVM()
		change(v)
		return v
	}
	for name, tc := range map[string]struct {
		vm   *unstructured.Unstructured
		want bool
	}{
		"ItsVM":              {aVM(), true},
		"OfAnotherMachine":   {notMine(func(v *unstructured.Unstructured) { o := owner(); o[0].UID = "x"; v.SetOwnerReferences(o) }), false},
		"OwnedNotControlled": {notMine(func(v *unstructured.Unstructured) { o := owner(); o[0].Controller = nil; v.SetOwnerReferences(o) }), false},
		"InAnotherRole":      {notMine(func(v *unstructured.Unstructured) { v.SetAnnotations(map[string]string{roleAnnotation: "x"}) }), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.vm)
			got, err := w.r.observe(t.Context(), aMachine(false), nil)
			if err != nil || (got[v1alpha1.ResourceVM] != nil) != tc.want {
				t.Errorf("observed %v, error %v", got, err)
			}
		})
	}
	t.Run("NorAnObjectOfDroverOrOfTheCore", func(t *testing.T) {
		w := newWorld(t)
		m := aMachine(false)
		m.Status.ResourceRefs = []v1alpha1.ComposedReference{
			{Role: "a", APIVersion: "v1", Kind: "Secret", Name: "s"},
			{Role: "b", APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Machine", Name: "m"},
		}
		if got, err := w.r.observe(t.Context(), m, nil); err != nil || len(got) > 0 || len(w.watched) > 0 {
			t.Errorf("observed %v, watched %v, error %v", got, w.watched, err)
		}
	})
}

// TestAResourceThatIsNotDesiredAnyMoreIsDeleted, but neither a VM nor a companion.
func TestAResourceThatIsNotDesiredAnyMoreIsDeleted(t *testing.T) {
	other := func(name, role string) *unstructured.Unstructured {
		u := aVM()
		u.SetGroupVersionKind(cardKind)
		u.SetName(name)
		u.SetUID(types.UID(name))
		u.SetFinalizers(nil)
		u.SetAnnotations(map[string]string{roleAnnotation: role})
		return u
	}
	m := aMachine(false, v1alpha1.FinalizerTerminator)
	for name, role := range map[string]string{"dns": "dns-record", "nic": v1alpha1.ResourceCompanionPrefix + "nic"} {
		m.Status.ResourceRefs = append(m.Status.ResourceRefs, v1alpha1.ComposedReference{Role: role, APIVersion: cardKind.GroupVersion().String(), Kind: cardKind.Kind, Name: name})
	}
	w := newWorld(t, m, aVM(), other("dns", "dns-record"), other("nic", v1alpha1.ResourceCompanionPrefix+"nic"), aClass(), revision("machine-cloud", 1))
	w.script = func(ctx context.Context, req *fnRequest) (*fnResponse, error) {
		return answer(t, req, answered{}), ctx.Err()
	}
	if got := w.step(); !slices.Contains(got, "delete Card") || len(w.deletes) > 0 || slices.Contains(got, "delete Server") {
		t.Errorf("writes %v", got)
	}
	w.get(cardKind, "nic")
	w.vm()
	w.step()
	var roles []string
	for _, ref := range w.machine().Status.ResourceRefs {
		roles = append(roles, ref.Role)
	}
	if want := []string{v1alpha1.ResourceCompanionPrefix + "nic", v1alpha1.ResourceVM}; !slices.Equal(roles, want) {
		t.Errorf("references %v, want %v", roles, want)
	}
}
