package simulator

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// rebootLimit is the number of reboots after which the health of a Machine no longer reboots it.
const rebootLimit = 2

// reboots that a watcher counts.
type reboots struct {
	// begun counts the reboots of each Machine, and ids are the IDs of all of them.
	begun map[string]int
	ids   map[string]bool
	// ended are the reboots that have ended.
	ended map[string]endedReboot
}

type endedReboot struct {
	machine string
	at      time.Time
	reason  machinev1alpha1.ReplacementReason
}

func keyOfReboot(machine string, at time.Time) string {
	return machine + " at " + at.UTC().Format(time.RFC3339)
}

// isLastReboot reports whether the status of an existing Machine has the reboot.
func (c *Cluster) isLastReboot(r endedReboot) bool {
	e, there := c.machines.get(r.machine)
	return there && e.object.DeletionTimestamp == nil && e.object.Status.Reboot.IsDone() && e.object.Status.Reboot.StartTime.Time.Equal(r.at)
}

// Sicken makes a Machine one whose Node is unhealthy for so long that a reboot is due.
func (c *Cluster) Sicken(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp != nil || m.Status.Phase != machinev1alpha1.MachineRunning || c.begun[name] >= rebootLimit {
			return
		}
		c.onLoss(c, m, false)
		m.Status.Phase, m.Status.ReadySince = machinev1alpha1.MachineUnknown, nil
		m.Status.Unhealthy = &machinev1alpha1.Unhealthiness{Since: metav1.NewTime(c.Now), RebootID: fmt.Sprintf("health-%s-%d", name, c.begun[name])}
	})
}

// Reboot begins the reboot of a Machine that its set allows, as the step lifecycle does.
func (c *Cluster) Reboot(name string) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		u := m.Status.Unhealthy
		if m.DeletionTimestamp != nil || m.Status.Phase != machinev1alpha1.MachineUnknown || u == nil || u.RebootID == "" ||
			m.Annotations[machinev1alpha1.AnnotationRebootGranted] != u.RebootID {
			return
		}
		if last := m.Status.Reboot; last != nil && last.StartTime.Time.Equal(c.Now.Truncate(time.Second)) {
			return // The ID of the next one is that of the next second.
		}
		if c.ids[u.RebootID] {
			c.violated("reboot %s of %s is done twice", u.RebootID, name)
		}
		if c.begun == nil {
			c.begun, c.ids, c.ended = map[string]int{}, map[string]bool{}, map[string]endedReboot{}
		}
		c.begun[name]++
		c.ids[u.RebootID] = true
		m.Status.Phase = machinev1alpha1.MachineRebooting
		m.Status.Reboot = &machinev1alpha1.RebootStatus{ID: u.RebootID, State: machinev1alpha1.RebootDraining, StartTime: metav1.NewTime(c.Now), Since: metav1.NewTime(c.Now), ByHealth: "sick"}
		m.Status.Unhealthy = nil
	})
}

// EndReboot of a Machine. If it does not help, the next one is due at once, or the Machine fails.
func (c *Cluster) EndReboot(name string, helps bool) {
	c.changeMachine(name, func(m *machinev1alpha1.Machine) {
		if m.DeletionTimestamp != nil || m.Status.Phase != machinev1alpha1.MachineRebooting {
			return
		}
		m.Status.Reboot.State = machinev1alpha1.RebootSucceeded
		switch {
		case helps:
			m.Status.Phase, m.Status.ReadySince = machinev1alpha1.MachineRunning, &metav1.Time{Time: c.Now}
		case c.begun[name] < rebootLimit:
			m.Status.Phase, m.Status.Reboot.State = machinev1alpha1.MachineUnknown, machinev1alpha1.RebootFailed
			m.Status.Unhealthy = &machinev1alpha1.Unhealthiness{Since: metav1.NewTime(c.Now), RebootID: fmt.Sprintf("health-%s-%d", name, c.begun[name])}
		default:
			m.Status.Phase, m.Status.Reboot.State = machinev1alpha1.MachineFailed, machinev1alpha1.RebootFailed
			m.Status.FailureReason = machinev1alpha1.FailureNodeUnhealthy
		}
		r := endedReboot{machine: name, at: m.Status.Reboot.StartTime.Time, reason: machinev1alpha1.ReplacedRebooted}
		if m.Status.Reboot.State == machinev1alpha1.RebootFailed {
			r.reason = machinev1alpha1.ReplacedRebootFailed
		}
		c.ended[keyOfReboot(name, r.at)] = r
	})
}

// onReboots checks the reboots that a decision allows. Each Machine has an unhealthy Node and is not preserved. Together
// with the replacements in flight there are never more than the budget, and none begins while more than maxUnhealthy
// Machines are unhealthy.
func (w *watcher) onReboots(c *Cluster, d decision) {
	news := slices.DeleteFunc(slices.Clone(d.after.Rebooting), func(name string) bool { return slices.Contains(d.before.Rebooting, name) })
	if len(news) == 0 {
		return
	}
	for _, name := range news {
		m := d.machine(name)
		if m == nil || m.Status.Phase != machinev1alpha1.MachineUnknown || d.preserved(m, c.Now) || m.Status.ReplaceRequested {
			w.violated("%s reboots %s, which is not to be rebooted", d.set, name)
		}
		before := w.started
		w.begin(c, d, name)
		w.started = before
	}
	w.close(c)
	out := len(w.open)
	for _, s := range c.Sets() {
		listed := s.Status.Rebooting
		if s.Name == d.set {
			listed = d.after.Rebooting
		}
		out += len(listed)
	}
	if out > w.budget() {
		w.violated("%d Machines are replaced or rebooted, of at most %d: %v, %v", out, w.budget(), w.open, d.after.Rebooting)
	}
}
