package replicas

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/names"
)

// A Machine of the set.
type Machine struct {
	*machinev1alpha1.Machine
	// Provider that the Machine's Composition is selected by.
	Provider string
	// Observed is false for a Machine that the set's references do not name. See
	// step.Child.
	Observed bool
	// Terminating means that the Machine is being deleted.
	Terminating bool
}

// Observed is what the step sees.
type Observed struct {
	Set *machinev1alpha1.MachineSet
	// Machines that the set controls, in any order.
	Machines []Machine
	// Provider of the template's class. It is empty when there is no such class.
	Provider string
	// Problem with the class, for which no Machines are created.
	Problem *step.Problem
	Safety  step.Safety
}

// A Desired Machine.
type Desired struct {
	*machinev1alpha1.Machine
	// Provider to select the Machine's Composition by.
	Provider string
	Ready    bool
}

// A Decision is what the step wants.
type Decision struct {
	Machines   []Desired
	Status     machinev1alpha1.MachineSetStatus
	Ready      bool
	Conditions []step.Condition
	Events     []step.Event
	// CallAgain after this time, even if nothing happens.
	CallAgain time.Duration
}

// Plan decides.
func Plan(now time.Time, o Observed) Decision {
	slices.SortFunc(o.Machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	p := plan{Observed: o, now: now, created: o.Set.Status.Created}
	p.sort()
	p.scale()
	p.replace()
	return p.decide()
}

// A plan is in the making.
type plan struct {
	Observed
	now time.Time

	// terminating Machines, dropping ones, whose end was decided before, and the
	// others.
	terminating, dropping, kept []Machine
	// dropped Machines are kept ones whose end this plan decides. They stay
	// composed until that is written down.
	dropped []Machine
	// creates these names, and created is the counter after it.
	creates []string
	created int64

	events []step.Event
}

func (p *plan) sort() {
	for _, m := range p.Machines {
		switch {
		case m.Terminating:
			p.terminating = append(p.terminating, m)
		case slices.Contains(p.Set.Status.Dropping, m.Name):
			p.dropping = append(p.dropping, m)
		default:
			p.kept = append(p.kept, m)
		}
	}
}

// scale creates what is missing and drops what is too much.
func (p *plan) scale() {
	existing, want := len(p.kept), int(p.Set.Spec.Replicas)
	if existing > want {
		p.drop(p.worstFirst()[:existing-want]...)
		p.events = append(p.events, p.deletedEvent(existing))
	}
	missing := 0
	if p.mayCreate() {
		missing = max(0, want-existing)
	}
	p.create(missing)
}

// replace the worst Failed Machine, unless a Machine is on its way already: what
// made one fail may make all fail. It is dropped here, and then missing.
func (p *plan) replace() {
	onItsWay := slices.ContainsFunc(p.kept, func(m Machine) bool { return isOnItsWay(m.Status.Phase) })
	if onItsWay || len(p.creates) > 0 || !p.mayCreate() {
		return
	}
	for _, m := range p.worstFirst() {
		if m.Status.Phase == machinev1alpha1.MachineFailed {
			p.drop(m)
			p.events = append(p.events, replacingEvent(m))
			return
		}
	}
}

func (p *plan) mayCreate() bool { return p.Problem == nil && !p.Safety.Frozen }

func (p *plan) drop(ms ...Machine) {
	dropped := sets.New[string]()
	for _, m := range ms {
		dropped.Insert(m.Name)
	}
	p.dropped = append(p.dropped, ms...)
	p.kept = slices.DeleteFunc(p.kept, func(m Machine) bool { return dropped.Has(m.Name) })
}

// create n Machines, with names that no Machine of the set has. Names that are
// taken were created, and not counted yet: a response that creates changes the
// set's references, and so its status is refused.
func (p *plan) create(n int) {
	taken := sets.New(p.Set.Status.Dropping...)
	for _, m := range p.Machines {
		taken.Insert(m.Name)
	}
	var counted []string
	for {
		name := names.Machine(p.Set.Name, p.Set.UID, p.created)
		if !taken.Has(name) {
			if n == 0 {
				break
			}
			n--
			p.creates = append(p.creates, name)
		}
		counted = append(counted, name)
		p.created++
	}
	if len(counted) > 0 {
		p.events = append(p.events, createdEvent(counted))
	}
}

func (p *plan) decide() Decision {
	d := Decision{Status: p.status()}

	for _, m := range p.kept {
		d.Machines = append(d.Machines, existing(p.Set, m, p.Provider))
	}
	for _, m := range p.dropped {
		d.Machines = append(d.Machines, existing(p.Set, m, p.Provider))
	}
	for _, name := range p.creates {
		d.Machines = append(d.Machines, missing(p.Set, name, p.Provider))
	}

	valid := p.valid()
	d.Conditions = []step.Condition{valid}
	if valid.Status != "True" && valid.IsNew(p.Set.Status.Conditions) {
		d.Events = append(d.Events, step.Event{Warning: true, Reason: valid.Reason, Message: valid.Message})
	}
	d.Events = append(d.Events, p.readoptedEvents()...)
	d.Events = append(d.Events, p.events...)

	d.Ready = d.Status.Replicas == p.Set.Spec.Replicas && d.Status.ReadyReplicas == p.Set.Spec.Replicas
	d.CallAgain = p.callAgain(d.Ready)
	return d
}
