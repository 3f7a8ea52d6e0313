package machine

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

// UIDOf returns the UID of the NodeClaim that a Machine was made for.
func UIDOf(m *drover.Machine) types.UID {
	return types.UID(m.Annotations[drover.AnnotationNodeClaimUID])
}

// KeyOf returns the class and the failure domain of a Machine.
func KeyOf(m *drover.Machine) offer.Key {
	k := offer.Key{Class: m.Spec.ClassRef}
	if d := m.Spec.FailureDomain; d != nil {
		k.FailureDomain = *d
	}
	return k
}

// ZoneOf returns the zone of a Machine.
func ZoneOf(m *drover.Machine) string { return m.Spec.Metadata.Labels[corev1.LabelTopologyZone] }

// Claim returns a Machine as Karpenter sees it. The offer has its capacity. If the offer has the Machine's class no more, the
// capacity is unknown.
func Claim(m *drover.Machine, o offer.Offer) *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: m.Labels[drover.LabelNodeClaim], Labels: maps.Clone(m.Spec.Metadata.Labels),
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
	}}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	c.Status.ProviderID = m.Observed().ProviderID
	if n := m.Observed().NodeRef; n != nil {
		c.Status.NodeName = n.Name
	}
	if of, ok := o.Find(KeyOf(m), ZoneOf(m)); ok {
		t := offer.TypeOf(of)
		c.Labels[corev1.LabelArchStable], c.Labels[corev1.LabelOSStable] = of.Node.Architecture, of.Node.OperatingSystem
		c.Status.Capacity, c.Status.Allocatable = positive(t.Capacity), positive(t.Allocatable())
	}
	return c
}

// positive leaves out the resources of which a Node has none.
func positive(in corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for k, v := range in {
		if !v.IsZero() {
			out[k] = v
		}
	}
	return out
}

// IsGone reports whether the VM of a Machine is known not to exist: its cloud does not have it, and its Node confirms that.
func IsGone(m *drover.Machine) bool {
	s := m.Observed()
	return s.Phase == drover.PhaseFailed && s.FailureReason == drover.FailureVMLost && s.LossConfirmed
}
