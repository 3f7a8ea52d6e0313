package diagnosis

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// nodeClaim returns the NodeClaim of Karpenter that a Machine was made for, with its latest condition, "" if there is none.
func nodeClaim(v *view.View, m *machinev1alpha1.Machine) string {
	name := view.NodeClaimName(m)
	if name == "" {
		return ""
	}
	if c := v.NodeClaimOf(m); c != nil {
		text := c.String()
		if c.Deleted != nil {
			text += ", being deleted"
		}
		return text + ": " + cmp.Or(c.LatestCondition(), "nothing said yet")
	}
	text := view.NodeClaimKind + " " + name + " of Karpenter"
	switch {
	case v.Target == nil:
		text += "; name the target cluster by --target-context to read it"
	case v.Target.NodeClaims != nil:
		text += ", which does not exist: drover-karpenter deletes the Machine"
	}
	return text
}

// nodeClaim adds the life, the conditions and the events of the NodeClaim of a Machine.
func (b *answer) nodeClaim(m *machinev1alpha1.Machine) {
	c := b.v.NodeClaimOf(m)
	if c == nil {
		return
	}
	ref := view.Ref{Kind: view.NodeClaimKind, Name: c.Name}
	b.object(ref, &metav1.ObjectMeta{CreationTimestamp: c.Created, DeletionTimestamp: c.Deleted})
	for _, k := range c.Conditions {
		b.condition(ref, k, k.Status == metav1.ConditionFalse)
	}
}
