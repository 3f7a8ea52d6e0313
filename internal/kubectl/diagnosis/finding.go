// Package diagnosis explains a view: the progress of each pool, its blockers, and the actions for a user. It is
// pure: the same view and the same time give the same result.
//
// A finding is a cause with its remedy. The cause is the message of a condition, which its object keeps
// current. The remedy is the advice in the comment of its reason in apis/*/v1alpha1/reasons.go. The rules in
// rules.go select the conditions.
package diagnosis

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/kubectl/advice"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// A Finding is a reason why an object is not complete, with the action for a user.
type Finding struct {
	// Subjects that have it: the first one has the cause.
	Subjects []view.Ref `json:"subjects"`
	// Condition that has the reason. It is empty if a field of the status has it.
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason"`
	// Cause is the message of the object itself.
	Cause string `json:"cause"`
	// Meaning of the reason.
	Meaning string `json:"meaning,omitempty"`
	// Do is the action for a user. It is empty if the state ends by itself.
	Do string `json:"do,omitempty"`
	// Commands that carry the action out, or show more.
	Commands []string `json:"commands,omitempty"`
	// Since when.
	Since metav1.Time `json:"since,omitempty,omitzero"`
	// Until when it lasts at most, if that is known.
	Until *metav1.Time `json:"until,omitempty"`
	// NeedsUser means that it lasts until a user acts.
	NeedsUser bool `json:"needsUser"`
}

// newFinding of a condition.
func newFinding(subject view.Ref, c *metav1.Condition) Finding {
	a := advice.For(subject.Kind, c.Reason)
	return Finding{Subjects: []view.Ref{subject}, Condition: c.Type, Reason: c.Reason, Cause: c.Message, Meaning: a.Meaning, Do: a.Do, Since: c.LastTransitionTime}
}

// merge merges findings of the same reason of a MachineDeployment, its sets and its Machines. The first one has
// the cause, and the subjects of the other ones are added.
func merge(all []Finding) []Finding {
	var out []Finding
	for _, f := range all {
		i := slices.IndexFunc(out, func(o Finding) bool { return o.Reason == f.Reason })
		if i < 0 {
			out = append(out, f)
			continue
		}
		o := &out[i]
		for _, s := range f.Subjects {
			if !slices.Contains(o.Subjects, s) {
				o.Subjects = append(o.Subjects, s)
			}
		}
		o.NeedsUser = o.NeedsUser || f.NeedsUser
		if !strings.Contains(o.Cause, f.Cause) && strings.Contains(f.Cause, o.Cause) {
			o.Cause = f.Cause
		}
		if o.Do == "" {
			o.Do = f.Do
		}
		if o.Until == nil {
			o.Until = f.Until
		}
		for _, c := range f.Commands {
			if !slices.Contains(o.Commands, c) && len(o.Commands) < 3 {
				o.Commands = append(o.Commands, c)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return needsUserFirst(a) - needsUserFirst(b) })
	return out
}

func needsUserFirst(f Finding) int {
	if f.NeedsUser {
		return 0
	}
	return 1
}
