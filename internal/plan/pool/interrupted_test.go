package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func sized(n int32) func(*machinev1alpha1.NodePool) {
	return func(p *machinev1alpha1.NodePool) { p.Spec.Size, p.Spec.Autoscaling = &n, nil }
}

func bounds(surge, unavailable int) func(*machinev1alpha1.NodePool) {
	return func(p *machinev1alpha1.NodePool) {
		p.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt(surge)), MaxUnavailable: ptr.To(intstr.FromInt(unavailable))}
	}
}

// record a decision without carrying it out.
func (w *world) record() {
	w.last = Plan(now, w.Observed)
	w.Pool.Status.FailureDomains = w.last.Status.FailureDomains
}

func TestAnAutoscalerInTheMiddleOfAScaleDownMakesNoMoreMachinesThanItsMaximum(t *testing.T) {
	w := newWorld(t, pool(autoscaled(6, 6), bounds(0, 1)))
	w.settle()
	sized(1)(w.Pool)
	w.record()
	if got, want := numbers(w.last), "a=1 b=0 c=0"; got != want {
		t.Fatalf("numbers %s, want %s", got, want)
	}
	// This reconcile still carries out the smaller numbers, so that Machines will terminate.
	autoscaled(6, 6)(w.Pool)
	w.step()
	if got, want := numbers(w.last), "a=1 b=0 c=0"; got != want {
		t.Errorf("numbers %s, want %s: six Machines may exist", got, want)
	}
	for _, d := range w.Deployments {
		d.Status.TerminatingReplicas = 2 - d.Spec.Replicas
	}
	for range 3 {
		w.step()
	}
	if got, want := numbers(w.last), "a=1 b=0 c=0"; got != want {
		t.Errorf("numbers %s, want %s: five Machines terminate", got, want)
	}
	w.deployment("b").Status.TerminatingReplicas = 1
	w.step()
	if got, want := numbers(w.last), "a=1 b=1 c=0"; got != want {
		t.Errorf("numbers %s, want %s: four Machines terminate", got, want)
	}
	for _, d := range w.Deployments {
		d.Status.TerminatingReplicas = 0
	}
	w.settle()
	if got, want := w.sizes(), "a=2(2-2) b=2(2-2) c=2(2-2)"; got != want {
		t.Errorf("sizes %s, want %s", got, want)
	}
}

func TestAPoolThatLosesItsAutoscalerCountsWhatThatMayStillMake(t *testing.T) {
	start := now
	defer func() { now = start }()
	w := newWorld(t, pool(autoscaled(0, 6), domains("a", "b")))
	w.settle()
	sized(6)(w.Pool)
	domains("b", "c")(w.Pool)
	w.Pool.Generation++
	for range 6 {
		w.step()
		if got, want := numbers(w.last), "a=0 b=3 c=1"; got != want {
			t.Errorf("numbers %s, want %s: the autoscaler may still scale the failure domain a to 3", got, want)
		}
	}
	if s := of(t, w.last, "a"); s.PreviousMaxSize != 3 || s.LoweredTime == nil || !s.LoweredTime.Time.Equal(now) {
		t.Errorf("recorded %+v", s)
	}
	now = now.Add(autoscalerDelay)
	w.settle()
	if got, want := w.replicas(), "b=3 c=3"; got != want {
		t.Errorf("replicas %s, want %s", got, want)
	}
	if s := of(t, w.last, "b"); s.PreviousMaxSize != 0 {
		t.Errorf("when the autoscaler has seen it: %+v", s)
	}
}

func TestAPoolThatGetsASmallerMaximumRemembersTheMachinesItHad(t *testing.T) {
	w := newWorld(t, pool(sized(9)))
	w.settle()
	autoscaled(0, 3)(w.Pool)
	w.record()
	if s := of(t, w.last, "a"); s.DesiredReplicas != 1 || s.Most != 3 {
		t.Errorf("recorded %+v", s)
	}
}

func TestAMinimumMakesNoMachinesInTheRoomOfThoseThatTerminate(t *testing.T) {
	w := newWorld(t, pool(autoscaled(0, 6), domains("a", "b")))
	w.settle()
	w.deployment("b").Status.TerminatingReplicas = 5
	autoscaled(6, 6)(w.Pool)
	w.record()
	if got, want := numbers(w.last), "a=2 b=0"; got != want {
		t.Errorf("numbers %s, want %s: five Machines terminate of six and maxSurge 1", got, want)
	}
}

func TestAMachineDeploymentThatIsNotSeenYetCountsWith(t *testing.T) {
	for name, tc := range map[string]struct {
		pool *machinev1alpha1.NodePool
		edit func(*machinev1alpha1.PoolDomain)
		want string
	}{
		"TheMachinesThatItWasToHaveBefore": {
			pool(sized(6)),
			func(d *machinev1alpha1.PoolDomain) { d.DesiredReplicas, d.Most = 0, 2 },
			"a=0 b=3 c=2",
		},
		"TheMachinesThatAnAutoscalerMayHaveMade": {
			pool(autoscaled(0, 6)),
			func(d *machinev1alpha1.PoolDomain) { d.DesiredReplicas = 0 },
			"a=- b=2 c=2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.pool)
			w.settle()
			tc.edit(&w.Pool.Status.FailureDomains[0])
			w.Pool.Status.FailureDomains[0].Decision++
			w.unsee("a")
			domains("b", "c")(w.Pool)
			w.Pool.Generation++
			w.record()
			got := numbers(w.last)
			if w.Pool.Spec.Autoscaling != nil {
				got = maxima(w.last)
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			w.settleLater()
			if got := w.Deployments; len(got) != 2 {
				t.Errorf("%d MachineDeployments are left", len(got))
			}
		})
	}
}

func TestAStatusWithEditedBoundsIsNotCarriedOut(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*machinev1alpha1.PoolDomain)
		valid bool
	}{
		"AMaximum":             {func(d *machinev1alpha1.PoolDomain) { d.MaxSize = ptr.To(int32(5000)) }, true},
		"AMinimum":             {func(d *machinev1alpha1.PoolDomain) { d.MinSize = ptr.To(int32(5000)) }, true},
		"Both":                 {func(d *machinev1alpha1.PoolDomain) { d.MinSize, d.MaxSize = ptr.To(int32(4000)), ptr.To(int32(5000)) }, true},
		"AMaximumOfABadSpec":   {func(d *machinev1alpha1.PoolDomain) { d.MaxSize = ptr.To(int32(5000)) }, false},
		"AMinimumOfABadSpec":   {func(d *machinev1alpha1.PoolDomain) { d.MinSize = ptr.To(int32(5000)) }, false},
		"ANegativeOneOfNone":   {func(d *machinev1alpha1.PoolDomain) { d.MinSize, d.MaxSize = ptr.To(int32(-2)), ptr.To(int32(-1)) }, true},
		"AMinimumAboveAZero":   {func(d *machinev1alpha1.PoolDomain) { d.MinSize, d.MaxSize = ptr.To(int32(2)), ptr.To(int32(0)) }, true},
		"NoMaximumAndAMinimum": {func(d *machinev1alpha1.PoolDomain) { d.MinSize, d.MaxSize = ptr.To(int32(2)), nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(autoscaled(4, 7)))
			w.settle()
			want := w.sizes()
			tc.edit(&w.Pool.Status.FailureDomains[0])
			if !tc.valid {
				w.Pool.Spec.Class = "huge"
			}
			for range 8 {
				w.step()
				d := w.deployment("a").MachineDeployment
				least, most := annotation(d, machinev1alpha1.AnnotationNodeGroupMinSize), annotation(d, machinev1alpha1.AnnotationNodeGroupMaxSize)
				if least < 0 || least > most || most > 3 {
					t.Fatalf("the group a has %d to %d Machines", least, most)
				}
			}
			if got := w.sizes(); got != want {
				t.Errorf("sizes %s, want %s", got, want)
			}
		})
	}
}

func TestAMachineDeploymentThatIsBeingDeletedAndNotWantedIsLetGo(t *testing.T) {
	for name, p := range map[string]*machinev1alpha1.NodePool{"WithASize": pool(sized(6)), "WithAutoscaling": pool(autoscaled(6, 6))} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, p)
			w.settle()
			w.deployment("a").Terminating = true
			name := w.deployment("a").Name
			domains("b", "c")(w.Pool)
			w.Pool.Generation++
			for i := range 3 {
				w.record()
				if slices.ContainsFunc(w.last.Deployments, func(d Desired) bool { return d.Name == name }) {
					t.Errorf("reconcile %d composes it again", i)
				}
				if s := of(t, w.last, "a"); s.DesiredReplicas != 0 || s.Replicas != 2 || w.last.Ready {
					t.Errorf("reconcile %d reports %+v, ready %t", i, s, w.last.Ready)
				}
				if got := numbers(w.last); got == "a=0 b=3 c=3" {
					t.Errorf("reconcile %d makes Machines in its place while it may have two", i)
				}
			}
			w.unsee("a")
			for range 40 {
				w.step()
				for _, d := range w.last.Deployments {
					if d.Name == name && d.Spec.Replicas > 0 {
						t.Fatalf("it is made anew with %d Machines", d.Spec.Replicas)
					}
				}
			}
			w.settleLater()
			if got, want := w.replicas(), "b=3 c=3"; got != want {
				t.Errorf("replicas %s, want %s", got, want)
			}
		})
	}
	t.Run("ThatThePoolItselfDeleted", func(t *testing.T) {
		w := newWorld(t, pool(domains("a", "b")))
		w.settle()
		d := w.deployment("b").DeepCopy()
		domains("a")(w.Pool)
		w.Pool.Generation++
		for len(w.Deployments) > 1 {
			w.step()
		}
		d.Spec.Replicas, d.Status.Replicas, d.Status.AvailableReplicas = 0, 0, 0
		w.Deployments = append(w.Deployments, Deployment{MachineDeployment: d, Observed: true, Terminating: true})
		for range 3 {
			w.record()
			if len(w.last.Deployments) != 1 || len(w.last.Status.FailureDomains) != 1 {
				t.Errorf("it is composed again: %s", numbers(w.last))
			}
			if w.last.Ready || w.last.CallAgain == 0 {
				t.Errorf("ready %t while it exists", w.last.Ready)
			}
		}
	})
}

// maxima formats the recorded maxima of the failure domains.
func maxima(d Decision) string {
	var out []string
	for _, s := range d.Status.FailureDomains {
		size := "-"
		if s.MaxSize != nil {
			size = fmt.Sprint(*s.MaxSize)
		}
		out = append(out, s.Name+"="+size)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// settleLater settles after the autoscaler has read the maxima that are lowered now.
func (w *world) settleLater() {
	w.t.Helper()
	start := now
	defer func() { now = start }()
	for range 4 {
		for range 6 {
			w.step()
		}
		now = now.Add(autoscalerDelay)
	}
	w.settle()
}

func annotation(d *machinev1alpha1.MachineDeployment, key string) int {
	n, _ := strconv.Atoi(d.Annotations[key])
	return n
}
