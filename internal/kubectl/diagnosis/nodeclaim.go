package diagnosis

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// nodeClaim returns the NodeClaim of Karpenter that a Machine was made for, with the last word of Karpenter, "" if there is none.
func nodeClaim(v *view.View, m *machinev1alpha1.Machine) string {
	name := view.NodeClaimName(m)
	switch c := v.NodeClaimOf(m); {
	case name == "":
		return ""
	case c != nil && c.Deleted != nil:
		return c.String() + ", being deleted: " + cmp.Or(c.LastWord(), "nothing said yet")
	case c != nil:
		return c.String() + ": " + cmp.Or(c.LastWord(), "nothing said yet")
	case v.Target == nil:
		return fmt.Sprintf("%s %s of Karpenter; name the target cluster by --target-context to read it", view.NodeClaimKind, name)
	case v.Target.NodeClaims == nil:
		return fmt.Sprintf("%s %s of Karpenter", view.NodeClaimKind, name)
	}
	return fmt.Sprintf("%s %s of Karpenter, which does not exist: drover-karpenter deletes the Machine", view.NodeClaimKind, name)
}

// nodeClaim adds what Karpenter says about a Machine.
func (b *answer) nodeClaim(m *machinev1alpha1.Machine) {
	c := b.v.NodeClaimOf(m)
	if c == nil {
		return
	}
	ref := view.Ref{Kind: view.NodeClaimKind, Name: c.Name}
	b.entry(Entry{Time: c.Created, Ref: ref, Source: "Object", Reason: "Created"})
	if c.Deleted != nil {
		b.entry(Entry{Time: *c.Deleted, Ref: ref, Source: "Object", Reason: "DeletionRequested"})
	}
	for _, k := range c.Conditions {
		text := fmt.Sprintf("%s=%s", k.Type, k.Status)
		if k.Reason != k.Type {
			text += " " + k.Reason
		}
		b.entry(Entry{Time: k.LastTransitionTime, Ref: ref, Source: "Condition", Reason: text, Warning: k.Status == metav1.ConditionFalse})
	}
	b.events(ref)
}
