package drain

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

const (
	// forcedGrace is the longest grace period of a pod when the drain is forced.
	forcedGrace = 30 * time.Second

	// KillDelay after its grace period, a forced drain kills a pod. After twice KillDelay, a forced drain, or one
	// of a dead Node, no longer waits for the pod: finalizers hold it, and they do not need the VM.
	KillDelay = 30 * time.Second

	// DeadAfter this long without being Ready, the pods of a Node count as dead: budgets do not protect pods that
	// do not run.
	DeadAfter = 5 * time.Minute

	// EvictEvery is the interval between attempts to evict a pod.
	EvictEvery = 5 * time.Second

	// maxBlocked is how many pods a status names.
	maxBlocked = 10
)

// Reasons why a pod still exists.
const (
	reasonTerminating  = machinev1alpha1.ReasonPodTerminating
	reasonOrder        = "it waits for pods of a lower order"
	reasonTurn         = "it waits for the volumes of another pod to move"
	reasonCompletes    = "it is waited for until it ends by itself"
	reasonNamespace    = "its namespace is being deleted"
	reasonBusy         = "the API server asks to evict it later"
	reasonLater        = "it was not tried yet"
	reasonBudgetPrefix = "its PodDisruptionBudget does not allow its eviction"
)

// An action is the treatment of a pod by a pass of the drain.
type action string

const (
	evict  action = "evict"  // through the Eviction API, so that its budget is kept
	remove action = "remove" // delete with its grace period
	kill   action = "kill"   // delete without one
	wait   action = "wait"   // it is terminating
	hold   action = "hold"   // it must wait for other pods, or for its own end
	ignore action = "ignore" // it may remain
)

// A pod of a Node that is drained. Pods of DaemonSets and mirror pods are left out.
type pod struct {
	name types.NamespacedName
	uid  types.UID
	// finished pods do not run, and block nothing.
	finished bool
	// gone is when the pod's grace period ends by the clock of Drover, zero if it is not terminating.
	gone     time.Time
	behavior machinev1alpha1.PodBehavior
	order    int32
	priority int32
	// volumes attached to the Node that the pod uses.
	volumes []string
	attempt
}

// An attempt is the memory of a refused eviction of a pod.
type attempt struct {
	refused int32
	tried   time.Time
	reason  string
	cause   machinev1alpha1.DrainCause
}

// pass has the facts about the Node and the drain that decide about each pod.
type pass struct {
	now time.Time
	// forced means that the drain's timeout has passed, or that the user forces the drain.
	forced bool
	// silent means that no kubelet reports, dead that Drover has observed for DeadAfter that the Node is not Ready.
	silent, dead bool
	// moving means that volumes are being detached or reattached: the eviction of another pod with volumes would
	// add to the load.
	moving bool
	// maxRefused is how many evictions of a pod may be refused before it is deleted, 0 for no limit.
	maxRefused int32
	// grace is the longest grace period, nil for that of each pod.
	grace *time.Duration
}

// A step is the action for a pod, or why there is none.
type step struct {
	pod
	do     action
	reason string // of hold
	cause  machinev1alpha1.DrainCause
	// grace is the grace period of the action, nil for the pod's own.
	grace *time.Duration
	// turn means that the pod has volumes: once one of these pods is evicted, the other ones wait.
	turn bool
}

// plan returns the step of each pod. Pods with volumes come last, by their priority.
func (p pass) plan(pods []pod) []step {
	order, volumesGoing := p.front(pods)
	steps := make([]step, 0, len(pods))
	for _, pod := range pods {
		s := step{pod: pod, do: p.decide(pod)}
		switch s.do {
		case evict:
			s = p.queue(s, order, volumesGoing)
		case hold:
			s.reason = reasonCompletes
		}
		s.grace = p.graceOf(s.do)
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(plan.CompareBool(a.turn, b.turn), -cmp.Compare(a.priority, b.priority), compareNames(a.name, b.name))
	})
	return steps
}

// front returns the lowest order among the pods that are left, and whether a pod with volumes is terminating.
func (p pass) front(pods []pod) (order int32, volumesGoing bool) {
	first := true
	for _, pod := range pods {
		do := p.decide(pod)
		if do == ignore {
			continue
		}
		if first || pod.order < order {
			order, first = pod.order, false
		}
		volumesGoing = volumesGoing || len(pod.volumes) > 0 && do == wait
	}
	return order, volumesGoing
}

func (p pass) decide(pod pod) action {
	terminating := !pod.gone.IsZero()
	switch {
	case pod.finished || pod.behavior == machinev1alpha1.PodSkip:
		return ignore
	case terminating && p.silent:
		return ignore
	case terminating && (p.forced || p.dead) && p.now.After(pod.gone.Add(2*KillDelay)):
		return ignore
	case terminating && p.forced && p.now.After(pod.gone.Add(KillDelay)):
		return kill
	case terminating && p.forced && pod.gone.After(p.now.Add(forcedGrace)):
		return remove
	case terminating:
		return wait
	case p.forced:
		return remove
	case pod.behavior == machinev1alpha1.PodWaitCompleted:
		return hold
	case p.dead || p.maxRefused > 0 && pod.refused >= p.maxRefused:
		return remove
	}
	return evict
}

// queue holds an eviction while pods of a lower order, or moving volumes, come first.
func (p pass) queue(s step, order int32, volumesGoing bool) step {
	s.turn = len(s.volumes) > 0
	switch {
	case s.order > order:
		s.do, s.reason, s.turn = hold, reasonOrder, false
	case s.turn && (p.moving || volumesGoing):
		s.do, s.reason = hold, reasonTurn
	case p.now.Sub(s.tried) < EvictEvery:
		s.do = hold
		s.reason, s.cause = s.attempt.reason, s.attempt.cause
	}
	return s
}

func (p pass) graceOf(do action) *time.Duration {
	limit := func(d time.Duration) *time.Duration {
		if p.grace != nil {
			d = min(d, *p.grace)
		}
		return &d
	}
	switch {
	case do == kill:
		return new(time.Duration)
	case do == remove && p.forced:
		return limit(forcedGrace)
	case do == remove || do == evict:
		return p.grace
	}
	return nil
}

// A stay is why a pod is still there.
type stay struct {
	reason string
	cause  machinev1alpha1.DrainCause
}

// Remaining pods, and why each is still there.
type Remaining map[types.NamespacedName]stay

// Fill writes the pods into the status.
func (r Remaining) Fill(s *machinev1alpha1.DrainStatus) {
	s.Remaining, s.Pods = int32(len(r)), nil
	for _, name := range r.names()[:min(len(r), maxBlocked)] {
		s.Pods = append(s.Pods, machinev1alpha1.DrainedPod{Namespace: name.Namespace, Name: name.Name, Reason: r[name].reason, Cause: r[name].cause})
	}
}

// names returns the pods in the order in which they matter to a user: blocking pods come first.
func (r Remaining) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(r), func(a, b types.NamespacedName) int {
		return cmp.Or(plan.CompareBool(r[a].reason == reasonTerminating, r[b].reason == reasonTerminating), compareNames(a, b))
	})
}

// Blocked returns the first pod that is worth a warning, with the reason why it is still there. It is false if there is none.
func (r Remaining) Blocked() (pod types.NamespacedName, reason string, ok bool) {
	for _, name := range r.names() {
		switch reason := r[name].reason; reason {
		case reasonTerminating, reasonOrder, reasonTurn, reasonCompletes, reasonLater:
		default:
			return name, reason, true
		}
	}
	return types.NamespacedName{}, "", false
}

// Again is when the next pass is due: soon while pods terminate or volumes move, later while the pass waits for
// other events.
func (r Remaining) Again() time.Duration {
	const soon = 2 * time.Second
	if len(r) == 0 {
		return soon
	}
	for _, s := range r {
		if s.reason == reasonTerminating || s.reason == reasonTurn {
			return soon
		}
	}
	return EvictEvery
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
