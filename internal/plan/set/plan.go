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

// Observed is what the step sees.
type Observed struct {
	Set *machinev1alpha1.MachineSet
	// Machines that the set controls, in any order.
	Machines []Machine
	// Gone names those of status.creating that were created and are gone, or never will
	// be.
	Gone []string
	// NotApplied is what keeps Machines from being written, if anything.
	NotApplied string
	// Orphans match the selector, and nobody controls them.
	Orphans []Machine
	// Foreign Machines match the selector, and somebody else controls them: their names
	// and owners.
	Foreign []*machinev1alpha1.Machine
	// Problem with the class, for which no Machines are created.
	Problem *shared.Problem
	Safety  shared.Safety
}

// A Desired Machine.
type Desired struct {
	*machinev1alpha1.Machine
	// Create it if it does not exist.
	Create bool
}

// A Decision is what the step wants.
type Decision struct {
	// Machines that shall exist, names of those that shall be deleted, and of those that are
	// being deleted already.
	Machines    []Desired
	Delete      []string
	Terminating []string
	// IsTraced means that the MachineGroup may refer to its Machines: provider-drover of the
	// release before has no field for it.
	IsTraced bool

	Status machinev1alpha1.MachineSetStatus
	shared.Report
}

// A stage adds to the decisions of the stages before it. It calls no other stage.
type stage func(*plan)

// stages of a plan, in their order.
var stages = []stage{
	(*plan).adopt,
	(*plan).deleteSetAside,
	(*plan).resumeReplacing,
	(*plan).resumeUpdates,
	(*plan).recover,
	(*plan).setAsideMarked,
	(*plan).scaleDown,
	(*plan).backOff,
	(*plan).retry,
	(*plan).handOver,
	(*plan).replace,
	(*plan).remake,
	(*plan).create,
	(*plan).createWithoutVMs,
	(*plan).exhaust,
	(*plan).selectUpdates,
}

// Plan decides.
func Plan(now time.Time, o Observed) Decision {
	f := fleetOf(now, o)
	p := &plan{fleet: f, created: o.Set.Status.Created, kept: slices.Clone(f.active), setAside: slices.Clone(f.aside)}
	for _, decide := range stages {
		decide(p)
	}
	return p.decide()
}

// A plan is what the stages have decided so far. What depends on that is a method of the plan,
// and what depends on the facts alone is one of the fleet.
type plan struct {
	*fleet

	// kept Machines are those that stay, and dropped ones those whose end this plan decides.
	// They stay until that is written down.
	kept, dropped []Machine
	// adopting names the Machines that are being adopted, and takesOn those of them
	// that this plan adds.
	adopting, takesOn []string
	// creates these names, and created is the counter after it. Counted are those that
	// exist, but were not counted before.
	creates []string
	created int64
	counted []string
	// replacing has the Machines that are kept until others are available in their
	// place, and paired those that this plan adds: the others are created when that is
	// written down.
	replacing, paired []machinev1alpha1.Replacement
	// released are pairs whose replacement failed and is set aside, until it shows its mark.
	released []machinev1alpha1.Replacement
	// setAside Machines are marked for deletion and preserved: they count as gone.
	setAside []Machine
	// backoff of the template, while it fails.
	backoff *machinev1alpha1.Backoff
	// exhausted is there while the cloud has no room for another Machine of the
	// template, and exhaustedBy is the error that says so.
	exhausted   *machinev1alpha1.Exhaustion
	exhaustedBy string
	// updating names the Machines that are updated in place, and updated those that
	// have been since the last plan. Selected ones are those that this plan adds: they
	// are told when that is written down.
	updating, updated []string
	selected          []Machine

	events []shared.Event
}

func (p *plan) drop(ms ...Machine) {
	dropped := sets.New[string]()
	for _, m := range ms {
		dropped.Insert(m.Name)
	}
	p.dropped = append(p.dropped, ms...)
	p.kept = slices.DeleteFunc(p.kept, func(m Machine) bool { return dropped.Has(m.Name) })
	p.forget(dropped)
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

	d.IsTraced = slices.ContainsFunc(p.Machines, isTraced)
	d.Ready = p.isComplete(d.Status)
	d.Events = slices.Concat(p.conditionEvents(d.Conditions), remediation.Events(allowed, p.Set.Status.Conditions), p.events)
	d.Conditions = append(d.Conditions, p.kstatus(d.Status, d.Ready, d.Conditions, allowed)...)
	d.CallAgain = p.callAgain(d.Status, d.Ready)
	return d
}
