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

// A fleet is what is known of a set and its Machines. It follows from what is observed, and
// from nothing that is decided: it is computed once, and no stage changes it.
type fleet struct {
	// Observed, with the Machines that were ordered, and sorted by name.
	Observed
	now time.Time
	// limits of replacements. There is nothing to go by while unlimited is set: it is
	// the problem with them.
	limits    remediation.Limits
	unlimited *shared.Problem

	// expected names the Machines that were ordered and not seen yet. They are among
	// the others, without anything that only the API server knows.
	expected sets.Set[string]
	// taken are the names of all Machines.
	taken sets.Set[string]
	// terminating Machines, dropping ones, whose end was decided before, those that were
	// set aside, and the others.
	terminating, dropping, aside, active []Machine
	// auto names the Failed Machines that the set preserves by itself.
	auto sets.Set[string]
}

func fleetOf(now time.Time, o Observed) *fleet {
	f := &fleet{Observed: o, now: now}
	f.limits, f.unlimited = remediation.LimitsOf(o.Set.Spec.Remediation, o.Set.Spec.Replicas)
	f.expect()
	f.sort()
	f.auto = f.autoPreserved()
	return f
}

// expect the Machines that were ordered: until each was seen, or is known to be gone, it
// counts as one that exists.
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

// sort the Machines by what was decided of them before. Orphans count from when it was
// written down that they are adopted.
func (f *fleet) sort() {
	f.taken = sets.New(f.Set.Status.Dropping...)
	for _, m := range f.Machines {
		f.taken.Insert(m.Name)
		switch {
		case m.Terminating:
			f.terminating = append(f.terminating, m)
		case slices.Contains(f.Set.Status.Dropping, m.Name):
			f.dropping = append(f.dropping, m)
		case f.isSetAside(m):
			f.aside = append(f.aside, m)
		default:
			f.active = append(f.active, m)
		}
	}
	for _, m := range f.Orphans {
		if slices.Contains(f.Set.Status.Adopting, m.Name) {
			f.active = append(f.active, m)
		}
	}
}
