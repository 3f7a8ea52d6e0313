package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// noticed is the time that Drover may take to detect that the target API server is cut off (a
	// probe each 30 s, then three of 5 s), and to freeze its sets.
	noticed = 75 * time.Second
	// obeyed is the time that a set may take to observe a user's change.
	obeyed = 20 * time.Second
	// overlap is the maximum delay between the events of sets and those of their Machines.
	overlap = 2 * time.Second
)

// A ledger records the actions on a fleet and their effects, and detects broken guarantees:
//
//   - an available Machine is deleted only if the other available Machines and the losses are
//     replicas − maxUnavailable or more,
//   - there are at most replicas + maxSurge Machines, and maxInFlight more with CreateFirst.
//     Terminating Machines beyond that are Failed, or an action hit them,
//   - at most maxInFlight replacements are in flight,
//   - an available Machine is deleted only by a user, a rollout or a scale-down,
//   - a Machine is Failed only because of an action, and never because its cluster cannot be
//     reached,
//   - no Machine is created while the fleet is frozen or its cluster is cut off,
//   - a Machine has one VM, and a VM has one Machine.
//
// The bounds cover all specs since the fleet was last settled, because Drover may still act on
// each of them.
type ledger struct {
	deployments map[string]*account
	// done has the kinds of actions in this round, with the time of the last one.
	done map[kind]time.Time
	// cut is the time since which the target cluster is cut off, zero while it is reachable.
	cut time.Time
	// vms by the UID of their Machine, including deleted ones.
	vms map[string]map[string]bool
	// providerIDs of existing Machines.
	providerIDs map[string]string
	// broken guarantees.
	broken []string
	// counts of replaced and failed Machines, for example, for the report.
	counts map[string]int
}

// An account of a MachineDeployment.
type account struct {
	name     string
	replicas int
	// now has the current bounds, most and least have the widest bounds since the fleet was
	// settled.
	now             limits
	most, least     int
	budget          int
	createFirst     bool
	version         string
	scaled          int
	lowered, rolled bool
	// paused and frozen are the times since which a user paused or froze the deployment, zero if
	// neither.
	paused, frozen time.Time
	known          bool

	machines map[string]*entry
	sets     map[string]*machinev1alpha1.MachineSet
	// losses of available Machines since the deployment last had all of its replicas available.
	losses int
	open   []*ticket
}

// limits of a rolling deployment: the maximum number of Machines, and the minimum number of
// available Machines.
type limits struct{ most, least int }

// An entry of a Machine.
type entry struct {
	machine *machinev1alpha1.Machine
	// struck has the actions that hit the Machine.
	struck map[kind]bool
	// unwell means that it was Unknown or Failed. A controller may still act on that state.
	unwell bool
	// excused means that its deletion has another cause than a rollout or a scale-down.
	excused bool
}

// A ticket is a replacement in progress.
type ticket struct {
	of, set string
	// by is the replacement Machine, once there is one. paired means that the set's status names
	// it.
	by       string
	paired   bool
	opened   time.Time
	reported bool
}

func newLedger() *ledger {
	return &ledger{
		deployments: map[string]*account{}, done: map[kind]time.Time{}, vms: map[string]map[string]bool{},
		providerIDs: map[string]string{}, counts: map[string]int{},
	}
}

func (l *ledger) of(name string) *account {
	if l.deployments[name] == nil {
		l.deployments[name] = &account{name: name, machines: map[string]*entry{}, sets: map[string]*machinev1alpha1.MachineSet{}}
	}
	return l.deployments[name]
}

func (l *ledger) breaks(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

// settled forgets the previous actions: the fleet matches its spec.
func (l *ledger) settled() {
	l.done = map[kind]time.Time{}
	for _, a := range l.deployments {
		a.scaled, a.lowered, a.rolled, a.losses, a.open = 0, false, false, 0, nil
		a.most, a.least = a.now.most, a.now.least
		for _, e := range a.machines {
			e.unwell = false
		}
	}
}

// onDeployment records the spec of a MachineDeployment.
func (l *ledger) onDeployment(now time.Time, d *machinev1alpha1.MachineDeployment) {
	a := l.of(d.Name)
	a.now = bounds(d)
	replicas, version := int(d.Spec.Replicas), d.Spec.Template.Spec.Version
	if !a.known {
		a.replicas, a.version, a.most, a.least = replicas, version, a.now.most, a.now.least
	}
	if a.replicas != replicas {
		a.scaled++
		a.lowered = a.lowered || replicas < a.replicas
	}
	a.rolled = a.rolled || a.version != version
	a.most, a.least = max(a.most, a.now.most), min(a.least, a.now.least)
	a.replicas, a.version, a.known = replicas, version, true
	a.budget = budgetOf(d)
	a.createFirst = d.Spec.Remediation.Order == machinev1alpha1.CreateFirst
	a.paused = since(a.paused, now, d.Spec.Paused)
	a.frozen = since(a.frozen, now, d.Labels[machinev1alpha1.LabelFreeze] == "true")
}

func since(was, now time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case was.IsZero():
		return now
	}
	return was
}

func lasts(began, now time.Time, d time.Duration) bool {
	return !began.IsZero() && now.Sub(began) > d
}

// do records an action, before it takes effect.
func (l *ledger) do(now time.Time, k kind) { l.done[k] = now }

// strike records an action on a Machine, before it takes effect.
func (l *ledger) strike(now time.Time, k kind, deployment, machine string) {
	l.do(now, k)
	if e := l.of(deployment).machines[machine]; e != nil {
		e.struck[k] = true
	}
}

// candidates for a strike: the Machines that fit, by name.
func (l *ledger) candidates(fits func(*machinev1alpha1.Machine) bool) []*machinev1alpha1.Machine {
	var out []*machinev1alpha1.Machine
	for _, d := range slices.Sorted(maps.Keys(l.deployments)) {
		a := l.deployments[d]
		for _, name := range slices.Sorted(maps.Keys(a.machines)) {
			if m := a.machines[name].machine; fits(m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// onMachine records the current version of a Machine.
func (l *ledger) onMachine(now time.Time, m *machinev1alpha1.Machine) {
	a := l.of(m.Labels[machinev1alpha1.LabelDeployment])
	e := a.machines[m.Name]
	if e == nil || e.machine.UID != m.UID {
		e = &entry{struck: map[kind]bool{}}
		a.machines[m.Name] = e
		e.machine = m
		l.onCreated(now, a, e)
	}
	was := e.machine
	e.machine = m
	l.onProviderID(m)
	s := m.Status
	if s.Phase == machinev1alpha1.MachineFailed && was.Status.Phase != s.Phase {
		l.onFailed(now, a, e)
	}
	switch {
	case was.DeletionTimestamp == nil && m.DeletionTimestamp != nil:
		l.onDeleted(now, a, e, was)
	case available(was) && !available(m) && m.DeletionTimestamp == nil:
		a.losses++
		l.counts["available Machines lost"]++
	}
	e.unwell = e.unwell || s.Phase == machinev1alpha1.MachineFailed || s.Phase == machinev1alpha1.MachineUnknown
	if a.available() >= a.replicas {
		a.losses = 0
	}
	l.audit(now, a)
}

// onGone records that a Machine no longer exists.
func (l *ledger) onGone(now time.Time, m *machinev1alpha1.Machine) {
	a := l.of(m.Labels[machinev1alpha1.LabelDeployment])
	delete(a.machines, m.Name)
	if l.providerIDs[m.Status.ProviderID] == m.Name {
		delete(l.providerIDs, m.Status.ProviderID)
	}
	l.audit(now, a)
}

func available(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning
}

func (a *account) available() int {
	n := 0
	for _, e := range a.machines {
		if available(e.machine) {
			n++
		}
	}
	return n
}

func (l *ledger) onProviderID(m *machinev1alpha1.Machine) {
	id := m.Status.ProviderID
	if id == "" {
		return
	}
	if other := l.providerIDs[id]; other != "" && other != m.Name {
		l.breaks("Machines %s and %s share the VM %s", other, m.Name, id)
	}
	l.providerIDs[id] = m.Name
}

func (l *ledger) onCreated(now time.Time, a *account, created *entry) {
	l.counts["Machines created"]++
	name := created.machine.Name
	if lasts(l.cut, now, noticed) {
		l.breaks("Machine %s was created while its cluster was cut off for %s", name, now.Sub(l.cut).Round(time.Second))
	}
	if lasts(a.frozen, now, obeyed) {
		l.breaks("Machine %s was created while %s was frozen for %s", name, a.name, now.Sub(a.frozen).Round(time.Second))
	}
	for _, t := range a.open {
		if t.by == "" && !t.paired && t.set == setOf(created.machine) {
			t.by = name
			break
		}
	}
	total := 0
	for _, e := range a.machines {
		// If a user scales down and up again, new Machines need not wait for terminating ones.
		if e.machine.DeletionTimestamp == nil || a.scaled < 2 && !e.excused {
			total++
		}
	}
	most := a.most
	if a.createFirst {
		most += a.budget
	}
	if a.known && total > most {
		l.breaks("with %s there are %d Machines of %s, of at most %d", name, total, a.name, most)
	}
}

// causes of failures: actions on the Machine, or in the round, one of which must precede the
// failure.
var causes = map[machinev1alpha1.FailureReason]struct{ struck, done []kind }{
	machinev1alpha1.FailureVMLost:        {struck: []kind{vmVanishes}},
	machinev1alpha1.FailureVMFailed:      {done: []kind{createFails}},
	machinev1alpha1.FailureCreateFailed:  {done: []kind{createFails}},
	machinev1alpha1.FailureCreateUnknown: {done: []kind{answerLost, restartOne, restartTwo}},
	machinev1alpha1.FailureNodeDeleted:   {struck: []kind{nodeDeleted, vmVanishes, kubeletStops}},
	machinev1alpha1.FailureJoinTimeout:   {struck: []kind{vmVanishes, kubeletStops, nodeDeleted}, done: []kind{vmNeverBoots, vmBootsSlowly, targetCut, cloudSlow}},
	// An unreachable cluster or a restart is no cause.
	machinev1alpha1.FailureNodeUnhealthy: {struck: []kind{kubeletStops, vmVanishes, nodeDeleted}},
}

func (l *ledger) onFailed(now time.Time, a *account, e *entry) {
	s := e.machine.Status
	l.counts["Machines failed: "+string(s.FailureReason)]++
	if lasts(l.cut, now, noticed) && s.FailureReason == machinev1alpha1.FailureJoinTimeout {
		l.breaks("Machine %s failed with %s while its cluster was cut off: %s", e.machine.Name, s.FailureReason, s.Failure())
	}
	c := causes[s.FailureReason]
	if slices.ContainsFunc(c.struck, func(k kind) bool { return e.struck[k] }) ||
		slices.ContainsFunc(c.done, func(k kind) bool { return !l.done[k].IsZero() }) {
		return
	}
	l.breaks("Machine %s of %s failed with %s for nothing: %s", e.machine.Name, a.name, s.FailureReason, s.Failure())
}

func (l *ledger) onDeleted(now time.Time, a *account, e *entry, was *machinev1alpha1.Machine) {
	wasAvailable := available(was)
	e.excused = was.Status.Phase == machinev1alpha1.MachineFailed || was.Status.ReplaceRequested || e.unwell || len(e.struck) > 0
	switch {
	case e.struck[machineDelete] || e.struck[orphanTorn]:
		l.counts["Machines deleted by hand"]++
	case e.excused || wasAvailable && a.createFirst && len(l.done) > 0 && a.nonterminating() >= a.replicas:
		// With CreateFirst, a Machine that recovers after its replacement was created is excess.
	case wasAvailable:
		rolls := a.rolled && !lasts(a.paused, now, obeyed)
		if a.known && !rolls && !a.lowered {
			l.breaks("Machine %s of %s runs, and was deleted for nothing", was.Name, a.name)
		}
		if left := a.available(); a.known && left+a.losses < a.least {
			l.breaks("Machine %s was deleted, and %d of %s are left available and %d were lost, of at least %d", was.Name, left, a.name, a.losses, a.least)
		}
		return
	}
	if wasAvailable {
		a.losses++
	}
}

func (a *account) nonterminating() int {
	n := 0
	for _, e := range a.machines {
		if e.machine.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// onSet records a MachineSet and the replacements in its status.
func (l *ledger) onSet(now time.Time, s *machinev1alpha1.MachineSet) {
	a := l.of(s.Labels[machinev1alpha1.LabelDeployment])
	before := a.sets[s.Name]
	a.sets[s.Name] = s
	if before == nil {
		return
	}
	for name, by := range replacedBy(before, s) {
		e := a.machines[name]
		if e == nil || !replaces(e.machine) || by == "" && a.keeps(before) > int(s.Spec.Replicas) {
			continue
		}
		l.counts["Machines replaced"]++
		if lasts(l.cut, now, noticed) {
			l.breaks("Machine %s was replaced while its cluster was cut off for %s", name, now.Sub(l.cut).Round(time.Second))
		}
		if lasts(a.frozen, now, obeyed) {
			l.breaks("Machine %s was replaced while %s was frozen for %s", name, a.name, now.Sub(a.frozen).Round(time.Second))
		}
		a.open = append(a.open, &ticket{of: name, set: s.Name, by: by, paired: by != "", opened: now})
	}
	l.audit(now, a)
}

// onSetGone records that a MachineSet no longer exists.
func (l *ledger) onSetGone(_ time.Time, s *machinev1alpha1.MachineSet) {
	delete(l.of(s.Labels[machinev1alpha1.LabelDeployment]).sets, s.Name)
}

// replacedBy returns the Machines that a set newly deletes or replaces. The values are their
// replacements if the set creates these first.
func replacedBy(before, s *machinev1alpha1.MachineSet) map[string]string {
	out := map[string]string{}
	was := func(name string) bool {
		return slices.Contains(before.Status.Dropping, name) ||
			slices.ContainsFunc(before.Status.Replacing, func(r machinev1alpha1.Replacement) bool { return r.Machine == name })
	}
	for _, r := range s.Status.Replacing {
		if !was(r.Machine) {
			out[r.Machine] = r.By
		}
	}
	for _, name := range s.Status.Dropping {
		if _, paired := out[name]; !paired && !was(name) {
			out[name] = ""
		}
	}
	return out
}

// replaces reports whether the replacement of a Machine counts against the budget. A Machine that
// never had a Node is only created again.
func replaces(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && m.Status.NodeRef != nil &&
		(m.Status.Phase == machinev1alpha1.MachineFailed || m.Status.ReplaceRequested)
}

// keeps returns the number of Machines that a set has and does not delete.
func (a *account) keeps(s *machinev1alpha1.MachineSet) int {
	n := 0
	for name, e := range a.machines {
		if setOf(e.machine) == s.Name && e.machine.DeletionTimestamp == nil && !slices.Contains(s.Status.Dropping, name) {
			n++
		}
	}
	return n
}

func setOf(m *machinev1alpha1.Machine) string { return m.Labels[machinev1alpha1.LabelSet] }

// audit checks the number of replacements in flight.
func (l *ledger) audit(now time.Time, a *account) {
	a.open = slices.DeleteFunc(a.open, a.isOver)
	if len(a.open) <= a.budget {
		return
	}
	// The oldest replacements are within the budget.
	for _, t := range a.open[a.budget:] {
		if !t.reported && now.Sub(t.opened) > overlap {
			t.reported = true
			l.breaks("Machine %s was replaced while others were: %d replacements of %s are in flight, of at most %d", t.of, len(a.open), a.name, a.budget)
		}
	}
}

// isOver reports whether a replacement has joined or is no longer needed.
func (a *account) isOver(t *ticket) bool {
	s := a.sets[t.set]
	if s == nil || s.DeletionTimestamp != nil {
		return true
	}
	if t.by != "" {
		by := a.machines[t.by]
		pending := slices.ContainsFunc(s.Status.Replacing, func(r machinev1alpha1.Replacement) bool { return r.By == t.by })
		switch {
		case by != nil && (by.machine.Status.NodeRef != nil || by.machine.Status.Phase == machinev1alpha1.MachineRunning):
			return true
		case t.paired:
			return !pending
		case by == nil || by.machine.DeletionTimestamp != nil:
			t.by = ""
		}
	}
	return t.by == "" && !t.paired && a.keeps(s) >= int(s.Spec.Replicas)
}

// onVM records a VM of a Machine.
func (l *ledger) onVM(machineUID, vm string) {
	if l.vms[machineUID] == nil {
		l.vms[machineUID] = map[string]bool{}
	}
	if !l.vms[machineUID][vm] {
		l.vms[machineUID][vm] = true
		l.counts["VMs created"]++
		if len(l.vms[machineUID]) > 1 {
			l.breaks("the Machine with the UID %s had the VMs %v", machineUID, slices.Sorted(maps.Keys(l.vms[machineUID])))
		}
	}
}

// bounds of a deployment, computed from its spec independently of Drover's code.
func bounds(d *machinev1alpha1.MachineDeployment) limits {
	replicas := int(d.Spec.Replicas)
	surge, _ := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxSurge, replicas, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(d.Spec.Strategy.RollingUpdate.MaxUnavailable, replicas, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return limits{most: replicas + surge, least: max(0, replicas-unavailable)}
}

func budgetOf(d *machinev1alpha1.MachineDeployment) int {
	n, _ := intstr.GetScaledValueFromIntOrPercent(d.Spec.Remediation.MaxInFlight, int(d.Spec.Replicas), true)
	return n
}
