package set

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/drover-dev/drover/internal/plan/remediation"
)

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
