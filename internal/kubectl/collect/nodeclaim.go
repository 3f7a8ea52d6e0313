package collect

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/kubectl/view"
)

// labelNodePool is the label of Karpenter that names the NodePool of a NodeClaim.
const labelNodePool = "karpenter.sh/nodepool"

// nodeClaims of the target cluster that Machines were made for, and the events of them.
func (r *reader) nodeClaims(c client.Client, t *view.Target) {
	made := map[string]bool{}
	for i := range r.v.Machines {
		if m := &r.v.Machines[i]; view.NodeClaimName(m) != "" {
			made[m.Annotations[view.AnnotationNodeClaimUID]] = true
		}
	}
	if len(made) == 0 {
		return
	}
	claims := &unstructured.UnstructuredList{}
	claims.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: view.NodeClaimKind + "List"})
	if err := r.list(c, claims); err != nil {
		r.unread(view.NodeClaimKind+"s", err)
		return
	}
	t.NodeClaims = []view.NodeClaim{}
	for i := range claims.Items {
		u := &claims.Items[i]
		if made[string(u.GetUID())] {
			t.NodeClaims = append(t.NodeClaims, view.NodeClaim{
				Name: u.GetName(), UID: string(u.GetUID()), NodePool: u.GetLabels()[labelNodePool],
				Created: u.GetCreationTimestamp(), Deleted: u.GetDeletionTimestamp(), Conditions: conditionsOf(u),
			})
		}
	}
	if !r.o.Events {
		return
	}
	l := &corev1.EventList{}
	if err := r.list(c, l, client.MatchingFields{"involvedObject.kind": view.NodeClaimKind}); err != nil {
		r.unread("events of "+view.NodeClaimKind+"s", err)
		return
	}
	for _, e := range l.Items {
		if made[string(e.InvolvedObject.UID)] {
			e.ManagedFields = nil
			r.v.Events = append(r.v.Events, e)
		}
	}
}
