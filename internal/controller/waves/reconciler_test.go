package waves

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

var start = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// A world has a policy with the waves dev and prod, in a control cluster.
type world struct {
	*reconciler
	t      *testing.T
	at     time.Time
	writes []string
	events []string
	// refuses is the error of the next write of a status.
	refuses error
	// lists counts the lists of the API server.
	lists int
}

// Event implements event.Recorder.
func (w *world) Event(_ runtime.Object, e event.Event) { w.events = append(w.events, string(e.Reason)) }

// WithAnnotations implements event.Recorder.
func (w *world) WithAnnotations(...string) event.Recorder { return w }

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := machinev1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, at: start}
	c := crfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&machinev1alpha1.RolloutPolicy{}, &machinev1alpha1.RolloutTurn{}, &machinev1alpha1.MachineDeployment{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := w.refuses; err != nil {
				w.refuses = nil
				return err
			}
			w.writes = append(w.writes, o.GetName())
			return c.SubResource(sub).Update(ctx, o, opts...)
		}}).Build()
	live := interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		w.lists++
		return c.List(ctx, l, opts...)
	}})
	w.reconciler = &reconciler{client: c, live: live, record: w, now: func() time.Time { return w.at }}
	return w
}

// look reconciles after a time, and returns when to reconcile again.
func (w *world) look(after time.Duration) time.Duration {
	w.t.Helper()
	w.at, w.writes = w.at.Add(after), nil
	r, err := w.Reconcile(w.t.Context(), reconcile.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	return r.RequeueAfter
}

func fleetPolicy() *machinev1alpha1.RolloutPolicy {
	p := &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	p.Spec.Waves = []machinev1alpha1.RolloutWave{
		{Name: "dev", MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": "dev"}, Soak: &metav1.Duration{Duration: 10 * time.Minute}, Deadline: metav1.Duration{Duration: time.Hour}},
		{Name: "prod", Deadline: metav1.Duration{Duration: time.Hour}},
	}
	p.Spec.Delay.Duration = time.Minute
	return p
}

// deploymentOf a stage, which is complete since an hour.
func deploymentOf(name, stage string) *machinev1alpha1.MachineDeployment {
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Labels: map[string]string{"stage": stage}}}
	d.Spec.Template.Spec.Version = "v1"
	done(d, 1, start.Add(-time.Hour))
	return d
}

// done completes the rollout of the template.
func done(d *machinev1alpha1.MachineDeployment, revision int64, at time.Time) {
	r := deployment.CompleteRevision(d, revision)
	completion := metav1.NewTime(at)
	r.CompletionTime = &completion
	d.Status.Revisions = append(d.Status.Revisions, r)
}

func turnOf(deployment, template string) *machinev1alpha1.RolloutTurn {
	controller := true
	return &machinev1alpha1.RolloutTurn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: deployment + "-turn", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "MachineDeployment", Name: deployment, UID: types.UID(deployment), Controller: &controller,
		}}},
		Spec: machinev1alpha1.RolloutTurnSpec{MachineDeployment: deployment, Template: template},
	}
}

func (w *world) change(name string, change func(*machinev1alpha1.MachineDeployment)) {
	w.t.Helper()
	d := &machinev1alpha1.MachineDeployment{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: name}, d); err != nil {
		w.t.Fatal(err)
	}
	change(d)
	status := d.DeepCopy()
	if err := w.client.Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
	status.ResourceVersion = d.ResourceVersion
	if err := w.client.Status().Patch(w.t.Context(), status, client.Merge); err != nil {
		w.t.Fatal(err)
	}
}

// held is the message that holds the turn of a MachineDeployment, "" if it is admitted.
func (w *world) held(deployment string) string {
	w.t.Helper()
	turn := &machinev1alpha1.RolloutTurn{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "team", Name: deployment + "-turn"}, turn); err != nil {
		w.t.Fatal(err)
	}
	switch s := turn.Status; {
	case s.Template != turn.Spec.Template:
		return "no answer"
	case s.Held != nil:
		return s.Held.Message
	case s.AdmittedTime == nil:
		return "neither held nor admitted"
	}
	return ""
}

func (w *world) state(wave int) machinev1alpha1.WaveState {
	w.t.Helper()
	p := &machinev1alpha1.RolloutPolicy{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "fleet"}, p); err != nil {
		w.t.Fatal(err)
	}
	return p.Status.Waves[wave].State
}

// TestARolloutTakesItsTurn follows a rollout of prod while dev begins one.
func TestARolloutTakesItsTurn(t *testing.T) {
	w := newWorld(t, fleetPolicy(), deploymentOf("a", "dev"), deploymentOf("b", "prod"), turnOf("b", "x"))
	if again := w.look(0); again != time.Minute || !strings.Contains(w.held("b"), "wave prod begins at 2026-01-10T12:01:00Z") || w.state(0) != machinev1alpha1.WaveComplete {
		t.Fatalf("again in %s, %s: %s", again, w.state(0), w.held("b"))
	}
	if got := fmt.Sprint(w.writes); got != "[fleet b-turn]" {
		t.Errorf("writes %s", got)
	}
	if w.look(30 * time.Second); len(w.writes) > 0 || w.lists > 0 {
		t.Errorf("writes %v and %d lists of the API server while nothing changes", w.writes, w.lists)
	}
	// dev begins a rollout meanwhile.
	w.change("a", func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
	if w.look(31 * time.Second); !strings.Contains(w.held("b"), "waits for wave dev, which is not complete since 2026-01-10T12:01:01Z") {
		t.Errorf("%s", w.held("b"))
	}
	w.change("a", func(d *machinev1alpha1.MachineDeployment) { done(d, 2, w.at) })
	if again := w.look(time.Minute); again != 10*time.Minute || w.state(0) != machinev1alpha1.WaveSoaking {
		t.Errorf("again in %s: %s", again, w.held("b"))
	}
	if w.look(10 * time.Minute); w.held("b") != "" || w.lists == 0 {
		t.Errorf("%d lists of the API server: %s", w.lists, w.held("b"))
	}
	if w.look(time.Hour); len(w.writes) > 0 || len(w.events) > 0 {
		t.Errorf("writes %v, events %v at rest", w.writes, w.events)
	}
	// A failure holds it in the middle.
	w.change("a", func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Version = "v3"
		d.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionProgressing, Status: "False", Reason: machinev1alpha1.ReasonProgressDeadlineExceeded, LastTransitionTime: metav1.NewTime(w.at)}}
	})
	if w.look(time.Minute); !strings.Contains(w.held("b"), "in which a rollout failed") || fmt.Sprint(w.events) != "[WaveFailed]" {
		t.Errorf("events %v: %s", w.events, w.held("b"))
	}
	// A deleted policy lets it go.
	if err := w.client.Delete(t.Context(), fleetPolicy()); err != nil {
		t.Fatal(err)
	}
	if w.look(time.Minute); w.held("b") != "" {
		t.Errorf("%s", w.held("b"))
	}
}

// TestACacheThatLagsBehindBeginsNothing has a rollout of dev that only the API server has.
func TestACacheThatLagsBehindBeginsNothing(t *testing.T) {
	w := newWorld(t, fleetPolicy(), deploymentOf("a", "dev"), deploymentOf("b", "prod"), turnOf("b", "x"))
	w.look(0)
	old := w.client
	stale := []machinev1alpha1.MachineDeployment{*deploymentOf("a", "dev"), *deploymentOf("b", "prod")}
	w.client = interceptor.NewClient(old.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
		if list, ok := l.(*machinev1alpha1.MachineDeploymentList); ok {
			list.Items = stale
			return nil
		}
		return c.List(ctx, l, opts...)
	}})
	w.change("a", func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
	if w.look(2 * time.Minute); w.lists != 1 || !strings.Contains(w.held("b"), "waits for wave dev, which is not complete") {
		t.Errorf("%d lists of the API server: %s", w.lists, w.held("b"))
	}
}

// TestWritesThatFail repeats them, and writes no answer before the state that it follows from.
func TestWritesThatFail(t *testing.T) {
	w := newWorld(t, fleetPolicy(), deploymentOf("a", "dev"), deploymentOf("b", "prod"), turnOf("b", "x"))
	w.refuses = kerrors.NewConflict(schema.GroupResource{Resource: "rolloutpolicies"}, "fleet", errors.New("changed"))
	if again := w.look(0); again != pace || w.held("b") != "no answer" {
		t.Errorf("after a conflict again in %s: %s", again, w.held("b"))
	}
	w.refuses = errors.New("down")
	w.at = w.at.Add(pace)
	if _, err := w.Reconcile(t.Context(), reconcile.Request{}); err == nil || w.held("b") != "no answer" {
		t.Errorf("error %v: %s", err, w.held("b"))
	}
	if w.look(pace); !strings.Contains(w.held("b"), "wave prod begins at") {
		t.Errorf("%s", w.held("b"))
	}
}

// TestThePaceOfReconciles has changes all the time.
func TestThePaceOfReconciles(t *testing.T) {
	w := newWorld(t, fleetPolicy(), deploymentOf("a", "dev"))
	w.look(0)
	w.change("a", func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
	if again := w.look(pace / 4); again != pace*3/4 || len(w.writes) > 0 {
		t.Errorf("again in %s, writes %v", again, w.writes)
	}
	if w.look(pace); len(w.writes) != 1 {
		t.Errorf("writes %v", w.writes)
	}
}

// TestWithoutPoliciesNothingIsRead has MachineDeployments alone.
func TestWithoutPoliciesNothingIsRead(t *testing.T) {
	w := newWorld(t, deploymentOf("a", "dev"))
	if again := w.look(0); again != 0 || len(w.writes) > 0 || !w.last.IsZero() {
		t.Errorf("again in %s, writes %v", again, w.writes)
	}
}

// TestAMachineDeploymentOfANodePoolHasTheLabelsOfThePool has a pool of dev, whose MachineDeployment has a label of its own.
func TestAMachineDeploymentOfANodePoolHasTheLabelsOfThePool(t *testing.T) {
	pool := &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "pool", Labels: map[string]string{"stage": "dev"}}}
	d := deploymentOf("a", "prod")
	controller := true
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: machinev1alpha1.SchemeGroupVersion.String(), Kind: "NodePool", Name: "web", UID: "pool", Controller: &controller}}
	gone := deploymentOf("c", "dev")
	gone.DeletionTimestamp, gone.Finalizers = &metav1.Time{Time: start}, []string{"x/y"}
	w := newWorld(t, fleetPolicy(), pool, d, gone)
	w.look(0)
	if got := w.state(0); got != machinev1alpha1.WaveComplete || w.state(1) != machinev1alpha1.WaveEmpty {
		t.Errorf("dev is %s, prod %s", got, w.state(1))
	}
	members, err := w.members(t.Context(), w.client)
	if err != nil || len(members) != 1 {
		t.Errorf("%d members, which do not have the one that is being deleted: %v", len(members), err)
	}
}

// TestWhichUpdatesCount are those that change what waves see.
func TestWhichUpdatesCount(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*machinev1alpha1.MachineDeployment)
		want   bool
	}{
		"nothing":              {func(*machinev1alpha1.MachineDeployment) {}, false},
		"a number of Machines": {func(d *machinev1alpha1.MachineDeployment) { d.Status.AvailableReplicas = 3 }, false},
		"an annotation":        {func(d *machinev1alpha1.MachineDeployment) { d.Annotations = map[string]string{"a": "b"} }, false},
		"the template":         {func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" }, true},
		"a label":              {func(d *machinev1alpha1.MachineDeployment) { d.Labels = nil }, true},
		"a deletion":           {func(d *machinev1alpha1.MachineDeployment) { d.DeletionTimestamp = &metav1.Time{} }, true},
		"the completion of a rollout": {func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions[0].CompletionTime = &metav1.Time{Time: start}
		}, true},
		"the cluster of the template":  {func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.ClusterRef.Name = "other" }, true},
		"a pause before it is rolling": {func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true }, false},
	} {
		was, is := deploymentOf("a", "dev"), deploymentOf("a", "dev")
		tc.change(is)
		if got := changesMember(crevent.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if !changesMember(crevent.UpdateEvent{ObjectOld: &machinev1alpha1.RolloutTurn{}, ObjectNew: &machinev1alpha1.RolloutTurn{}}) {
		t.Error("another kind counts")
	}
}
