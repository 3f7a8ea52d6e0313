package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func offer() fn.Pool {
	taint := func(key string) machinev1alpha1.Taint { return machinev1alpha1.Taint{Key: key, Effect: "NoSchedule"} }
	return fn.Pool{
		Versions:   []string{"v1.35.4", "v1.34.8"},
		ClusterRef: machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "eu"},
		MaxSize:    ptr.To(int32(10)),
		Classes: []fn.OfferedClass{
			{Name: "small", ClassRef: machinev1alpha1.ClassReference{Name: "small-1"}, FailureDomains: []machinev1alpha1.FailureDomain{"a", "b", "c"}},
			{
				Name: "large", ClassRef: machinev1alpha1.ClassReference{Name: "large-1"}, MaxSize: ptr.To(int32(3)),
				Labels: map[string]string{"size": "large"}, Taints: []machinev1alpha1.Taint{taint("large")}, StartupTaints: []machinev1alpha1.Taint{taint("network")},
			},
		},
	}
}

func pool(edits ...func(*machinev1alpha1.NodePool)) *machinev1alpha1.NodePool {
	p := &machinev1alpha1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "uid", Generation: 1}}
	p.Spec.Class, p.Spec.Size = "small", ptr.To(int32(4))
	for _, e := range edits {
		e(p)
	}
	return p
}

func observed(p *machinev1alpha1.NodePool) Observed {
	return Observed{Pool: p, Namespace: p.Namespace, Offer: offer()}
}

// A world carries out decisions: each MachineDeployment acts on its spec at once.
type world struct {
	t *testing.T
	Observed
	last Decision
	// full failure domains have no room for a VM.
	full map[string]bool
}

func newWorld(t *testing.T, p *machinev1alpha1.NodePool) *world {
	t.Helper()
	w := &world{t: t, Observed: observed(p), full: map[string]bool{}}
	return w
}

// step carries out one decision.
func (w *world) step() {
	w.last = Plan(now, w.Observed)
	var next []Deployment
	for _, d := range w.last.Deployments {
		md := d.DeepCopy()
		if i := slices.IndexFunc(w.Deployments, func(e Deployment) bool { return e.Name == md.Name }); i >= 0 {
			was := w.Deployments[i]
			md.Generation, md.Status = was.Generation+1, was.Status
			if d.OmitReplicas {
				md.Spec.Replicas = was.Spec.Replicas
			}
		} else {
			md.Generation = 1
		}
		w.run(md)
		next = append(next, Deployment{MachineDeployment: md, Observed: true, ScaledByOthers: d.OmitReplicas})
	}
	w.Deployments = next
	w.Pool.Status = w.last.Status
	for _, c := range w.last.Conditions {
		meta.SetStatusCondition(&w.Pool.Status.Conditions, metav1.Condition{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message})
	}
	ready := metav1.Condition{Type: "Ready", Status: "False", Reason: "Creating", ObservedGeneration: w.Pool.Generation}
	if w.last.Ready {
		ready.Status, ready.Reason = "True", "Available"
	}
	meta.SetStatusCondition(&w.Pool.Status.Conditions, ready)
}

// run a MachineDeployment: its Machines are available, except in a full failure domain.
func (w *world) run(md *machinev1alpha1.MachineDeployment) {
	s := &md.Status
	missing := int32(0)
	if w.full[domainName(md)] {
		missing = max(0, md.Spec.Replicas-s.AvailableReplicas)
		if missing > 0 {
			s.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: domainName(md), Code: "CapacityExhausted"}}
		}
	} else {
		s.Exhausted = nil
	}
	s.ObservedGeneration, s.DesiredReplicas = md.Generation, ptr.To(md.Spec.Replicas)
	s.Replicas, s.AvailableReplicas, s.ReadyReplicas, s.UnhealthyReplicas = md.Spec.Replicas, md.Spec.Replicas-missing, md.Spec.Replicas-missing, missing
	s.UpdatedReplicas = s.Replicas
	ready := metav1.Condition{Type: "Ready", Status: "True", Reason: "Available", ObservedGeneration: md.Generation}
	if missing > 0 {
		ready.Status = "False"
	}
	meta.SetStatusCondition(&s.Conditions, ready)
}

func domainName(md *machinev1alpha1.MachineDeployment) string {
	return ptr.Deref(md.Spec.Template.Spec.FailureDomain, "")
}

func (w *world) settle() {
	w.t.Helper()
	for range 50 {
		w.step()
		if w.last.Ready && w.last.Status.ObservedGeneration == w.Pool.Generation {
			return
		}
	}
	w.t.Fatalf("it does not settle: %+v", w.last)
}

func (w *world) replicas() string {
	var out []string
	for _, d := range w.Deployments {
		out = append(out, fmt.Sprintf("%s=%d", domainName(d.MachineDeployment), d.Spec.Replicas))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func condition(d Decision, typ string) string {
	for _, c := range d.Conditions {
		if c.Type == typ {
			return strings.TrimSpace(c.Status + " " + c.Reason + " " + c.Message)
		}
	}
	return ""
}

func TestAPoolIsSpreadOverItsFailureDomains(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*machinev1alpha1.NodePool)
		want string
	}{
		"ByDefaultOverAllOfTheClass":     {func(*machinev1alpha1.NodePool) {}, "a=2 b=1 c=1"},
		"OverThoseThatItNames":           {func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"c", "a"} }, "a=2 c=2"},
		"EvenIfItWantsNone":              {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(0)) }, "a=0 b=0 c=0"},
		"WhereTheClassDecidesThereIsOne": {func(p *machinev1alpha1.NodePool) { p.Spec.Class, p.Spec.Size = "large", ptr.To(int32(3)) }, "=3"},
		"AnOddOneGoesToTheFirstThatNamed": {func(p *machinev1alpha1.NodePool) {
			p.Spec.FailureDomains, p.Spec.Size = []machinev1alpha1.FailureDomain{"c", "a"}, ptr.To(int32(1))
		}, "a=0 c=1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(tc.edit))
			w.settle()
			if got := w.replicas(); got != tc.want {
				t.Errorf("replicas %s, want %s", got, tc.want)
			}
			if got, want := condition(w.last, "Reconciling"), "False Settled"; got != want {
				t.Errorf("Reconciling %s, want %s", got, want)
			}
			if w.last.CallAgain != shared.AtRest || w.last.Status.Version != "v1.35.4" {
				t.Errorf("called again after %s, version %s", w.last.CallAgain, w.last.Status.Version)
			}
		})
	}
}

func TestWhatIsNotOfferedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*machinev1alpha1.NodePool)
		want string
	}{
		"Class":         {func(p *machinev1alpha1.NodePool) { p.Spec.Class = "huge" }, `spec.class: "huge" is not offered: must be one of small, large`},
		"Version":       {func(p *machinev1alpha1.NodePool) { p.Spec.Version = "v1.2.3" }, `spec.version: "v1.2.3" is not offered: must be one of v1.35.4, v1.34.8`},
		"FailureDomain": {func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"a", "z"} }, `spec.failureDomains[1]: "z" is not offered: must be one of a, b, c, for the class small`},
		"FailureDomainWhereNoneIs": {func(p *machinev1alpha1.NodePool) {
			p.Spec.Class, p.Spec.FailureDomains = "large", []machinev1alpha1.FailureDomain{"a"}
		}, `spec.failureDomains[0]: "a" is not offered: must be absent: the class large decides where its Nodes are`},
		"Size":           {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(11)) }, `spec.size: "11" is not offered: must be at most 10, the largest size of a pool`},
		"SizeOfTheClass": {func(p *machinev1alpha1.NodePool) { p.Spec.Class = "large" }, `spec.size: "4" is not offered: must be at most 3, the largest size of the class large`},
		"LargestSizeOfAnAutoscaler": {func(p *machinev1alpha1.NodePool) {
			p.Spec.Size, p.Spec.Autoscaling = nil, &machinev1alpha1.PoolAutoscaling{Max: 11}
		}, `spec.autoscaling.max: "11" is not offered: must be at most 10`},
		"ATaintThatIsTakenOff": {func(p *machinev1alpha1.NodePool) {
			p.Spec.Class, p.Spec.Size, p.Spec.Taints = "large", ptr.To(int32(1)), []machinev1alpha1.Taint{{Key: "network", Effect: "NoSchedule"}}
		}, `spec.taints[0]: "network:NoSchedule" is not offered: must not be a startup taint of the class large`},
		"ABoundOfTheStrategyIsNoMore": {func(p *machinev1alpha1.NodePool) {
			p.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromString("many"))
		}, `spec.strategy.rollingUpdate.maxSurge: "many" must be a number`},
		"AWindowThatNeverComes": {func(p *machinev1alpha1.NodePool) {
			p.Spec.Version = "v1.34.8"
			p.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 2 30 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
		}, `spec.rollout.windows[0].schedule: invalid value "0 2 30 2 *": there is no such day: must come within five years; the Machines that exist stay as they are until then`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool())
			w.settle()
			before := w.replicas()
			tc.edit(w.Pool)
			w.Pool.Generation++
			w.step()
			for _, typ := range []string{"Valid", "Stalled"} {
				if got := condition(w.last, typ); !strings.Contains(got, tc.want) {
					t.Errorf("%s: %s, want %s", typ, got, tc.want)
				}
			}
			if len(w.last.Events) != 1 || !w.last.Events[0].Warning {
				t.Errorf("events %+v", w.last.Events)
			}
			template := w.Deployments[0].Spec.Template.Spec
			if got := w.replicas(); got != before || w.last.Ready || template.ClassRef.Name != "small-1" || template.Version != "v1.35.4" {
				t.Errorf("replicas %s, want %s, ready %t, template %+v", got, before, w.last.Ready, template)
			}
			w.step()
			if len(w.last.Events) != 0 {
				t.Errorf("the warning comes again: %+v", w.last.Events)
			}
		})
	}
	t.Run("ANewPoolGetsNothing", func(t *testing.T) {
		d := Plan(now, observed(pool(func(p *machinev1alpha1.NodePool) { p.Spec.Class = "huge" })))
		if len(d.Deployments) != 0 || len(d.Status.FailureDomains) != 0 {
			t.Errorf("decision %+v", d)
		}
	})
	t.Run("AnOfferWithoutVersions", func(t *testing.T) {
		o := observed(pool())
		o.Offer.Versions = nil
		if got := condition(Plan(now, o), "Valid"); !strings.Contains(got, "the Composition of the pool offers no version") {
			t.Errorf("Valid %s", got)
		}
	})
}

func TestAMachineDeploymentHasWhatIsOfferedAndWhatIsAskedFor(t *testing.T) {
	rollout := machinev1alpha1.Rollout{
		After: ptr.To(metav1.NewTime(now)), DisableScaleDown: true, OnFailure: machinev1alpha1.FailureRollback,
		Windows:   []machinev1alpha1.TimeWindow{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}},
		Blackouts: []machinev1alpha1.TimeWindow{{Schedule: "0 0 24 12 *", Duration: metav1.Duration{Duration: time.Hour}}},
	}
	w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) {
		p.Spec.Class, p.Spec.Size, p.Spec.Paused, p.Spec.Version = "large", ptr.To(int32(1)), true, "v1.34.8"
		p.Spec.Labels = map[string]string{"size": "mine", "tier": "web"}
		p.Spec.Taints = []machinev1alpha1.Taint{{Key: "mine", Effect: "NoExecute"}, {Key: "large", Effect: "NoSchedule", Value: "no"}}
		p.Spec.Strategy.Type = machinev1alpha1.Recreate
		p.Spec.Rollout = rollout
	}))
	w.Offer.Drain = &machinev1alpha1.Drain{Timeout: metav1.Duration{Duration: time.Minute}}
	w.settle()
	d := w.Deployments[0]
	name := names.MachineDeployment("web", "uid", "")
	want := machinev1alpha1.MachineDeploymentSpec{
		Replicas: 1, Paused: true, Strategy: machinev1alpha1.Strategy{Type: machinev1alpha1.Recreate}, Rollout: rollout,
		Selector: machinev1alpha1.Selector{MatchLabels: map[string]machinev1alpha1.LabelValue{machinev1alpha1.LabelDeployment: machinev1alpha1.LabelValue(name)}},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: map[string]machinev1alpha1.LabelValue{machinev1alpha1.LabelDeployment: machinev1alpha1.LabelValue(name), machinev1alpha1.LabelNodePool: "web"}},
			Spec: machinev1alpha1.MachineSpec{
				ClassRef: machinev1alpha1.ClassReference{Name: "large-1"}, Version: "v1.34.8", ClusterRef: machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "eu"},
				Metadata: machinev1alpha1.NodeMetadata{Labels: map[string]string{"size": "large", "tier": "web", machinev1alpha1.LabelNodePool: "web"}},
				Taints: []machinev1alpha1.Taint{
					{Key: "large", Effect: "NoSchedule"}, {Key: "mine", Effect: "NoExecute"},
				},
				StartupTaints: []machinev1alpha1.Taint{{Key: "network", Effect: "NoSchedule"}},
				Drain:         machinev1alpha1.Drain{Timeout: metav1.Duration{Duration: time.Minute}},
			},
		},
	}
	if diff := cmp.Diff(want, d.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if d.Name != name || d.Labels[machinev1alpha1.LabelNodePool] != "web" || d.Namespace != "team" || !slices.Contains(d.Finalizers, machinev1alpha1.FinalizerTerminator) {
		t.Errorf("metadata %+v", d.ObjectMeta)
	}
}

func TestANumberIsRecordedBeforeItIsCarriedOut(t *testing.T) {
	d := Plan(now, observed(pool()))
	if len(d.Deployments) != 0 || d.CallAgain != shared.Soonest || d.Ready {
		t.Errorf("composes %v, called again after %s", d.Deployments, d.CallAgain)
	}
	if len(d.Status.FailureDomains) != 3 || d.Status.FailureDomains[0].DesiredReplicas != 2 {
		t.Errorf("recorded %+v", d.Status.FailureDomains)
	}
}

// resized settles a pool with two Machines per failure domain, and then edits it.
func resized(t *testing.T, edit func(*machinev1alpha1.NodePool), full ...string) *world {
	t.Helper()
	w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(6)) }))
	w.settle()
	for _, f := range full {
		w.full[f] = true
	}
	edit(w.Pool)
	w.Pool.Generation++
	return w
}

// numbers formats the next numbers of the failure domains.
func numbers(d Decision) string {
	var out []string
	for _, s := range d.Status.FailureDomains {
		out = append(out, fmt.Sprintf("%s=%d", s.Name, s.DesiredReplicas))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestAMoveMakesFirstAndTakesThen(t *testing.T) {
	leave := func(surge, unavailable int) func(*machinev1alpha1.NodePool) {
		return func(p *machinev1alpha1.NodePool) {
			p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b", "c"}
			p.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable))}
		}
	}
	for name, tc := range map[string]struct {
		edit  func(*machinev1alpha1.NodePool)
		steps []string
	}{
		"OneAtATimeWithMaxSurge1":     {leave(1, 0), []string{"a=2 b=3 c=2", "a=2 b=3 c=2", "a=1 b=3 c=2", "a=1 b=3 c=2", "a=1 b=3 c=3", "a=1 b=3 c=3", "a=0 b=3 c=3"}},
		"TwoAtATimeWithMaxSurge2":     {leave(2, 0), []string{"a=2 b=3 c=3", "a=2 b=3 c=3", "a=0 b=3 c=3"}},
		"WithMaxUnavailableItTakes":   {leave(0, 1), []string{"a=1 b=2 c=2", "a=1 b=2 c=2", "a=1 b=3 c=2", "a=1 b=3 c=2", "a=0 b=3 c=2", "a=0 b=3 c=2", "a=0 b=3 c=3", "b=3 c=3"}},
		"RecreateSaysNothingOfAMove":  {func(p *machinev1alpha1.NodePool) { leave(0, 0)(p); p.Spec.Strategy.Type = machinev1alpha1.Recreate }, []string{"a=2 b=3 c=2"}},
		"AScaleUpIsDoneAtOnce":        {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) }, []string{"a=3 b=3 c=3"}},
		"AScaleDownIsDoneAtOnce":      {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(3)) }, []string{"a=1 b=1 c=1"}},
		"WhatIsLeftOverDoesNotMove":   {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(7)) }, []string{"a=3 b=2 c=2"}},
		"AnInvalidNumberChangesNoOne": {func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(99)) }, []string{"a=2 b=2 c=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := resized(t, tc.edit)
			for i, want := range tc.steps {
				w.step()
				if got := numbers(w.last); got != want {
					t.Fatalf("step %d: %s, want %s: %s", i, got, want, condition(w.last, "Reconciling"))
				}
			}
		})
	}
	t.Run("ItSaysWhatItDoes", func(t *testing.T) {
		w := resized(t, leave(1, 0))
		w.step()
		if got, want := w.last.Events, []shared.Event{{Reason: machinev1alpha1.ReasonRebalancing, Message: `Machines failure domain "b": 3 instead of 2`}}; !cmp.Equal(got, want) {
			t.Errorf("events %+v", got)
		}
		w.step()
		if got, want := condition(w.last, "Reconciling"), `True Rebalancing 6 of 7 Machines are available; failure domain "c": 2 of 3, failure domain "a" is being left: 2 Machines are left`; got != want {
			t.Errorf("Reconciling %s, want %s", got, want)
		}
		w.settle()
		if got := w.replicas(); got != "b=3 c=3" {
			t.Errorf("replicas %s", got)
		}
	})
}

func TestAnExhaustedFailureDomainKeepsWhatItHas(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) }, "a")
	for range 30 {
		w.step()
	}
	if got := w.replicas(); got != "a=2 b=4 c=3" || !w.last.Ready {
		t.Errorf("replicas %s, ready %t: %s", got, w.last.Ready, condition(w.last, "Reconciling"))
	}
	if got, want := condition(w.last, "CapacityExhausted"), `True CapacityExhausted failure domain "a": CapacityExhausted`; got != want {
		t.Errorf("CapacityExhausted %s, want %s", got, want)
	}
	if e := w.last.Status.FailureDomains[0].Exhausted; e == nil || e.Code != "CapacityExhausted" {
		t.Errorf("failure domains %+v", w.last.Status.FailureDomains)
	}
	t.Run("WithRoomTheNumbersMoveBack", func(t *testing.T) {
		clear(w.full)
		for range 30 {
			for _, d := range w.Deployments {
				w.run(d.MachineDeployment)
			}
			w.step()
		}
		if got := w.replicas(); got != "a=3 b=3 c=3" || !w.last.Ready {
			t.Errorf("replicas %s", got)
		}
		if got, want := condition(w.last, "CapacityExhausted"), "False RoomAvailable"; got != want {
			t.Errorf("CapacityExhausted %s, want %s", got, want)
		}
	})
	t.Run("WhereAllAreExhaustedNothingMoves", func(t *testing.T) {
		w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) }, "a", "b", "c")
		for range 30 {
			w.step()
		}
		if got := w.replicas(); got != "a=3 b=3 c=3" || w.last.Ready {
			t.Errorf("replicas %s, ready %t", got, w.last.Ready)
		}
	})
}

func autoscaled(least, most int32) func(*machinev1alpha1.NodePool) {
	return func(p *machinev1alpha1.NodePool) {
		p.Spec.Size, p.Spec.Autoscaling = nil, &machinev1alpha1.PoolAutoscaling{Min: least, Max: most}
	}
}

// sizes formats the replicas with the bounds that the autoscaler reads.
func (w *world) sizes() string {
	var out []string
	for _, d := range w.Deployments {
		out = append(out, fmt.Sprintf("%s=%d(%s-%s)", domainName(d.MachineDeployment), d.Spec.Replicas,
			d.Annotations[machinev1alpha1.AnnotationNodeGroupMinSize], d.Annotations[machinev1alpha1.AnnotationNodeGroupMaxSize]))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// scale as the autoscaler does.
func (w *world) scale(domain string, n int32) {
	for i, d := range w.Deployments {
		if domainName(d.MachineDeployment) == domain {
			d.Spec.Replicas = n
			d.Generation++
			w.run(d.MachineDeployment)
			w.Deployments[i].ScaledByOthers = true
		}
	}
}

func TestTheBoundsOfAnAutoscalerAreDivided(t *testing.T) {
	w := newWorld(t, pool(autoscaled(4, 7)))
	w.settle()
	if got, want := w.sizes(), "a=2(2-3) b=1(1-2) c=1(1-2)"; got != want {
		t.Fatalf("sizes %s, want %s", got, want)
	}
	if got, want := w.Deployments[0].Annotations[machinev1alpha1.AnnotationCapacityLabels], machinev1alpha1.LabelNodePool+"=web"; got != want {
		t.Errorf("labels of Nodes from zero: %s, want %s", got, want)
	}
	w.scale("a", 3)
	for range 5 {
		w.step()
	}
	if got, want := w.sizes(), "a=3(2-3) b=1(1-2) c=1(1-2)"; got != want {
		t.Errorf("the number of the autoscaler is not left alone: %s, want %s", got, want)
	}
	if s := w.last.Status; s.DesiredReplicas != 5 || !w.last.Ready {
		t.Errorf("status %+v", s)
	}
	t.Run("AnExhaustedOneGivesItsRoomAwayWhenTheAutoscalerHasSeenIt", func(t *testing.T) {
		w.full["a"] = true
		w.scale("a", 1)
		for i := range w.Deployments {
			if domainName(w.Deployments[i].MachineDeployment) == "a" {
				w.Deployments[i].Status.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: "a", Code: "CapacityExhausted"}}
			}
		}
		for range 5 {
			w.step()
		}
		if got, want := w.sizes(), "a=1(1-1) b=2(2-2) c=1(1-2)"; got != want {
			t.Errorf("sizes %s, want %s", got, want)
		}
		if w.last.CallAgain > autoscalerDelay || w.last.Ready {
			t.Errorf("called again after %s, ready %t", w.last.CallAgain, w.last.Ready)
		}
		start := now
		defer func() { now = start }()
		now = now.Add(autoscalerDelay)
		for range 5 {
			w.step()
		}
		if got, want := w.sizes(), "a=1(1-1) b=2(2-3) c=1(1-3)"; got != want {
			t.Errorf("sizes after %s: %s, want %s", autoscalerDelay, got, want)
		}
	})
}

func TestAPoolTakesItsNumbersBackFromTheAutoscaler(t *testing.T) {
	w := newWorld(t, pool(autoscaled(0, 6)))
	w.settle()
	w.scale("a", 2)
	w.scale("b", 2)
	w.step()
	w.Pool.Spec.Size, w.Pool.Spec.Autoscaling = ptr.To(int32(4)), nil
	w.Pool.Generation++
	w.settle()
	if got, want := w.sizes(), "a=2(-) b=1(-) c=1(-)"; got != want {
		t.Errorf("sizes %s, want %s", got, want)
	}
	t.Run("AndGivesThemUpAgain", func(t *testing.T) {
		autoscaled(0, 6)(w.Pool)
		w.Pool.Generation++
		w.settle()
		if got, want := w.sizes(), "a=2(0-2) b=1(0-2) c=1(0-2)"; got != want {
			t.Errorf("sizes %s, want %s", got, want)
		}
	})
}

func TestAPoolThatWasRestoredFindsItsMachineDeployments(t *testing.T) {
	w := newWorld(t, pool())
	w.settle()
	// Another cluster: no status, another UID.
	w.Pool.UID, w.Pool.Status = "another", machinev1alpha1.NodePoolStatus{}
	var before []string
	for _, d := range w.Deployments {
		before = append(before, d.Name)
	}
	d := Plan(now, w.Observed)
	var after []string
	for _, md := range d.Deployments {
		after = append(after, md.Name)
		if md.Spec.Replicas == 0 {
			t.Errorf("MachineDeployment %s has no replicas", md.Name)
		}
	}
	if !slices.Equal(before, after) {
		t.Errorf("MachineDeployments %v, want %v", after, before)
	}
}

func TestAPoolReportsWhatItsMachineDeploymentsLack(t *testing.T) {
	edit := func(t *testing.T, change func(*machinev1alpha1.MachineDeployment)) Decision {
		t.Helper()
		w := newWorld(t, pool())
		w.settle()
		change(w.Deployments[1].MachineDeployment)
		return Plan(now, w.Observed)
	}
	set := func(typ, status, reason, message string) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) {
			meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: typ, Status: metav1.ConditionStatus(status), Reason: reason, Message: message})
			meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", ObservedGeneration: d.Generation})
		}
	}
	name := names.MachineDeployment("web", "uid", "b")
	for what, tc := range map[string]struct {
		change func(*machinev1alpha1.MachineDeployment)
		typ    string
		want   string
	}{
		"Stalled":        {set("Stalled", "True", "ClassNotFound", "there is no class"), "Stalled", "True MachineDeploymentStalled MachineDeployment " + name + ": ClassNotFound: there is no class"},
		"StalledIsNoRun": {set("Stalled", "True", "ClassNotFound", "there is no class"), "Reconciling", "False MachineDeploymentStalled"},
		"Failing":        {set("ReplicaFailure", "True", "Throttled", "slow down"), "ReplicaFailure", "True MachineDeploymentFailing MachineDeployment " + name + ": Throttled: slow down"},
		"Scaling":        {set("Available", "True", "X", ""), "Reconciling", "True Scaling 4 of 4 Machines are available"},
		"Unavailable":    {func(d *machinev1alpha1.MachineDeployment) { d.Status.AvailableReplicas = 0 }, "Available", "False MinimumReplicasUnavailable 3 of 4 Machines are available, at least 4 must be"},
		"Enough":         {func(*machinev1alpha1.MachineDeployment) {}, "Available", "True MinimumReplicasAvailable 4 of 4 Machines are available, at least 4 must be"},
		"RollingOut":     {func(d *machinev1alpha1.MachineDeployment) { d.Status.UpdatedReplicas = 0; set("X", "True", "X", "")(d) }, "Reconciling", "True RollingOut 3 of 4 Machines are updated; 4 of 4 Machines are available"},
		"NotYetSeen": {func(d *machinev1alpha1.MachineDeployment) {
			d.Generation++
			set("Stalled", "True", "ClassNotFound", "")(d)
		}, "Stalled", "False NotStalled"},
	} {
		t.Run(what, func(t *testing.T) {
			if got := condition(edit(t, tc.change), tc.typ); got != tc.want {
				t.Errorf("%s %s\nwant %s", tc.typ, got, tc.want)
			}
		})
	}
	t.Run("Held", func(t *testing.T) {
		w := newWorld(t, pool())
		w.settle()
		set("Progressing", "Unknown", machinev1alpha1.ReasonOutsideWindow, "from 02:00 on")(w.Deployments[1].MachineDeployment)
		name := w.Deployments[1].Name
		if got, want := condition(Plan(now, w.Observed), "Reconciling"), "False OutsideWindow MachineDeployment "+name+": OutsideWindow: from 02:00 on"; got != want {
			t.Errorf("Reconciling %s, want %s", got, want)
		}
		// Another failure domain is not held.
		set("Progressing", "True", machinev1alpha1.ReasonMachineSetUpdated, "")(w.Deployments[0].MachineDeployment)
		if got := condition(Plan(now, w.Observed), "Reconciling"); !strings.HasPrefix(got, "True ") {
			t.Errorf("Reconciling %s while a failure domain rolls", got)
		}
	})
	t.Run("Paused", func(t *testing.T) {
		w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Paused = true }))
		w.settle()
		set("Progressing", "Unknown", machinev1alpha1.ReasonMachineDeploymentPaused, "")(w.Deployments[0].MachineDeployment)
		d := Plan(now, w.Observed)
		if got, want := condition(d, "Reconciling"), "False NodePoolPaused spec.paused is true: no Machine is replaced or updated until it is false"; got != want {
			t.Errorf("Reconciling %s, want %s", got, want)
		}
	})
}

func TestAMachineDeploymentThatIsForgottenIsComposedBeforeItIsDeleted(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"b"} })
	for range 40 {
		w.step()
		for i, d := range w.Deployments {
			if d.Spec.Replicas == 0 {
				w.Deployments[i].Observed = false
			}
		}
	}
	if got := w.replicas(); got != "a=0 b=6 c=0" {
		t.Errorf("replicas %s", got)
	}
	w.settle()
	if got := w.replicas(); got != "b=6" {
		t.Errorf("replicas %s", got)
	}
}

func TestTheNumberOfADecisionDistinguishesEqualNumbers(t *testing.T) {
	w := newWorld(t, pool())
	w.settle()
	for _, size := range []int32{5, 4} {
		w.Pool.Spec.Size = ptr.To(size)
		w.Pool.Generation++
		w.step()
	}
	d := w.last.Status.FailureDomains[1]
	if d.DesiredReplicas != 1 && d.DesiredReplicas != 2 || d.Decision < 2 {
		t.Errorf("failure domain %+v", d)
	}
	// A view from before the two decisions does not prove that the second one was carried out.
	old := w.Deployments[1].MachineDeployment.DeepCopy()
	old.Annotations[machinev1alpha1.AnnotationPoolDecision] = strconv.FormatInt(d.Decision-2, 10)
	w.Deployments[1].MachineDeployment = old
	f := fleetOf(now, w.Observed)
	if f.members[1].hasActed() {
		t.Error("an old view counts as carried out")
	}
}
