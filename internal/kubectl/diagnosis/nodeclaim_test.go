package diagnosis_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// TestAMachineOfKarpenterIsShownWithItsNodeClaim renders status, tree and why of a Machine that a NodeClaim was made for.
func TestAMachineOfKarpenterIsShownWithItsNodeClaim(t *testing.T) {
	at := func(minute int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC))
	}
	drifted := &view.Target{NodeClaims: []view.NodeClaim{
		{Name: "web-x7f2p", UID: "of-another", NodePool: "web"},
		{Name: "web-x7f2p", UID: "uid-1", NodePool: "web", Created: at(0), Conditions: []metav1.Condition{
			{Type: "Launched", Status: metav1.ConditionTrue, Reason: "Launched", LastTransitionTime: at(1)},
			{Type: "Registered", Status: metav1.ConditionTrue, Reason: "Registered", LastTransitionTime: at(3)},
			{Type: "Drifted", Status: metav1.ConditionTrue, Reason: "ClassDrifted", Message: "ClassDrifted", LastTransitionTime: at(9)},
		}},
	}}
	deleted := at(10)
	leaving := drifted.NodeClaims[1]
	leaving.Deleted = &deleted
	for name, c := range map[string]struct {
		target *view.Target
		failed machinev1alpha1.FailureReason
	}{
		"Drifted":        {target: drifted},
		"BeingDeleted":   {target: &view.Target{NodeClaims: []view.NodeClaim{leaving}}},
		"NoNodeClaim":    {target: &view.Target{NodeClaims: []view.NodeClaim{drifted.NodeClaims[0]}}},
		"NotReadable":    {target: &view.Target{NodesUnread: true}},
		"TargetNotNamed": {},
		"FailedToJoin":   {failed: machinev1alpha1.FailureJoinTimeout},
		"NothingSaidYet": {target: &view.Target{NodeClaims: []view.NodeClaim{{Name: "web-x7f2p", UID: "uid-1", Created: at(0)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
				Namespace: "team", Name: "karpenter-uid-1", UID: "m", CreationTimestamp: at(0),
				Labels: map[string]string{view.LabelNodeClaim: "web-x7f2p"}, Annotations: map[string]string{view.AnnotationNodeClaimUID: "uid-1"},
			}}
			m.Spec.ClassRef.Name, m.Spec.Version = "small", "v1.35.4"
			m.Status.Phase, m.Status.ProviderID = machinev1alpha1.MachineRunning, "local://1"
			m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "karpenter-uid-1"}
			if c.failed != "" {
				m.Status.Phase, m.Status.FailureReason, m.Status.NodeRef = machinev1alpha1.MachineFailed, c.failed, nil
			}
			v := &view.View{Machines: []machinev1alpha1.Machine{m}, Target: c.target}
			if c.target == drifted {
				v.Events = []corev1.Event{{
					InvolvedObject: corev1.ObjectReference{Kind: view.NodeClaimKind, Name: "web-x7f2p", UID: "uid-1"},
					Reason:         "DisruptionBlocked", Message: "Pod has \"karpenter.sh/do-not-disrupt\" annotation", LastTimestamp: at(12), Count: 3,
				}}
			}
			ref := view.Ref{Kind: view.Machine, Namespace: "team", Name: m.Name}
			report, err := diagnosis.Status(v, nil, at(15).Time)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := diagnosis.Tree(v, &ref, at(15).Time)
			if err != nil {
				t.Fatal(err)
			}
			why, err := diagnosis.Why(v, ref, at(15).Time)
			if err != nil {
				t.Fatal(err)
			}
			s := render.Plain(width, at(15).Time)
			golden(t, "testdata/nodeclaims/"+name+".txt", s.Status(report)+"\n"+s.Tree(tree)+"\n"+s.Why(why))
		})
	}
}
