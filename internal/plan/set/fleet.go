package set

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	shared "github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/remediation"
)

// A fleet is the facts about a set and its Machines. It follows from the observed state only, not from
// decisions: it is computed once, and no stage changes it.
type fleet struct {
	// Observed state, with the Machines that were ordered, sorted by name.
	Observed
	now time.Time
	// limits of replacements. They are unusable while unlimited is set, which is the problem with them.
	limits    remediation.Limits
	unlimited *shared.Problem

	// expected names the Machines that were ordered and not observed yet. They are among the active ones,
	// without the fields that the API server sets.
	expected sets.Set[string]
	// taken are the names of all Machines.
	taken sets.Set[string]
	// terminating Machines are being deleted, dropping ones were recorded for deletion before, aside ones
	// were set aside, and active ones are all the rest.
	terminating, dropping, aside, active []Machine
	// auto names the Failed Machines that the set preserves automatically.
	auto sets.Set[string]
	// recorded names the Machines of earlier decisions.
	recorded recorded
}

// recorded names the Machines that the set's status lists, so that a look at one of them does not
// depend on the number of the others.
type recorded struct {
	dropping, deleting, adopting, setAside, updating, rebooting, gone sets.Set[string]
	// replacements are the Machines by which others are replaced.
	replacements sets.Set[string]
}

func recordedIn(o Observed) recorded {
	s := o.Set.Status
	r := recorded{
		dropping: sets.New(s.Dropping...), deleting: sets.New(s.Deleting...), adopting: sets.New(s.Adopting...), setAside: sets.New(s.SetAside...),
		updating: sets.New(s.Updating...), rebooting: sets.New(s.Rebooting...), gone: sets.New(o.Gone...), replacements: sets.New[string](),
	}
	for _, pair := range s.Replacing {
		r.replacements.Insert(pair.By)
	}
	return r
}

func fleetOf(now time.Time, o Observed) *fleet {
	f := &fleet{Observed: o, now: now, recorded: recordedIn(o)}
	f.limits, f.unlimited = remediation.LimitsOf(o.Set.Spec.Remediation, o.Set.Spec.Replicas)
	f.expect()
	f.sort()
	f.auto = f.autoPreserved()
	return f
}

// expect adds the Machines that were ordered. Each counts as existing until it was observed, or is known to
// be gone.
func (f *fleet) expect() {
	f.expected = sets.New(f.Set.Status.Creating...).Delete(f.Gone...)
	for _, m := range f.Machines {
		f.expected.Delete(m.Name)
	}
	f.Machines = slices.Clone(f.Machines)
	for name := range f.expected {
		m := f.fresh(name).Machine
		m.CreationTimestamp = metav1.NewTime(f.now)
		f.Machines = append(f.Machines, Machine{Machine: m})
	}
	slices.SortFunc(f.Machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
}

// sort groups the Machines by the decisions that were recorded before. Orphans count once their adoption is
// recorded.
func (f *fleet) sort() {
	f.taken = sets.New(f.Set.Status.Dropping...)
	for _, m := range f.Machines {
		f.taken.Insert(m.Name)
		switch {
		case m.Terminating:
			f.terminating = append(f.terminating, m)
		case f.recorded.dropping.Has(m.Name):
			f.dropping = append(f.dropping, m)
		case f.isSetAside(m):
			f.aside = append(f.aside, m)
		default:
			f.active = append(f.active, m)
		}
	}
	for _, m := range f.Orphans {
		if f.recorded.adopting.Has(m.Name) {
			f.active = append(f.active, m)
		}
	}
}
