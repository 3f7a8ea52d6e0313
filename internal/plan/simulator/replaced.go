package simulator

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

// A departure is the deletion of a Machine with a Node that status.replacements must list.
type departure struct {
	at time.Time
	// reasons that are true of it. A Machine of a rollout may have failed.
	reasons []machinev1alpha1.ReplacementReason
	// isUnclear means that the Machine was one too many, and to be replaced as well: it need not be listed.
	isUnclear bool
}

// departures are all that there were, by Machine, as the world and the recorded decisions show them.
type departures struct {
	all map[string]departure
	// setOf the Machines that are gone.
	setOf map[string]string
	// observed are Machines that a set observed while another client's deletion of them was in progress.
	observed map[string]bool
	// forgotten are Machines that were gone when the controller of MachineGroups crashed.
	forgotten map[string]bool
	// rebooted are the reboots that had ended when a set decided about their Machine.
	rebooted map[string]bool
	// old are Machines that were gone when their set read a report of its MachineGroup from before they were
	// created: it cannot be told from one that does not have them any more.
	old map[string]bool
}

func newDepartures() departures {
	return departures{all: map[string]departure{}, setOf: map[string]string{}, observed: map[string]bool{}, rebooted: map[string]bool{}, forgotten: map[string]bool{}, old: map[string]bool{}}
}

// onDecided records the departures of a set's decision. A Machine that its own set deletes is no longer a
// deletion by another client, and one that leaves with a scale-down is none at all, also if the set sets it aside.
func (d *departures) onDecided(c *Cluster, made decision) {
	for _, ch := range made.seen {
		d.observed[ch.object.Name] = d.observed[ch.object.Name] || ch.terminating
		if r := ch.object.Status.Reboot; r.IsDone() {
			d.rebooted[keyOfReboot(ch.object.Name, r.StartTime.Time)] = true
		}
	}
	for name, set := range d.setOf {
		if set == made.set && made.machine(name) == nil && !made.isBehind && !made.reports(name) {
			d.old[name] = true
		}
	}
	for _, name := range made.after.SetAside {
		if m := made.machine(name); !slices.Contains(made.before.SetAside, name) && m != nil && !isReplacementOf(made, m) {
			delete(d.all, name)
		}
	}
	for _, name := range made.after.Dropping {
		if slices.Contains(made.before.Dropping, name) {
			continue
		}
		delete(d.all, name)
		if m := made.machine(name); m != nil && m.Status.NodeRef != nil {
			d.onDropped(c, made, m)
		}
	}
}

func (d *departures) onDropped(c *Cluster, made decision, m *machinev1alpha1.Machine) {
	why, left := c.causes[m.Name], departure{at: c.Now, isUnclear: len(made.kept()) > int(made.spec.Replicas)}
	if made.isRolledOut() && left.isUnclear {
		left.isUnclear, left.reasons = false, append(left.reasons, machinev1alpha1.ReplacedRollout)
	}
	switch {
	case why == expired && !isReplacementOf(made, m):
		return
	case why == expired:
		left.isUnclear = false
	case why == tooMany && !made.isRolledOut():
		return
	}
	switch {
	case m.Status.Phase == machinev1alpha1.MachineFailed:
		left.reasons = append(left.reasons, machinev1alpha1.ReplacedFailed)
	case c.due[m.Name] && !m.Status.ReplaceRequested:
		left.reasons = append(left.reasons, machinev1alpha1.ReplacedAged)
	case why != tooMany:
		left.reasons = append(left.reasons, machinev1alpha1.ReplacedRequested)
	}
	d.all[m.Name] = left
}

// isReplacementOf reports whether a Machine that was set aside is a replacement that failed.
func isReplacementOf(d decision, m *machinev1alpha1.Machine) bool {
	return m.Annotations[machinev1alpha1.AnnotationDeleteMachine] == "failed-replacement" ||
		slices.ContainsFunc(d.before.Replacing, func(r machinev1alpha1.Replacement) bool { return r.By == m.Name })
}

// isRolledOut reports whether a rollout replaced the Machines of the set at the time of the decision.
func (d decision) isRolledOut() bool {
	return slices.ContainsFunc(d.spec.NodeMarks.Taints, func(t machinev1alpha1.Taint) bool { return t.Key == machinev1alpha1.TaintOutdated })
}

// reports is true if the MachineGroup reported a Machine as gone.
func (d decision) reports(name string) bool {
	return slices.ContainsFunc(d.released, func(r machinev1alpha1.ReleasedMachine) bool { return r.Name == name })
}

// onUser records that another client deletes a Machine.
func (d *departures) onUser(c *Cluster, m *machinev1alpha1.Machine) {
	s, there := c.sets.last[metav1.GetControllerOf(m).Name]
	if m.Status.NodeRef == nil || !there || slices.Contains(s.object.Status.Dropping, m.Name) || slices.Contains(s.object.Status.SetAside, m.Name) {
		return
	}
	d.all[m.Name] = departure{at: c.Now, reasons: []machinev1alpha1.ReplacementReason{machinev1alpha1.ReplacedDeleted}}
}

// onGone records the last state of a Machine, as the watch of MachineGroups does.
func (d *departures) onGone(c *Cluster, m *machinev1alpha1.Machine) {
	set := metav1.GetControllerOf(m).Name
	d.setOf[m.Name] = set
	if r, counts := group.ReleaseOf(m, c.Now); counts {
		c.released[set] = append(c.released[set], r)
	}
}

// releasedOf returns the Machines of a group that are gone from its view.
func (c *Cluster) releasedOf(name string) []machinev1alpha1.ReleasedMachine {
	return slices.DeleteFunc(slices.Clone(c.released[name]), func(r machinev1alpha1.ReleasedMachine) bool {
		_, there := c.machinesOfGroup.get(r.Name)
		return there
	})
}

// forgetReleased loses the memory of the controller of MachineGroups.
func (c *Cluster) forgetReleased() {
	for _, all := range c.released {
		for _, r := range all {
			c.departures.forgotten[r.Name] = true
		}
	}
	c.released = map[string][]machinev1alpha1.ReleasedMachine{}
}

// checkReplacements checks that a deployment at rest lists exactly the last departures, in their order, each
// with a reason that is true. A Machine that another client deleted may be missing if no set observed its
// deletion, and the controller of MachineGroups crashed when it was gone or its report was that old. The last reboot of a
// Machine that is there is listed, too, and each that a set has observed. Others may be.
func (c *Cluster) checkReplacements() {
	ds, listed := c.departures, c.deployment().Status.Replacements
	var want []string
	for name, d := range ds.all {
		isExcused := d.isUnclear || (ds.forgotten[name] || ds.old[name]) && !ds.observed[name]
		if !isExcused || slices.ContainsFunc(listed, func(e machinev1alpha1.ReplacedMachine) bool { return keyOf(e) == name }) {
			want = append(want, name)
		}
	}
	at := func(key string) time.Time {
		if d, ok := ds.all[key]; ok {
			return d.at
		}
		return c.ended[key].at
	}
	for key, r := range c.ended {
		if ds.rebooted[key] || c.isLastReboot(r) || slices.ContainsFunc(listed, func(e machinev1alpha1.ReplacedMachine) bool { return keyOf(e) == key }) {
			want = append(want, key)
		}
	}
	slices.SortFunc(want, func(a, b string) int { return cmp.Or(at(a).Compare(at(b)), compareKeys(a, b)) })
	want = want[max(0, len(want)-machinev1alpha1.MaxReplacedMachines):]
	var got []string
	for _, e := range listed {
		got = append(got, keyOf(e))
		if e.Reason.IsReboot() {
			if r, known := c.ended[keyOf(e)]; !known || r.reason != e.Reason || e.Node == "" {
				c.violated("reboot of %s: %+v instead of %+v", e.Machine, e, r)
			}
			continue
		}
		switch d := ds.all[e.Machine]; {
		case !d.at.Equal(e.Time.Time) || !slices.Contains(d.reasons, e.Reason):
			c.violated("replacement of %s, %s: %+v instead of %+v", e.Machine, e.Reason, e, d)
		case (e.Reason == machinev1alpha1.ReplacedRollout) != (e.Revision > 0) || e.Node == "":
			c.violated("replacement of %s without its revision or Node: %+v", e.Machine, e)
		case e.DrainDuration == nil && !ds.forgotten[e.Machine] && !ds.old[e.Machine]:
			c.violated("replacement of %s, which is gone, without the duration of its drain", e.Machine)
		}
	}
	if !slices.Equal(want, got) {
		c.violated("status.replacements lists %v instead of %v", got, want)
	}
}

// compareKeys by their Machines. A reboot of a Machine is before its replacement.
func compareKeys(a, b string) int {
	machineA, rebootA, _ := strings.Cut(a, " at ")
	machineB, rebootB, _ := strings.Cut(b, " at ")
	return cmp.Or(cmp.Compare(machineA, machineB), cmp.Compare(rebootB, rebootA))
}

// keyOf an entry: the Machine and, of a reboot, its time.
func keyOf(e machinev1alpha1.ReplacedMachine) string {
	if e.Reason.IsReboot() {
		return keyOfReboot(e.Machine, e.Time.Time)
	}
	return e.Machine
}
