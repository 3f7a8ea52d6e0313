package set

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// A Machine of the set.
type Machine struct {
	*machinev1alpha1.Machine
	// Terminating means that the Machine is being deleted.
	Terminating bool
}

// Observed is the view of the planner.
type Observed struct {
	Set *machinev1alpha1.MachineSet
	// Machines that the set controls, in any order.
	Machines []Machine
	// Gone names those of status.creating that were created and are gone, or that will never be created.
	Gone []string
	// Released are Machines that are gone, as the MachineGroup reports them.
	Released []machinev1alpha1.ReleasedMachine
	// Members that the MachineGroup was to keep when it reported the Released ones, with their Templates: a
	// Machine that is in both was not deleted by the set.
	Members   []machinev1alpha1.GroupMember
	Templates []machinev1alpha1.GroupTemplate
	// IsBehind means that the Machines and the report of the MachineGroup are from different views.
	IsBehind bool
	// NotApplied is the reason why Machines cannot be written, or "".
	NotApplied string
	// Orphans match the selector and have no controller.
	Orphans []Machine
	// Foreign Machines match the selector, and another object controls them. Only their names and owners
	// are set.
	Foreign []*machinev1alpha1.Machine
	// Problem with the class or the cluster that prevents the creation of Machines.
	Problem *shared.Problem
	Safety  shared.Safety
	// HealthProblems are the parts of the template's spec.health that cannot be carried out as they are written.
	HealthProblems []shared.Problem
}

// A Desired Machine.
type Desired struct {
	*machinev1alpha1.Machine
	// Create it if it does not exist.
	Create bool
}

// A Decision is the output of the planner.
type Decision struct {
	// Machines that shall exist, the names of Machines to delete, and the names of Machines that are being
	// deleted already.
	Machines    []Desired
	Delete      []string
	Terminating []string
	// Vanished members are gone, and the MachineGroup did not report them yet. Templates has theirs.
	Vanished  []machinev1alpha1.GroupMember
	Templates []machinev1alpha1.GroupTemplate
	// IsTraced reports whether the MachineGroup may refer to its Machines: provider-drover of the previous
	// release has no field for the references.
	IsTraced bool

	Status machinev1alpha1.MachineSetStatus
	shared.Report
}

// A stage adds to the decisions of earlier stages. It calls no other stage.
type stage func(*plan)

// stages of a plan, in their order.
var stages = []stage{
	(*plan).adopt,
	(*plan).deleteSetAside,
	(*plan).resumeReplacing,
	(*plan).resumeUpdates,
	(*plan).resumeReboots,
	(*plan).recover,
	(*plan).setAsideMarked,
	(*plan).scaleDown,
	(*plan).backOff,
	(*plan).retry,
	(*plan).handOver,
	(*plan).replace,
	(*plan).reboot,
	(*plan).remake,
	(*plan).create,
	(*plan).createWithoutVMs,
	(*plan).exhaust,
	(*plan).selectUpdates,
	(*plan).replaceAged,
}

// Plan computes the decision for the set at a time. Crossplane reconciles the set again when the set changes,
// when the digest of its Machines in the MachineGroup changes (internal/plan/group/digest.go), and after
// Decision.CallAgain at the latest.
func Plan(now time.Time, o Observed) Decision {
	f := fleetOf(now, o)
	p := newPlan(f)
	for _, decide := range stages {
		decide(p)
	}
	return p.decide()
}

// A plan is the decisions of the stages so far. A predicate that depends on decisions is a method of the
// plan, and one that depends on the facts alone is a method of the fleet.
type plan struct {
	*fleet

	// kept Machines stay, and dropped ones are deleted by this plan. They exist until the deletion is
	// recorded.
	kept, dropped []Machine
	// replaced are the entries of status.replacements that this plan adds.
	replaced []machinev1alpha1.ReplacedMachine
	// byName has the kept Machines. steps counts the Machines that this plan looked at in passes over
	// all kept ones: the number of passes does not depend on the number of Machines.
	byName map[string]Machine
	steps  int
	// adopting names all Machines that are being adopted, and takesOn those of them that this plan adds.
	adopting, takesOn []string
	// creates names the Machines to create, and created is the counter after them. counted names Machines
	// that exist, but were not counted before.
	creates []string
	created int64
	counted []string
	// replacing has the Machines that stay until their replacements are available, and paired the pairs
	// that this plan adds: their replacements are created once the pairs are recorded.
	replacing, paired []machinev1alpha1.Replacement
	// released pairs have a replacement that failed and is set aside. They are listed until the replacement
	// shows its mark.
	released []machinev1alpha1.Replacement
	// setAside Machines are marked for deletion and preserved: they do not count as replicas.
	setAside []Machine
	// backoff of the template, while its creations fail.
	backoff *machinev1alpha1.Backoff
	// exhausted is set while the cloud has no room for another Machine of the template, and exhaustedBy is
	// the error that reports it.
	exhausted   *machinev1alpha1.Exhaustion
	exhaustedBy string
	// updating names the Machines that are being updated in place, and updated those that finished since
	// the last plan. selected Machines are those that this plan adds: their specs are changed once the
	// selection is recorded.
	updating, updated []string
	listed            sets.Set[string]
	selected          []Machine
	// rebooting names the Machines that may reboot because they are unhealthy.
	rebooting sets.Set[string]

	events []shared.Event
}

// newPlan returns a plan that has decided nothing.
func newPlan(f *fleet) *plan {
	p := &plan{
		fleet: f, created: f.Set.Status.Created, kept: slices.Clone(f.active), setAside: slices.Clone(f.aside),
		byName: make(map[string]Machine, len(f.active)), listed: sets.New[string](), rebooting: sets.New[string](),
	}
	for _, m := range p.kept {
		p.byName[m.Name] = m
	}
	return p
}

// all kept Machines, for a pass over them.
func (p *plan) all() []Machine {
	p.steps += len(p.kept)
	return p.kept
}

// drop Machines. A stage drops all of its Machines at once.
func (p *plan) drop(ms ...Machine) {
	p.dropped = append(p.dropped, ms...)
	p.leave(sets.New(namesOf(ms)...))
}

// leave removes Machines from the kept ones.
func (p *plan) leave(names sets.Set[string]) {
	p.kept = slices.DeleteFunc(p.all(), func(m Machine) bool { return names.Has(m.Name) })
	for name := range names {
		delete(p.byName, name)
		p.rebooting.Delete(name)
	}
	p.forget(names)
}

func (p *plan) decide() Decision {
	d, allowed := Decision{Status: p.status()}, p.remediationAllowed()
	d.Conditions = p.conditions(allowed)

	for _, m := range slices.Concat(p.kept, p.dropped, p.setAside) {
		d.Machines = append(d.Machines, p.desired(m))
	}
	for _, name := range p.creates {
		d.Machines = append(d.Machines, p.ordered(name))
	}
	for _, m := range p.dropping {
		d.Delete = append(d.Delete, m.Name)
	}

	for _, m := range p.terminating {
		d.Terminating = append(d.Terminating, m.Name)
	}

	d.Vanished, d.Templates = p.vanished(d.Status), p.Templates
	d.IsTraced = slices.ContainsFunc(p.Machines, isTraced)
	d.Ready = p.isComplete(d.Status)
	d.Events = slices.Concat(p.conditionEvents(d.Conditions), remediation.Events(allowed, p.Set.Status.Conditions), p.events)
	d.Conditions = append(d.Conditions, p.kstatus(d.Status, d.Ready, d.Conditions, allowed)...)
	d.CallAgain = p.callAgain(d.Status, d.Ready)
	return d
}
