package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestTheNodeGetsWhatTheMachineSays(t *testing.T) {
	m := machine(phaseIs("Running"))
	m.Spec.ClusterRef.Name = "prod"
	m.Spec.Metadata = machinev1alpha1.NodeMetadata{Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"note": "x"}}
	m.Spec.Taints = []machinev1alpha1.Taint{{Key: "gpu", Effect: "NoSchedule"}}
	m.Spec.StartupTaints = []machinev1alpha1.Taint{{Key: "cni", Effect: "NoExecute"}}
	m.Annotations = map[string]string{machinev1alpha1.AnnotationForceDrain: "true"}
	wn := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}).WorkerNode
	want := &workernode.Parameters{
		ProviderID: id,
		Labels:     map[string]string{"zone": "a"},
		Annotations: map[string]string{
			"note": "x", machinev1alpha1.AnnotationMachine: "m", machinev1alpha1.AnnotationNamespace: "ns", machinev1alpha1.AnnotationCluster: "prod",
		},
		Taints:        []workernode.Taint{{Key: "gpu", Effect: "NoSchedule"}},
		StartupTaints: []workernode.Taint{{Key: "cni", Effect: "NoExecute"}},
		Drain:         workernode.Drain{Force: true},
	}
	if diff := cmp.Diff(want, wn); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	m.Annotations = nil
	if wn := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}}).WorkerNode; wn.Drain.Force {
		t.Error("a drain is forced that nothing forces")
	}
}

// TestTheAgentOfTheNodeSeesTheStageOfAnUpdate by the label, which is ready only while the Node is
// drained.
func TestTheAgentOfTheNodeSeesTheStageOfAnUpdate(t *testing.T) {
	drained := readyNode()
	drained.Parameters.Drained, drained.Observation.Drained = true, true
	for name, tc := range map[string]struct {
		selected bool
		node     *workernode.WorkerNode
		label    string
		drained  bool
	}{
		"a candidate waits":          {false, readyNode(), machinev1alpha1.UpdateLabelCandidate, false},
		"a Node that is drained yet": {true, readyNode(), machinev1alpha1.UpdateLabelCandidate, true},
		"a drained Node is ready":    {true, drained, machinev1alpha1.UpdateLabelReady, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(phaseIs("Running"))
			m.Spec.InPlaceUpdate = &machinev1alpha1.MachineUpdate{
				ID: "two", Version: "v1.36.0", ClassRef: machinev1alpha1.ClassReference{Name: "large"}, Selected: tc.selected,
			}
			p := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: tc.node}).WorkerNode
			want := map[string]string{machinev1alpha1.LabelUpdate: tc.label, machinev1alpha1.LabelUpdateTo: "two"}
			if diff := cmp.Diff(want, p.Labels); diff != "" {
				t.Errorf("labels: -want +got:\n%s", diff)
			}
			if v, c := p.Annotations[machinev1alpha1.AnnotationUpdateVersion], p.Annotations[machinev1alpha1.AnnotationUpdateClass]; v != "v1.36.0" || c != "large" {
				t.Errorf("to version %q of class %q", v, c)
			}
			if p.Drained != tc.drained {
				t.Errorf("drained %t, want %t", p.Drained, tc.drained)
			}
		})
	}
}
