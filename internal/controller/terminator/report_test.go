package terminator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// recorded events.
type recorded struct{ events []event.Event }

func (r *recorded) Event(_ runtime.Object, e event.Event)    { r.events = append(r.events, e) }
func (r *recorded) WithAnnotations(...string) event.Recorder { return r }
func newReporter(c client.Client, k parentKind, ms ...*v1alpha1.Machine) *reporter {
	return &reporter{client: c, live: c, views: c, kind: k, record: &recorded{}, now: func() time.Time { return time.Unix(100, 0) },
		machines: func(context.Context, client.Object) ([]*v1alpha1.Machine, error) { return ms, nil }}
}

// hanging returns a Machine whose drain is blocked by a PodDisruptionBudget.
func hanging() *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", DeletionTimestamp: ptr.To(metav1.Unix(50, 0))}}
	m.Status.Phase, m.Status.ReadySince = v1alpha1.MachineTerminating, ptr.To(metav1.Unix(1, 0))
	m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDraining, Pods: []v1alpha1.DrainedPod{{Namespace: "shop", Name: "web-0"}}}
	m.Status.Drain = &v1alpha1.DrainStatus{StartTime: metav1.Unix(50, 0)}
	m.Status.LastOperation = &v1alpha1.LastOperation{Description: "Waiting for Node n: pod shop/web-0: its budget"}
	return m
}

func TestADeletedDeploymentReportsItsHangingMachineInOneWrite(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers", UID: "uid", Generation: 4,
		Finalizers: []string{v1alpha1.FinalizerTerminator}, DeletionTimestamp: ptr.To(metav1.Unix(50, 0))}}
	d.Spec.Replicas = 2
	d.Status.ObservedGeneration, d.Status.Replicas, d.Status.AvailableReplicas = 3, 2, 2
	d.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True"}, {Type: "Ready", Status: "False", Reason: "Deleting"}}
	var sent []string
	c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(d).WithObjects(d).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			data, err := patch.Data(obj)
			if err != nil {
				return err
			}
			sent = append(sent, string(data))
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	r := newReporter(c, deployments{}, hanging())
	key := client.ObjectKeyFromObject(d)
	for range 2 {
		if _, err := r.report(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}

	// Crossplane omits an empty message: if one is written, Crossplane writes again to remove it.
	if len(sent) != 1 || strings.Contains(sent[0], `"message":""`) {
		t.Errorf("sent %q, want one patch without empty messages", sent)
	}

	got := &v1alpha1.MachineDeployment{}
	if err := c.Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	st := got.Status
	if st.ObservedGeneration != 4 || st.Replicas != 0 || st.AvailableReplicas != 0 || st.UnavailableReplicas != 2 || st.TerminatingReplicas != 1 {
		t.Errorf("status %+v", st)
	}
	conditions := map[string]metav1.Condition{}
	for _, c := range st.Conditions {
		conditions[c.Type] = c
	}
	if c := conditions["Available"]; c.Status != "False" || c.ObservedGeneration != 4 {
		t.Errorf("Available is %+v", c)
	}
	if c := conditions["Reconciling"]; c.Reason != "DrainBlocked" || !strings.Contains(c.Message, "shop/web-0") || !strings.Contains(c.Message, "1970-01-01T02:00:50Z") {
		t.Errorf("Reconciling is %+v", c)
	}
	if c := conditions["Ready"]; c.Reason != "Deleting" {
		t.Errorf("Crossplane's Ready is %+v", c)
	}
	if rec, ok := r.record.(*recorded); !ok || len(rec.events) != 1 || rec.events[0].Reason != "DrainBlocked" {
		t.Errorf("events %+v", r.record)
	}
	if got.ResourceVersion != "1000" { // The fake client starts with 999.
		t.Errorf("resourceVersion %s: the status was written more than once, or not", got.ResourceVersion)
	}
}

// TestADeploymentThatOnlyAFinalizerKeepsNamesIt: Crossplane's own ends by itself, and is not named.
func TestADeploymentThatOnlyAFinalizerKeepsNamesIt(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers", UID: "uid",
		Finalizers: []string{"composite.apiextensions.crossplane.io", "example.org/hold"}, DeletionTimestamp: ptr.To(metav1.Unix(50, 0))}}
	c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(d).WithObjects(d).Build()
	if _, err := newReporter(c, deployments{}).report(t.Context(), client.ObjectKeyFromObject(d), ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}
	is := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionReconciling)
	if is == nil || is.Reason != v1alpha1.ReasonWaitingForFinalizers || !strings.HasSuffix(is.Message, "must remove them: example.org/hold") {
		t.Errorf("Reconciling is %+v", is)
	}
}

func TestTheEventIsNotOfASetThatItsDeploymentTakesAlong(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	at := ptr.To(metav1.Unix(50, 0))
	for name, tc := range map[string]struct {
		deployment *v1alpha1.MachineDeployment
		events     int
	}{
		"TheDeploymentStays":            {&v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers"}}, 1},
		"TheDeploymentIsBeingDeleted":   {&v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers", Finalizers: []string{"x/y"}, DeletionTimestamp: at}}, 0},
		"TheDeploymentWasDeletedBefore": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", Finalizers: []string{v1alpha1.FinalizerTerminator}, DeletionTimestamp: at,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment", Name: "workers", UID: "u", Controller: ptr.To(true)}}}}
			objects := []client.Object{set}
			if tc.deployment != nil {
				objects = append(objects, tc.deployment)
			}
			c := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(set).WithObjects(objects...).Build()
			r := newReporter(c, sets{}, hanging())
			if _, err := r.report(t.Context(), client.ObjectKeyFromObject(set), ""); err != nil {
				t.Fatal(err)
			}
			if rec, ok := r.record.(*recorded); !ok || len(rec.events) != tc.events {
				t.Errorf("events %+v, want %d", r.record, tc.events)
			}
		})
	}
}
