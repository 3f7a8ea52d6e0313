package config

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

type fakeProber struct {
	err       error
	lacking   string
	client    *v1alpha1.ClientCertificatesStatus
	forgotten []target.Ref
	idle      int
}

func (p *fakeProber) Probe(context.Context, target.Ref) probe {
	return probe{version: "v1.35.4", err: p.err, rights: &p.lacking, client: p.client}
}
func (p *fakeProber) Forget(ref target.Ref)          { p.forgotten = append(p.forgotten, ref) }
func (p *fakeProber) StopIdle(target.Ref, time.Time) { p.idle++ }

type recorded []string

func (e *recorded) Event(_ runtime.Object, ev event.Event) {
	*e = append(*e, string(ev.Reason)+": "+ev.Message)
}
func (e *recorded) WithAnnotations(...string) event.Recorder { return e }

type bench struct {
	t      *testing.T
	c      client.Client
	probe  *fakeProber
	events *recorded
	writes int
	r      *reconciler
}

func newBench(t *testing.T, objs ...client.Object) *bench {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(s), machinev1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, probe: &fakeProber{}, events: &recorded{}}
	b.c = fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithStatusSubresource(&v1alpha1.ClusterProviderConfig{}).
		WithIndex(&machinev1alpha1.Machine{}, byConfig, configOf).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
				b.writes++
				return c.SubResource(sub).Update(ctx, obj, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				b.writes++
				return c.Patch(ctx, obj, patch, opts...)
			},
		}).Build()
	b.r = &reconciler{client: b.c, empty: func() client.Object { return &v1alpha1.ClusterProviderConfig{} }, probe: b.probe, record: b.events, now: time.Now}
	return b
}

func (b *bench) reconcile() reconcile.Result {
	b.t.Helper()
	res, err := b.r.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "c"}})
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

func (b *bench) config() *v1alpha1.ClusterProviderConfig {
	b.t.Helper()
	pc := &v1alpha1.ClusterProviderConfig{}
	if err := b.c.Get(b.t.Context(), types.NamespacedName{Name: "c"}, pc); err != nil {
		b.t.Fatal(err)
	}
	return pc
}

func aConfig() *v1alpha1.ClusterProviderConfig {
	return &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
}

func TestAConfigIsHeldAndMeasuredAndWrittenOnChangeOnly(t *testing.T) {
	b := newBench(t, aConfig())
	res := b.reconcile()
	pc := b.config()
	if !slices.Contains(pc.GetFinalizers(), v1alpha1.FinalizerInUse) || pc.Status.Version != "v1.35.4" ||
		pc.Status.GetCondition(v1alpha1.ConditionReachable).Status != corev1.ConditionTrue || res.RequeueAfter != probeEvery {
		t.Fatalf("finalizers %v, status %+v, result %+v", pc.GetFinalizers(), pc.Status, res)
	}
	if b.writes != 2 {
		t.Errorf("%d writes, want the finalizer and the status", b.writes)
	}
	b.reconcile()
	if b.writes != 2 {
		t.Errorf("%d writes although nothing changed", b.writes)
	}
	b.probe.err = &target.Error{Kind: target.Unauthorized, Ref: target.ClusterRef("c"), Detail: "no"}
	b.reconcile()
	if got := b.config().Status.GetCondition(v1alpha1.ConditionReachable); got.Reason != v1alpha1.ReasonUnauthorized || len(*b.events) != 2 {
		t.Errorf("condition %+v, events %v", got, *b.events)
	}
}

func TestAnInterruptionHastensNoConfirmation(t *testing.T) {
	b := newBench(t, aConfig())
	b.reconcile()
	ref := target.ClusterRef("c")
	if b.r.isDoubted(ref) {
		t.Error("a cluster that answers would not be probed after an interruption")
	}
	b.probe.err = &target.Error{Kind: target.Unreachable, Ref: ref, Detail: "no"}
	if res := b.reconcile(); res.RequeueAfter != confirmAfter || !b.r.isDoubted(ref) {
		t.Errorf("result %+v: a probe of its own would confirm the outage earlier", res)
	}
	b.reconcile()
	if b.reconcile(); b.r.isDoubted(ref) || b.config().Status.GetCondition(v1alpha1.ConditionReachable).Reason != v1alpha1.ReasonUnreachable {
		t.Errorf("condition %+v after three failures", b.config().Status.GetCondition(v1alpha1.ConditionReachable))
	}
}

func TestRightsThatLackAreReportedOnce(t *testing.T) {
	b := newBench(t, aConfig())
	b.reconcile()
	b.probe.lacking = "delete nodes"
	for range 2 {
		b.reconcile()
		c := b.config().Status.GetCondition(v1alpha1.ConditionAuthorized)
		if c.Status != corev1.ConditionFalse || c.Reason != v1alpha1.ReasonRightsMissing || c.Message != "delete nodes" {
			t.Errorf("condition %+v", c)
		}
		if up := b.config().Status.GetCondition(v1alpha1.ConditionReachable); up.Status != corev1.ConditionTrue {
			t.Errorf("condition %+v: a right that lacks does not make it unreachable", up)
		}
	}
	if b.writes != 3 || !slices.Contains(*b.events, "RightsMissing: delete nodes") || len(*b.events) != 2 {
		t.Errorf("%d writes, events %v", b.writes, *b.events)
	}
	b.probe.lacking = ""
	b.reconcile()
	if c := b.config().Status.GetCondition(v1alpha1.ConditionAuthorized); c.Status != corev1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}

func TestAConfigInUseIsKept(t *testing.T) {
	at := metav1.Unix(1, 0)
	pc := aConfig()
	pc.SetFinalizers([]string{v1alpha1.FinalizerInUse})
	pc.SetDeletionTimestamp(&at)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Finalizers: []string{machinev1alpha1.FinalizerTerminator}}}
	m.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "c"}
	b := newBench(t, pc, m)
	b.reconcile()
	if want := "InUse: not deleted: still used by 1 Machines"; !slices.Contains(*b.events, want) {
		t.Errorf("events %v lack %q", *b.events, want)
	}
	if b.probe.idle != 0 {
		t.Error("the watch of Nodes was stopped under a Machine")
	}
	b.config()
	if err := b.c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b.reconcile()
	if b.probe.idle != 0 {
		t.Error("the watch of Nodes was stopped under a Machine that is being deleted")
	}
	b.config()
	if err := b.c.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	b.reconcile()
	if err := b.c.Get(t.Context(), types.NamespacedName{Name: "c"}, &v1alpha1.ClusterProviderConfig{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("it is still there, error %v", err)
	}
	if !slices.Equal(b.probe.forgotten, []target.Ref{target.ClusterRef("c")}) {
		t.Errorf("forgotten %v: its connection stays open", b.probe.forgotten)
	}
}

func TestAMachineUsesOneConfiguration(t *testing.T) {
	shared, own := kind{gvk: v1alpha1.ClusterProviderConfigGroupVersionKind}, kind{gvk: v1alpha1.ProviderConfigGroupVersionKind}
	for name, tc := range map[string]struct {
		ref         machinev1alpha1.ClusterReference
		index       string
		shared, own []reconcile.Request
	}{
		"AClusterProviderConfig": {
			machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "c"}, target.ClusterRef("c").String(),
			[]reconcile.Request{{NamespacedName: types.NamespacedName{Name: "c"}}}, nil,
		},
		"AProviderConfigOfItsNamespace": {
			machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "c"}, target.NamespacedRef("ns", "c").String(),
			nil, []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "c"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
			m.Spec.ClusterRef = tc.ref
			if got := configOf(m); !slices.Equal(got, []string{tc.index}) {
				t.Errorf("index %q, want %q", got, tc.index)
			}
			if got := shared.used(t.Context(), m); !slices.Equal(got, tc.shared) {
				t.Errorf("ClusterProviderConfigs %v, want %v", got, tc.shared)
			}
			if got := own.used(t.Context(), m); !slices.Equal(got, tc.own) {
				t.Errorf("ProviderConfigs %v, want %v", got, tc.own)
			}
		})
	}
}

func TestAConfigReportsWhatIsDoneWithClientCertificates(t *testing.T) {
	b := newBench(t, aConfig())
	b.reconcile()
	if got := b.config().Status.ClientCertificates; got != nil {
		t.Errorf("%+v before the rights are known", got)
	}
	want := v1alpha1.ClientCertificatesStatus{Policy: v1alpha1.ClientCertificatesIgnore, Message: "a right is missing"}
	b.probe.client = &want
	b.reconcile()
	if got := b.config().Status.ClientCertificates; got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	writes := b.writes
	b.probe.client = want.DeepCopy()
	b.reconcile()
	b.probe.client = nil
	b.reconcile()
	if got := b.config().Status.ClientCertificates; got == nil || *got != want || b.writes != writes {
		t.Errorf("%+v after %d more writes, want what is known to stay without a write", got, b.writes-writes)
	}
}
