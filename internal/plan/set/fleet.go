package set

import (
	"time"

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

// exists reports whether the set has a Machine of this name, kept or not.
func (f *fleet) exists(name string) bool { return f.taken.Has(name) }

// untilAvailable is how long a ready Machine must still stay ready until it counts as available, and 0 or
// less if it does already.
func (f *fleet) untilAvailable(m Machine) time.Duration {
	return m.Status.ReadySince.Add(time.Duration(f.Set.Spec.MinReadySeconds) * time.Second).Sub(f.now)
}
