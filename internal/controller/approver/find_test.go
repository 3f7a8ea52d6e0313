package approver

import (
	"slices"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/target"
)

func TestAMachineIsFoundByItsNodeNameAndTokenID(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster machinev1alpha1.ClusterReference
		want    target.Ref
	}{
		"OfAClusterProviderConfig": {machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "c"}, target.ClusterRef("c")},
		"OfAProviderConfig":        {machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "c"}, target.NamespacedRef("ns", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{}
			m.Namespace, m.Name, m.UID = "ns", "m", "uid-1"
			m.Spec.ClusterRef = tc.cluster
			if got, want := nodeKey(m), []string{key(tc.want, names.OfMachine("m", "uid-1"))}; !slices.Equal(got, want) {
				t.Errorf("by Node name: got %q, want %q", got, want)
			}
			if got, want := tokenKey(m), []string{key(tc.want, names.TokenID("uid-1"))}; !slices.Equal(got, want) {
				t.Errorf("by token ID: got %q, want %q", got, want)
			}
		})
	}
}

func TestTheDeletionStagesThatLeftTheNode(t *testing.T) {
	for stage, want := range map[machinev1alpha1.DeletionStage]bool{
		"":                                         false,
		machinev1alpha1.DeletionPreDrainHooks:      false,
		machinev1alpha1.DeletionDraining:           false,
		machinev1alpha1.DeletionDetachingVolumes:   false,
		machinev1alpha1.DeletionDeletingNode:       false,
		machinev1alpha1.DeletionPreTerminateHooks:  true,
		machinev1alpha1.DeletionDeletingDependents: true,
		machinev1alpha1.DeletionDeletingVM:         true,
		machinev1alpha1.DeletionDeletingCompanions: true,
	} {
		m := &machinev1alpha1.Machine{}
		m.Status.Deletion = &machinev1alpha1.DeletionStatus{Stage: stage}
		if hasLeftNode(m) {
			t.Errorf("%q counts for a Machine that is not being deleted", stage)
		}
		m.DeletionTimestamp = &machineDeletedAt
		if got := hasLeftNode(m); got != want {
			t.Errorf("%q: %t, want %t", stage, got, want)
		}
	}
}
