// Package deletion decides the status that a MachineDeployment or MachineSet has while it is being
// deleted. Crossplane runs no composition for it any more, so its status would stay unchanged.
// Package terminator writes the status that is decided here.
package deletion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// mostNamed Machines are described in a message. The remaining ones are only counted.
const mostNamed = 3

// slowAfter is the time after which a user should look into the deletion of a VM.
const slowAfter = 10 * time.Minute

// ofCrossplane are the condition types that Crossplane keeps up to date during a deletion too.
var ofCrossplane = []string{"Ready", "Synced", "Responsive"}

// Observed is the view of an object that is being deleted.
type Observed struct {
	Generation int64
	// Replicas and MinReadySeconds of its spec.
	Replicas, MinReadySeconds int32
	// Conditions of its status.
	Conditions []metav1.Condition
	// IsRoot means that no owner of it is being deleted: it is the object that the user deleted.
	IsRoot bool
	// Collected names the owner that does not exist any more, so that the garbage collector deleted
	// this object without a request by a user. It is empty if the owner exists, or if a user
	// confirmed the deletion.
	Collected string
	// Machines of the object that still exist, in any order.
	Machines []*machinev1alpha1.Machine
	// Finalizers of other controllers on the object itself.
	Finalizers []string
}

// Counts of the Machines that still exist.
type Counts struct {
	// Replicas, Ready and Available Machines are not being deleted; Terminating ones are.
	Replicas, Ready, Available, Terminating int32
}

// A Decision is the new status and the events of the object.
type Decision struct {
	Counts
	// Conditions replace all conditions of the object.
	Conditions []metav1.Condition
	Events     []plan.Event
	// CallAgain is the longest delay until the next call, 0 for none.
	CallAgain time.Duration
}

// Plan decides. Conditions that change get the given time.
func Plan(now time.Time, o Observed) Decision {
	d := Decision{Counts: count(now, o)}
	waits := waitsOf(now, o.Machines)
	reason := machinev1alpha1.ReasonDeleting
	if len(waits) > 0 {
		reason = waits[0].reason
	}
	message := d.message(waits)
	if len(o.Machines) == 0 && len(o.Finalizers) > 0 {
		reason = machinev1alpha1.ReasonWaitingForFinalizers
		message = "all Machines are gone. Finalizers of other controllers keep the object, and whoever added them must remove them: " + strings.Join(o.Finalizers, ", ")
	}
	if o.Collected != "" {
		reason, message = machinev1alpha1.ReasonDeletionHeld, held(o)
	}

	reconciling := plan.Condition{Type: machinev1alpha1.ConditionReconciling, Status: "True", Reason: reason, Message: message}
	stalled := plan.Stalled(nil)
	if reason == machinev1alpha1.ReasonVMNotDeleted || o.Collected != "" {
		reconciling.Status, stalled = "False", plan.Stalled(&reconciling)
	}
	available := plan.Condition{
		Type: machinev1alpha1.ConditionAvailable, Status: "False", Reason: machinev1alpha1.ReasonDeleting,
		Message: fmt.Sprintf("%d of %d Machines are available: all are deleted", d.Available, o.Replicas),
	}
	if o.Collected != "" {
		available.Reason, available.Message = reason, fmt.Sprintf("%d of %d Machines are available: none is created or replaced while the deletion is held", d.Available, o.Replicas)
		if d.Available >= o.Replicas {
			available.Status = "True"
		}
	}
	for _, c := range o.Conditions {
		if slices.Contains(ofCrossplane, c.Type) {
			d.Conditions = append(d.Conditions, c)
		}
	}
	for _, c := range []plan.Condition{available, reconciling, stalled} {
		d.Conditions = append(d.Conditions, dated(now, o, c))
	}
	if o.IsRoot && reason != reasonBefore(o.Conditions) {
		d.Events = append(d.Events, plan.Event{Warning: reason != machinev1alpha1.ReasonDeleting, Reason: reason, Message: message})
	}
	for _, w := range waits {
		if w.again > 0 && (d.CallAgain == 0 || w.again < d.CallAgain) {
			d.CallAgain = w.again
		}
	}
	return d
}

func held(o Observed) string {
	return fmt.Sprintf("%s does not exist any more, and no user deleted this object. Its Machines are kept. To delete them, set the annotation %s=true", o.Collected, machinev1alpha1.AnnotationConfirmDeletion)
}

// reasonBefore returns the reason that was reported last, "" if there was none.
func reasonBefore(conditions []metav1.Condition) string {
	for _, c := range conditions {
		// Before the deletion, Reconciling had a reason that is not one of a deletion.
		if c.Type == machinev1alpha1.ConditionReconciling {
			return c.Reason
		}
	}
	return ""
}

// dated adds the time of the last transition to a condition.
func dated(now time.Time, o Observed, c plan.Condition) metav1.Condition {
	out := metav1.Condition{
		Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
		ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	}
	for _, was := range o.Conditions {
		if was.Type == out.Type && was.Status == out.Status {
			out.LastTransitionTime = was.LastTransitionTime
		}
	}
	return out
}

func count(now time.Time, o Observed) Counts {
	c := Counts{}
	minReady := time.Duration(o.MinReadySeconds) * time.Second
	for _, m := range o.Machines {
		if m.DeletionTimestamp != nil {
			c.Terminating++
			continue
		}
		c.Replicas++
		s := m.Status
		plan.SettleReady(now, &s, minReady)
		if s.Phase != machinev1alpha1.MachineRunning || s.ReadySince == nil {
			continue
		}
		c.Ready++
		if !now.Before(s.ReadySince.Add(minReady)) {
			c.Available++
		}
	}
	return c
}

// message counts the remaining Machines and describes their waits.
func (d Decision) message(waits []wait) string {
	left := d.Replicas + d.Terminating
	out := []string{fmt.Sprintf("%d of %d remaining Machines are being deleted", d.Terminating, left)}
	for i, w := range waits {
		if i == mostNamed {
			out = append(out, fmt.Sprintf("%d more Machines wait", len(waits)-mostNamed))
			break
		}
		out = append(out, w.text)
	}
	return strings.Join(out, ". ")
}

// A wait is the reason why the deletion of one Machine does not finish.
type wait struct {
	reason, machine, text string
	// again is the time until the wait changes by itself, 0 for never.
	again time.Duration
}

// waitsOf returns the waits of Machines. Those that do not end by themselves come first.
func waitsOf(now time.Time, machines []*machinev1alpha1.Machine) []wait {
	rank := []string{machinev1alpha1.ReasonVMNotDeleted, machinev1alpha1.ReasonDeletionPaused, machinev1alpha1.ReasonWaitingForFinalizers, machinev1alpha1.ReasonEvictionRefused, machinev1alpha1.ReasonDrainBlocked, machinev1alpha1.ReasonWaitingForHooks, machinev1alpha1.ReasonDeleting}
	var out []wait
	for _, m := range machines {
		if m.DeletionTimestamp != nil && m.Status.Deletion != nil && m.Status.LastOperation != nil {
			out = append(out, waitOf(now, m))
		}
	}
	slices.SortFunc(out, func(a, b wait) int {
		return cmp.Or(cmp.Compare(slices.Index(rank, a.reason), slices.Index(rank, b.reason)), cmp.Compare(a.machine, b.machine))
	})
	return out
}

func waitOf(now time.Time, m *machinev1alpha1.Machine) wait {
	d := m.Status.Deletion
	w := wait{machine: m.Name, reason: machinev1alpha1.ReasonDeleting, text: fmt.Sprintf("Machine %s: %s", m.Name, m.Status.LastOperation.Description)}
	if len(d.Finalizers) > 0 {
		w.reason = machinev1alpha1.ReasonWaitingForFinalizers
	}
	switch d.Stage {
	case machinev1alpha1.DeletionPaused:
		w.reason = machinev1alpha1.ReasonDeletionPaused
	case machinev1alpha1.DeletionPreDrainHooks, machinev1alpha1.DeletionPreTerminateHooks:
		w.reason = machinev1alpha1.ReasonWaitingForHooks
		w.text += "; from " + hooksEnd(m) + " they are not waited for"
	case machinev1alpha1.DeletionDraining:
		if len(d.Pods) > 0 {
			w.reason = machinev1alpha1.ReasonDrainBlocked
			if IsEvictionRefused(d.Pods) {
				w.reason = machinev1alpha1.ReasonEvictionRefused
			}
			w.text += "; " + forced(m)
		}
	case machinev1alpha1.DeletionDeletingVM:
		if left := d.Since.Add(slowAfter).Sub(now); left > 0 {
			w.again = left
			break
		}
		w.reason = machinev1alpha1.ReasonVMNotDeleted
		w.text += " since " + stamp(d.Since.Time) + "; see the events of the VM resource; " + annotation(machinev1alpha1.AnnotationForceDelete, m, "deletes the Machine without its VM")
	case machinev1alpha1.DeletionHeld, machinev1alpha1.DeletionDetachingVolumes, machinev1alpha1.DeletionDeletingNode, machinev1alpha1.DeletionDeletingDependents, machinev1alpha1.DeletionDeletingCompanions, machinev1alpha1.DeletionFinalizers:
	}
	return w
}

// IsEvictionRefused reports whether a pod stays on a Node until a user corrects what refuses its eviction.
func IsEvictionRefused(pods []machinev1alpha1.DrainedPod) bool {
	return slices.ContainsFunc(pods, func(p machinev1alpha1.DrainedPod) bool { return p.Cause == machinev1alpha1.DrainEvictionRefused })
}

// forced describes when pods are deleted regardless of their budgets, and how a user can force that
// now.
func forced(m *machinev1alpha1.Machine) string {
	drain := m.Status.Drain
	switch {
	case drain == nil:
		return annotation(machinev1alpha1.AnnotationForceDrain, m, "forces the drain")
	case drain.Forced:
		return "the drain is forced"
	}
	at := drain.StartTime.Add(plan.Timeout(m.Spec.Drain.Timeout, machinev1alpha1.DefaultDrainTimeout))
	return fmt.Sprintf("the drain is forced at %s, %s", stamp(at), annotation(machinev1alpha1.AnnotationForceDrain, m, "forces it now"))
}

// hooksEnd returns the time from which the terminator ignores hooks.
func hooksEnd(m *machinev1alpha1.Machine) string {
	since := m.Status.Deletion.Since.Time
	if m.Status.Deletion.Stage == machinev1alpha1.DeletionPreDrainHooks {
		since = m.DeletionTimestamp.Time
	}
	return stamp(since.Add(plan.Timeout(m.Spec.Drain.HookTimeout, machinev1alpha1.DefaultHookTimeout)))
}

func annotation(key string, m *machinev1alpha1.Machine, does string) string {
	return fmt.Sprintf("the annotation %s: \"true\" on Machine %s %s", key, m.Name, does)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
