package pool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	shared "github.com/drover-dev/drover/internal/plan"
)

func domains(all ...machinev1alpha1.FailureDomain) func(*machinev1alpha1.NodePool) {
	return func(p *machinev1alpha1.NodePool) { p.Spec.FailureDomains = all }
}

// of returns the status of a failure domain.
func of(t *testing.T, d Decision, domain string) machinev1alpha1.PoolDomain {
	t.Helper()
	i := slices.IndexFunc(d.Status.FailureDomains, func(s machinev1alpha1.PoolDomain) bool { return s.Name == domain })
	if i < 0 {
		t.Fatalf("no failure domain %q in %+v", domain, d.Status.FailureDomains)
	}
	return d.Status.FailureDomains[i]
}

// deployment returns the MachineDeployment of a failure domain.
func (w *world) deployment(domain string) *Deployment {
	w.t.Helper()
	i := slices.IndexFunc(w.Deployments, func(d Deployment) bool { return domainName(d.MachineDeployment) == domain })
	if i < 0 {
		w.t.Fatalf("no MachineDeployment in %q", domain)
	}
	return &w.Deployments[i]
}

func TestADecisionRecordsWhatThereMayBeMeanwhile(t *testing.T) {
	t.Run("AfterAScaleUp", func(t *testing.T) {
		w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) })
		before := of(t, Decision{Status: w.Pool.Status}, "a")
		w.step()
		if s := of(t, w.last, "a"); s.DesiredReplicas != 3 || s.Most != 3 || s.Least == nil || *s.Least != 2 || s.Decision != before.Decision+1 || s.LoweredTime != nil {
			t.Errorf("recorded %+v", s)
		}
		w.settle()
		if s := of(t, w.last, "a"); s.Most != 0 || s.Least != nil {
			t.Errorf("when it is carried out: %+v", s)
		}
	})
	t.Run("AfterAScaleDown", func(t *testing.T) {
		w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(3)) })
		w.step()
		if s := of(t, w.last, "a"); s.DesiredReplicas != 1 || s.Most != 2 || s.Least != nil || s.LoweredTime != nil {
			t.Errorf("recorded %+v", s)
		}
	})
	t.Run("AfterAScaleDownInTheMiddleOfAScaleUp", func(t *testing.T) {
		w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) })
		w.last = Plan(now, w.Observed)
		w.Pool.Status.FailureDomains = w.last.Status.FailureDomains
		w.Pool.Spec.Size = ptr.To(int32(8))
		w.last = Plan(now, w.Observed)
		if s := of(t, w.last, "c"); s.DesiredReplicas != 2 || s.Most != 3 || s.Least != nil {
			t.Errorf("recorded %+v", s)
		}
		w.Pool.Spec.Size = ptr.To(int32(9))
		w.Pool.Status.FailureDomains = w.last.Status.FailureDomains
		for i := range w.Pool.Status.FailureDomains {
			w.Pool.Status.FailureDomains[i].Least = ptr.To(int32(1))
		}
		w.Pool.Spec.Size = ptr.To(int32(6))
		w.last = Plan(now, w.Observed)
		if s := of(t, w.last, "a"); s.DesiredReplicas != 2 || s.Least == nil || *s.Least != 1 {
			t.Errorf("recorded %+v", s)
		}
	})
	t.Run("NothingIsTakenWhileTooFewAreAvailable", func(t *testing.T) {
		w := resized(t, domains("b", "c"))
		w.deployment("b").Status.AvailableReplicas = 1
		w.step()
		w.deployment("b").Status.AvailableReplicas = 1
		w.last = Plan(now, w.Observed)
		if got, want := numbers(w.last), "a=2 b=3 c=2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("WhatIsNotAvailableIsTakenFirst", func(t *testing.T) {
		w := resized(t, domains("b", "c"))
		w.deployment("a").Status.AvailableReplicas = 1
		w.last = Plan(now, w.Observed)
		if got, want := numbers(w.last), "a=1 b=3 c=2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("WhatIsSpareIsTakenOnce", func(t *testing.T) {
		w := resized(t, func(p *machinev1alpha1.NodePool) {
			p.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt(0)), MaxUnavailable: ptr.To(intstr.FromInt(1))}
			p.Spec.FailureDomains = []machinev1alpha1.FailureDomain{"c"}
		})
		w.step()
		if got, want := numbers(w.last), "a=2 b=1 c=2"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestWhatIsLeftOverStaysWhereItIs(t *testing.T) {
	w := newWorld(t, pool(domains("b", "a"), func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(3)) }))
	w.settle()
	domains("a", "b")(w.Pool)
	w.Pool.Generation++
	w.settle()
	if got, want := w.replicas(), "a=1 b=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAnExhaustedFailureDomainIsScaledDownLikeTheOthers: it keeps the Machines that it has, but not
// more than its share of a smaller pool.
func TestAnExhaustedFailureDomainIsScaledDownLikeTheOthers(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(3)) })
	w.deployment("a").Status.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: "a", Code: "CapacityExhausted"}}
	w.last = Plan(now, w.Observed)
	if got, want := numbers(w.last), "a=1 b=1 c=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWhereAllFailureDomainsAreExhaustedAnUnevenNumberStays(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(6)) })
	for i, n := range []int32{4, 1, 1} {
		w.Pool.Status.FailureDomains[i].DesiredReplicas = n
		d := w.Deployments[i]
		d.Spec.Replicas = n
		w.run(d.MachineDeployment)
		d.Status.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: domainName(d.MachineDeployment), Code: "CapacityExhausted"}}
	}
	w.last = Plan(now, w.Observed)
	if got, want := numbers(w.last), "a=4 b=1 c=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheMachineDeploymentOfAFailureDomainIsFound(t *testing.T) {
	named := func(name, domain string) Deployment {
		d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"}}
		d.Spec.Template.Spec.FailureDomain = &domain
		d.Spec.Selector.MatchLabels = map[string]machinev1alpha1.LabelValue{"of": machinev1alpha1.LabelValue(name)}
		d.Spec.Replicas = 1
		return Deployment{MachineDeployment: d, Observed: true}
	}
	recorded := func(name, deployment string) machinev1alpha1.PoolDomain {
		return machinev1alpha1.PoolDomain{Name: name, MachineDeployment: deployment, DesiredReplicas: 1}
	}
	for name, tc := range map[string]struct {
		status []machinev1alpha1.PoolDomain
		there  []Deployment
		want   string
	}{
		"ByItsFailureDomain":                   {nil, []Deployment{named("restored", "a"), named("other", "b")}, "restored"},
		"TheFirstOfSeveral":                    {nil, []Deployment{named("z", "a"), named("m", "a")}, "m"},
		"ByTheStatus":                          {[]machinev1alpha1.PoolDomain{recorded("a", "z")}, []Deployment{named("z", "a"), named("m", "a")}, "z"},
		"NotByAStatusOfAnotherFailureDomain":   {[]machinev1alpha1.PoolDomain{recorded("b", "z")}, []Deployment{named("z", "b"), named("m", "a")}, "m"},
		"NotByAStatusOfOneThatMoved":           {[]machinev1alpha1.PoolDomain{recorded("a", "z")}, []Deployment{named("z", "b"), named("m", "a")}, "m"},
		"NotByAStatusOfWhatIsNotThere":         {[]machinev1alpha1.PoolDomain{recorded("a", "gone")}, []Deployment{named("m", "a")}, "m"},
		"ByItsOwnNameIfItIsNotSeenYet":         {[]machinev1alpha1.PoolDomain{recorded("a", "web-a-5n98v")}, []Deployment{named("m", "b")}, "web-a-"},
		"WithoutAnyItGetsTheNameOfThePool":     {nil, nil, "web-a-"},
		"ItsOwnOneOfAnotherDomainIsNoObstacle": {[]machinev1alpha1.PoolDomain{recorded("b", "web-b-x")}, nil, "web-a-"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pool(domains("a"))
			p.Status.FailureDomains = tc.status
			o := observed(p)
			o.Deployments = tc.there
			f := fleetOf(now, o)
			if got := f.members[0].name; !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s, want %s", got, tc.want)
			}
			for _, m := range f.members {
				if m.is == nil {
					continue
				}
				if got := m.desired.Spec.Selector.MatchLabels["of"]; string(got) != m.name {
					t.Errorf("the selector of %s became %q", m.name, got)
				}
			}
		})
	}
}

func TestALeftFailureDomainKeepsItsTemplate(t *testing.T) {
	w := resized(t, domains("b", "c"))
	before := w.deployment("a").Annotations[machinev1alpha1.AnnotationAppliedHash]
	w.Pool.Spec.Version = "v1.34.8"
	w.step()
	w.step()
	d := w.deployment("a")
	if d.Spec.Template.Spec.Version != "v1.35.4" || d.Annotations[machinev1alpha1.AnnotationAppliedHash] != before || before == "" {
		t.Errorf("version %s, hash %q, before %q", d.Spec.Template.Spec.Version, d.Annotations[machinev1alpha1.AnnotationAppliedHash], before)
	}
	if got := w.deployment("b").Spec.Template.Spec.Version; got != "v1.34.8" {
		t.Errorf("version %s", got)
	}
}

func TestAnotherTemplateIsNotReadyUntilItIsApplied(t *testing.T) {
	w := newWorld(t, pool())
	w.settle()
	hash := func() string { return w.deployment("a").Annotations[machinev1alpha1.AnnotationAppliedHash] }
	before := hash()
	w.Pool.Spec.Size = ptr.To(int32(7))
	w.settle()
	if hash() != before {
		t.Error("the hash has the replicas")
	}
	w.Pool.Spec.Labels = map[string]string{"a": "b"}
	w.Pool.Generation++
	d := Plan(now, w.Observed)
	if d.Ready || d.Status.UpdatedReplicas != 0 || !strings.HasPrefix(condition(d, "Reconciling"), "True RollingOut 0 of 7 Machines are updated") {
		t.Errorf("ready %t: %s", d.Ready, condition(d, "Reconciling"))
	}
	w.settle()
	if hash() == before {
		t.Error("the hash does not have the labels")
	}
}

func TestAStatusSumsUp(t *testing.T) {
	w := newWorld(t, pool())
	w.settle()
	for i, d := range w.Deployments {
		n := int32(1) << (4 * i)
		s := &d.Status
		s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.TerminatingReplicas, s.UnhealthyReplicas = n, 2*n, 3*n, 4*n, 5*n, 6*n
	}
	s := Plan(now, w.Observed).Status
	got := []int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.TerminatingReplicas, s.UnhealthyReplicas}
	if want := []int32{0x111, 0x222, 0x333, 0x444, 0x555, 0x666}; !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
	if d := s.FailureDomains[1]; d.Replicas != 0x10 || d.UpdatedReplicas != 0x20 || d.AvailableReplicas != 0x40 {
		t.Errorf("failure domain %+v", d)
	}
}

func TestHowManyMustBeAvailable(t *testing.T) {
	one := machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt(0)), MaxUnavailable: ptr.To(intstr.FromInt(1))}
	w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Strategy.RollingUpdate = one }))
	w.settle()
	w.deployment("b").Status.AvailableReplicas = 0
	if got, want := condition(Plan(now, w.Observed), "Available"), "True MinimumReplicasAvailable 3 of 4 Machines are available, at least 3 must be"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w = newWorld(t, pool(autoscaled(4, 9), func(p *machinev1alpha1.NodePool) { p.Spec.Strategy.RollingUpdate = one }))
	w.settle()
	w.deployment("b").Status.AvailableReplicas = 0
	if got, want := condition(Plan(now, w.Observed), "Available"), "True MinimumReplicasAvailable 3 of 4 Machines are available, at least 3 must be"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAPausedPoolSaysSoOnlyIfThatIsAllThatHoldsIt(t *testing.T) {
	paused := func(d *machinev1alpha1.MachineDeployment) {
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: "Progressing", Status: "Unknown", Reason: machinev1alpha1.ReasonMachineDeploymentPaused})
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: "Ready", Status: "False", ObservedGeneration: d.Generation})
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"ARolloutIsHeld":              {func(*world) {}, machinev1alpha1.ReasonNodePoolPaused},
		"ItIsScaled":                  {func(w *world) { w.Pool.Spec.Size = ptr.To(int32(9)) }, machinev1alpha1.ReasonScaling},
		"ItMoves":                     {func(w *world) { domains("b", "c")(w.Pool) }, machinev1alpha1.ReasonRebalancing},
		"AnotherTemplateIsNotApplied": {func(w *world) { w.Pool.Spec.Labels = map[string]string{"a": "b"} }, machinev1alpha1.ReasonRollingOut},
		"ItIsNotSeenYet":              {func(w *world) { w.deployment("a").Generation++ }, machinev1alpha1.ReasonRollingOut},
		"NobodySaysThatItIsPaused": {func(w *world) {
			meta.RemoveStatusCondition(&w.deployment("a").Status.Conditions, "Progressing")
		}, machinev1alpha1.ReasonScaling},
		"AnotherReasonHoldsIt": {func(w *world) {
			meta.SetStatusCondition(&w.deployment("a").Status.Conditions, metav1.Condition{Type: "Progressing", Status: "True", Reason: "X"})
		}, machinev1alpha1.ReasonScaling},
		"ItIsNotPaused": {func(w *world) { w.Pool.Spec.Paused = false }, machinev1alpha1.ReasonRollingOut},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Paused = true }))
			w.settle()
			paused(w.deployment("a").MachineDeployment)
			tc.change(w)
			if got := condition(Plan(now, w.Observed), "Reconciling"); strings.Fields(got)[1] != tc.want {
				t.Errorf("Reconciling %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAMoveFromAnExhaustedFailureDomainIsExplained(t *testing.T) {
	w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) }, "a")
	if got := condition(Plan(now, w.Observed), "CapacityExhausted"); got != "" {
		t.Errorf("a pool that never met with it: %s", got)
	}
	w.step()
	w.step()
	if got, want := condition(w.last, "Reconciling"), `True Scaling 6 of 9 Machines are available`; got != want {
		t.Errorf("Reconciling %s, want %s", got, want)
	}
	w.step()
	if got, want := condition(w.last, "Reconciling"), `failure domain "a", which is exhausted (CapacityExhausted): 3 of 2, failure domain "b": 3 of 4`; !strings.HasSuffix(got, want) || !strings.HasPrefix(got, "True Rebalancing") {
		t.Errorf("Reconciling %s, want %s", got, want)
	}
}

func TestWhenToLookAgain(t *testing.T) {
	settled := func(t *testing.T, edits ...func(*machinev1alpha1.NodePool)) *world {
		t.Helper()
		w := newWorld(t, pool(edits...))
		w.settle()
		return w
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   time.Duration
	}{
		"AtRest":                     {func(*world) {}, shared.AtRest},
		"AGenerationIsNotReported":   {func(w *world) { w.Pool.Generation++ }, shared.Soonest},
		"ADecisionIsToBeCarriedOut":  {func(w *world) { w.Pool.Spec.Size = ptr.To(int32(5)) }, shared.Soonest},
		"AMachineIsNotThere":         {func(w *world) { w.deployment("a").Status.Conditions[0].Status = "False" }, shared.InFlight},
		"AMachineTerminates":         {func(w *world) { w.deployment("a").Status.TerminatingReplicas = 1 }, shared.InFlight},
		"ATimeOfAPoolWithoutAnyUser": {func(w *world) { w.Pool.Status.FailureDomains[0].LoweredTime = &metav1.Time{Time: now} }, shared.AtRest},
	} {
		t.Run(name, func(t *testing.T) {
			w := settled(t)
			tc.change(w)
			if got := Plan(now, w.Observed).CallAgain; got != tc.want {
				t.Errorf("after %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("TheAutoscalerHasSeenAMaximum", func(t *testing.T) {
		w := settled(t, autoscaled(0, 6), domains("a", "b"))
		domains("a", "b", "c")(w.Pool)
		w.Pool.Generation++
		for range 4 {
			w.step()
		}
		if got := w.last.CallAgain; got != autoscalerDelay {
			t.Errorf("after %s, want %s", got, autoscalerDelay)
		}
		if got := Plan(now.Add(10*time.Second), w.Observed).CallAgain; got != autoscalerDelay-10*time.Second {
			t.Errorf("after %s", got)
		}
	})
}

func TestARoomIsGivenOnceAndWhenItIsFree(t *testing.T) {
	start := now
	defer func() { now = start }()
	w := newWorld(t, pool(autoscaled(0, 8), domains("a", "b")))
	w.Offer.Classes[0].FailureDomains = []machinev1alpha1.FailureDomain{"a", "b", "c", "d"}
	w.settle()
	w.scale("a", 4)
	w.scale("b", 1)
	domains("a", "b", "c", "d")(w.Pool)
	w.Pool.Generation++
	for i, want := range []string{
		// The autoscaler may still scale b to 4.
		"a=4(0-2) b=1(0-2) c=0(0-0) d=0(0-0)",
		"a=4(0-2) b=1(0-2) c=0(0-2) d=0(0-0)",
	} {
		for range 6 {
			w.step()
		}
		if got := w.sizes(); got != want {
			t.Fatalf("look %d: %s, want %s", i, got, want)
		}
		now = now.Add(autoscalerDelay)
	}
	w.scale("a", 3)
	for range 6 {
		w.step()
	}
	if got, want := w.sizes(), "a=3(0-2) b=1(0-2) c=0(0-2) d=0(0-1)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s := of(t, w.last, "a"); s.Most != 0 || s.LoweredTime == nil {
		t.Errorf("what the autoscaler has seen: %+v", s)
	}
}

func TestAFailureDomainThatTheAutoscalerLosesIsEmptiedAFewAtATime(t *testing.T) {
	for name, tc := range map[string]struct {
		surge, unavailable int
		want               []int32
	}{
		"OneByOne":          {1, 0, []int32{3, 2, 1, 0}},
		"ByMaxSurge":        {2, 0, []int32{3, 1, 0}},
		"ByMaxUnavailable":  {1, 3, []int32{3, 0}},
		"OneIfNothingIsSet": {0, 0, []int32{3, 2, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(autoscaled(0, 6), domains("a", "b"), func(p *machinev1alpha1.NodePool) {
				p.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt(tc.surge)), MaxUnavailable: ptr.To(intstr.FromInt(tc.unavailable))}
			}))
			w.settle()
			w.scale("a", 3)
			w.step()
			domains("b")(w.Pool)
			w.Pool.Generation++
			var got []int32
			for range 30 {
				w.step()
				i := slices.IndexFunc(w.Deployments, func(d Deployment) bool { return domainName(d.MachineDeployment) == "a" })
				if i < 0 {
					break
				}
				if n := w.Deployments[i].Spec.Replicas; len(got) == 0 || got[len(got)-1] != n {
					got = append(got, n)
				}
				if w.Deployments[i].Annotations[machinev1alpha1.AnnotationNodeGroupMaxSize] != "" && len(got) > 1 {
					t.Errorf("it is still a group: %s", w.sizes())
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("replicas %v, want %v", got, tc.want)
			}
		})
	}
	t.Run("NotWhileOneTerminates", func(t *testing.T) {
		w := newWorld(t, pool(autoscaled(0, 6), domains("a", "b")))
		w.settle()
		w.scale("a", 3)
		w.step()
		domains("b")(w.Pool)
		w.Pool.Generation++
		w.deployment("a").Status.TerminatingReplicas = 1
		for range 10 {
			w.step()
		}
		if got := w.deployment("a").Spec.Replicas; got != 3 {
			t.Errorf("replicas %d", got)
		}
	})
}

func TestEventsOfAPoolWithAutoscaling(t *testing.T) {
	d := Plan(now, observed(pool(autoscaled(1, 5), domains("a", "b"))))
	want := []shared.Event{{Reason: machinev1alpha1.ReasonScaling, Message: `Machines failure domain "a": 1 to 3, failure domain "b": 0 to 2`}}
	if diff := cmp.Diff(want, d.Events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w := newWorld(t, pool(autoscaled(1, 5), domains("a", "b")))
	w.settle()
	w.step()
	if len(w.last.Events) > 0 {
		t.Errorf("events at rest: %+v", w.last.Events)
	}
	w.Pool.Spec.Autoscaling.Min = 2
	w.step()
	if got, want := fmt.Sprint(w.last.Events), `failure domain "b": 1 to 2}]`; !strings.HasSuffix(got, want) || strings.Contains(got, `"a"`) {
		t.Errorf("events %s", got)
	}
}

func TestScalingIsNoMove(t *testing.T) {
	for name, tc := range map[string]struct {
		size int32
		want string
	}{"Up": {7, "a=3 b=2 c=2"}, "Down": {5, "a=2 b=2 c=1"}} {
		t.Run(name, func(t *testing.T) {
			w := resized(t, func(p *machinev1alpha1.NodePool) { p.Spec.Size = &tc.size })
			w.step()
			if len(w.last.Events) != 1 || w.last.Events[0].Reason != machinev1alpha1.ReasonScaling || numbers(w.last) != tc.want {
				t.Errorf("%s, want %s, events %+v", numbers(w.last), tc.want, w.last.Events)
			}
			if got := condition(w.last, "Reconciling"); !strings.HasPrefix(got, "True Scaling") {
				t.Errorf("Reconciling %s", got)
			}
		})
	}
}

func TestWhatIsTakenIsNoMoreThanTheGoal(t *testing.T) {
	w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(9)) }))
	w.settle()
	w.deployment("b").Status.AvailableReplicas = 2
	w.Pool.Spec.Size = ptr.To(int32(3))
	if got, want := numbers(Plan(now, w.Observed)), "a=1 b=1 c=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAMoveIsDescribed(t *testing.T) {
	w := resized(t, domains("b", "c"))
	w.step()
	// Available depends on the size, not on the Machines that move.
	if got, want := condition(w.last, "Available"), "6 of 7 Machines are available, at least 6 must be"; !strings.HasSuffix(got, want) {
		t.Errorf("Available %s, want %s", got, want)
	}
	w.step()
	w.deployment("a").Status.TerminatingReplicas = 1
	d := Plan(now, w.Observed)
	if got, want := condition(d, "Reconciling"), `failure domain "a" is being left: 3 Machines are left`; !strings.HasSuffix(got, want) {
		t.Errorf("Reconciling %s, want %s", got, want)
	}
}

func TestAPoolThatNeverMetWithAnExhaustedFailureDomainDoesNotSpeakOfIt(t *testing.T) {
	if got := condition(Plan(now, observed(pool())), "CapacityExhausted"); got != "" {
		t.Errorf("CapacityExhausted %s", got)
	}
}

func TestAPoolIsNotReady(t *testing.T) {
	t.Run("WhileItIsNotValidEvenIfItWantsNone", func(t *testing.T) {
		w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) { p.Spec.Size = ptr.To(int32(0)) }))
		w.settle()
		w.Pool.Spec.Class = "huge"
		if d := Plan(now, w.Observed); d.Ready {
			t.Error("it is ready")
		}
	})
	t.Run("WhileAnotherMinimumIsNotReportedYet", func(t *testing.T) {
		w := newWorld(t, pool(autoscaled(0, 6)))
		w.settle()
		w.Pool.Spec.Autoscaling.Min = 3
		if d := Plan(now, w.Observed); d.Ready {
			t.Error("it is ready")
		}
	})
}

func TestAPoolThatIsNotValidAfterARestoreKeepsAll(t *testing.T) {
	w := newWorld(t, pool())
	w.settle()
	w.Pool.Status, w.Pool.Spec.Class = machinev1alpha1.NodePoolStatus{}, "huge"
	if d := Plan(now, w.Observed); len(d.Deployments) != 3 {
		t.Errorf("composes %d MachineDeployments", len(d.Deployments))
	}
}

func TestAFailureDomainWithoutMachinesIsForgotten(t *testing.T) {
	w := newWorld(t, pool(domains("a")))
	w.Pool.Status.FailureDomains = []machinev1alpha1.PoolDomain{{Name: "b", MachineDeployment: names.MachineDeployment("web", "uid", "b")}}
	if d := Plan(now, w.Observed); len(d.Status.FailureDomains) != 1 || d.Status.FailureDomains[0].Name != "a" {
		t.Errorf("failure domains %+v", d.Status.FailureDomains)
	}
}

func TestALargerNumberOfBeforeIsRemembered(t *testing.T) {
	w := newWorld(t, pool(domains("a")))
	w.Pool.Status.FailureDomains = []machinev1alpha1.PoolDomain{{Name: "a", MachineDeployment: names.MachineDeployment("web", "uid", "a"), DesiredReplicas: 9}}
	m := fleetOf(now, w.Observed).members[0]
	if m.decided.DesiredReplicas != 5 || m.decided.Most != 9 {
		t.Errorf("decided %+v", m.decided)
	}
	w.Pool.Status.FailureDomains[0].DesiredReplicas = 4
	if m := fleetOf(now, w.Observed).members[0]; m.decided.DesiredReplicas != 4 || m.decided.Most != 0 {
		t.Errorf("decided %+v", m.decided)
	}
}

func TestALargerMaximumIsDividedAtOnce(t *testing.T) {
	w := newWorld(t, pool(autoscaled(0, 4), domains("a", "b")))
	w.settle()
	for _, s := range w.last.Status.FailureDomains {
		if s.LoweredTime != nil || s.Most != 0 {
			t.Errorf("nothing was lowered: %+v", s)
		}
	}
	if ref := w.deployment("a").Spec.Template.Spec.InfrastructureRef; ref == nil || ref.Name != w.deployment("a").Name {
		t.Errorf("infrastructureRef %+v", ref)
	}
	w.Pool.Spec.Autoscaling.Max = 7
	d := Plan(now, w.Observed)
	if a, b := *of(t, d, "a").MaxSize, *of(t, d, "b").MaxSize; a != 4 || b != 3 {
		t.Errorf("maxima %d and %d", a, b)
	}
}

func TestNothingIsTakenThatWasNotReportedYet(t *testing.T) {
	w := newWorld(t, pool(autoscaled(0, 6), domains("a", "b")))
	w.settle()
	w.scale("a", 3)
	w.step()
	domains("b")(w.Pool)
	w.Pool.Generation++
	w.step()
	w.step()
	reported := w.deployment("a").Spec.Replicas
	w.deployment("a").Status.ObservedGeneration--
	w.last = Plan(now, w.Observed)
	if got := of(t, w.last, "a").DesiredReplicas; got != reported {
		t.Errorf("%d Machines shall stay, want %d", got, reported)
	}
}
