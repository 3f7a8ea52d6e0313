// Package history keeps the last replacements of Machines in the statuses of MachineSets,
// MachineDeployments and NodePools.
//
// A list is the ten latest of all replacements and reboots that were ever observed, by their time and by the
// name of the Machine. Neither changes. So a list can be computed again from any older or newer view: an entry is
// never listed twice, and one that was displaced by later ones does not return. The only parts of an entry
// that are added later are the duration of the drain and the revision of the rollout. They are never
// removed.
//
// Each level takes over the entries of the level below it in the same write that has the smaller numbers of
// Machines, so the list costs no write of its own. A MachineSet is deleted only when its last Machine is
// gone. Its MachineDeployment has all its entries then.
package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

// Limits of the texts of an entry, in bytes, without the "..." of a shortened one. The schema has three
// characters more.
const (
	maxText = 250
	maxWord = 60
)

// Of returns the entry of a Machine that is replaced at a time. It reports false for a Machine that never
// had a Node: no pod lost anything, and a template whose Machines never join would displace all other
// entries.
func Of(m *machinev1alpha1.Machine, at time.Time, reason machinev1alpha1.ReplacementReason) (machinev1alpha1.ReplacedMachine, bool) {
	if m.Status.NodeRef == nil {
		return machinev1alpha1.ReplacedMachine{}, false
	}
	e := machinev1alpha1.ReplacedMachine{
		Time: timeOf(at), Machine: m.Name, Node: text.Line(m.Status.NodeRef.Name, maxText), Reason: reason,
		FailureReason: machinev1alpha1.FailureReason(text.Line(string(m.Status.FailureReason), maxWord)),
		Message:       text.Line(m.Status.Failure(), maxText),
	}
	if m.Status.ReplaceRequested || m.Annotations[machinev1alpha1.AnnotationReplace] == "true" {
		e.RequestedBy = text.Line(m.Annotations[machinev1alpha1.AnnotationReplaceRequestedBy], maxText)
	}
	return e, true
}

// OfReleased returns the entry of a Machine that another client deleted, and that was gone before its set
// observed the deletion.
func OfReleased(r machinev1alpha1.ReleasedMachine) machinev1alpha1.ReplacedMachine {
	return machinev1alpha1.ReplacedMachine{
		Time: timeOf(r.DeletionTime.Time), Machine: r.Name, Node: text.Line(r.Node, maxText), Reason: machinev1alpha1.ReplacedDeleted,
		DrainDuration: r.DrainDuration,
	}
}

// OfReboot returns the entry of the last reboot of a Machine, once it has ended.
func OfReboot(m *machinev1alpha1.Machine) (machinev1alpha1.ReplacedMachine, bool) {
	r := m.Status.Reboot
	if !r.IsDone() || m.Status.NodeRef == nil {
		return machinev1alpha1.ReplacedMachine{}, false
	}
	e := machinev1alpha1.ReplacedMachine{
		Time: timeOf(r.StartTime.Time), Machine: m.Name, Node: text.Line(m.Status.NodeRef.Name, maxText), Reason: machinev1alpha1.ReplacedRebooted,
	}
	said := []string{}
	if r.ByHealth != "" {
		e.FailureReason, said = machinev1alpha1.FailureNodeUnhealthy, append(said, r.ByHealth)
	}
	if r.State == machinev1alpha1.RebootFailed {
		e.Reason, said = machinev1alpha1.ReplacedRebootFailed, append(said, r.Message)
	}
	e.Message = text.Line(strings.Join(said, ": "), maxText)
	return e, true
}

// ForRevision returns the entry of a rollout with the revision that is rolled out, and its change cause. An
// entry that has a revision, or another reason, stays as it is.
func ForRevision(e machinev1alpha1.ReplacedMachine, revision int64, cause string) machinev1alpha1.ReplacedMachine {
	if e.Reason == machinev1alpha1.ReplacedRollout && e.Revision == 0 {
		e.Revision, e.Message = revision, text.Line(cause, maxText)
	}
	return e
}

// WithDrains returns the entries with the durations of the drains of Machines that are gone.
func WithDrains(all []machinev1alpha1.ReplacedMachine, released []machinev1alpha1.ReleasedMachine) []machinev1alpha1.ReplacedMachine {
	out := slices.Clone(all)
	for i := range out {
		if out[i].Reason.IsReboot() {
			continue
		}
		n := slices.IndexFunc(released, func(r machinev1alpha1.ReleasedMachine) bool { return r.Name == out[i].Machine })
		if n >= 0 && out[i].DrainDuration == nil {
			out[i].DrainDuration = released[n].DrainDuration
		}
	}
	return out
}

// Merge returns the latest entries of all lists, the latest one last. Where lists have the same Machine, or the
// same reboot of a Machine, the entry of the first list counts, with the parts that it lacks. A time that is ahead
// of the clock counts as now, and a reboot is left out until then: otherwise an entry of a clock that jumped ahead
// and back would displace all later ones.
func Merge(now time.Time, lists ...[]machinev1alpha1.ReplacedMachine) []machinev1alpha1.ReplacedMachine {
	var out []machinev1alpha1.ReplacedMachine
	at := map[key]int{}
	for _, list := range lists {
		for _, e := range list {
			// The time is part of its key.
			if e.Reason.IsReboot() && e.Time.After(now) {
				continue
			}
			of := keyOf(e)
			i, there := at[of]
			if there {
				out[i] = completed(out[i], e)
				continue
			}
			if e.Time.After(now) {
				e.Time = timeOf(now)
			}
			at[of] = len(out)
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b machinev1alpha1.ReplacedMachine) int {
		// A Machine reboots before it is replaced, also within the same second.
		return cmp.Or(a.Time.Compare(b.Time.Time), cmp.Compare(a.Machine, b.Machine), cmp.Compare(keyOf(b).reboot, keyOf(a).reboot))
	})
	return out[max(0, len(out)-machinev1alpha1.MaxReplacedMachines):]
}

// A key distinguishes entries. A Machine is replaced once, and may be rebooted several times before.
type key struct {
	machine string
	reboot  int64
}

func keyOf(e machinev1alpha1.ReplacedMachine) key {
	k := key{machine: e.Machine}
	if e.Reason.IsReboot() {
		k.reboot = e.Time.Unix()
	}
	return k
}

// Has reports whether a list has all that another one would add to it.
func Has(now time.Time, list, other []machinev1alpha1.ReplacedMachine) bool {
	return equality.Semantic.DeepEqual(Merge(now, list, other), Merge(now, list))
}

// completed returns an entry with the parts that it lacks and the other one has.
func completed(e, other machinev1alpha1.ReplacedMachine) machinev1alpha1.ReplacedMachine {
	if e.DrainDuration == nil {
		e.DrainDuration = other.DrainDuration
	}
	if other.Revision > 0 {
		e = ForRevision(e, other.Revision, other.Message)
	}
	return e
}

// timeOf returns a time as the API server stores it: whole seconds.
func timeOf(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
