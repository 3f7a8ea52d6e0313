package view

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// NodeClaimKind is the kind of the objects that Karpenter requests Nodes by.
const NodeClaimKind = "NodeClaim"

// Keys that drover-karpenter sets on Machines. A test of the module karpenter compares them.
const (
	// LabelNodeClaim has the name of the NodeClaim, which is cut if it is too long for a label.
	LabelNodeClaim = "karpenter.drover.dev/nodeclaim"
	// AnnotationNodeClaimUID has the UID of the NodeClaim.
	AnnotationNodeClaimUID = "karpenter.drover.dev/nodeclaim-uid"
)

// A NodeClaim of Karpenter, in the target cluster.
type NodeClaim struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// NodePool of Karpenter, "" if the NodeClaim belongs to none.
	NodePool   string             `json:"nodePool,omitempty"`
	Created    metav1.Time        `json:"created"`
	Deleted    *metav1.Time       `json:"deleted,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// String names the NodeClaim and its NodePool.
func (c NodeClaim) String() string {
	text := NodeClaimKind + " " + c.Name
	if c.NodePool != "" {
		text += " of Karpenter's NodePool " + c.NodePool
	}
	return text
}

// LatestCondition is the text of the condition that changed last, with its message. It is "" before there is one.
func (c NodeClaim) LatestCondition() string {
	if len(c.Conditions) == 0 {
		return ""
	}
	last := slices.MaxFunc(c.Conditions, func(a, b metav1.Condition) int {
		return cmp.Or(a.LastTransitionTime.Compare(b.LastTransitionTime.Time), cmp.Compare(a.Type, b.Type))
	})
	text := ConditionText(last)
	// Karpenter sets the type or the reason as the message of a condition without details.
	if last.Message != "" && last.Message != last.Type && last.Message != last.Reason {
		text += ": " + last.Message
	}
	return text
}

// NodeClaimName returns the name of the NodeClaim that a Machine was made for, as its label has it, "" if there is none.
func NodeClaimName(m *machinev1alpha1.Machine) string {
	if metav1.GetControllerOfNoCopy(m) != nil {
		return ""
	}
	return m.Labels[LabelNodeClaim]
}

// NodeClaimOf a Machine, nil if it was not read or does not exist. Names of NodeClaims may be used again: the UID decides.
func (v *View) NodeClaimOf(m *machinev1alpha1.Machine) *NodeClaim {
	uid := m.Annotations[AnnotationNodeClaimUID]
	if v.Target == nil || NodeClaimName(m) == "" || uid == "" {
		return nil
	}
	for i := range v.Target.NodeClaims {
		if c := &v.Target.NodeClaims[i]; c.UID == uid {
			return c
		}
	}
	return nil
}
