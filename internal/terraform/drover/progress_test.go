package drover

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func condition(kind, status, reason, message string) any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

func deployment(spec, status map[string]any, conditions ...any) *unstructured.Unstructured {
	status["conditions"] = conditions
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "MachineDeployment", "metadata": map[string]any{"generation": int64(2)}, "spec": spec, "status": status,
	}}
}

func TestProgress(t *testing.T) {
	type m = map[string]any
	counts := func(observed, all, updated, available int64) m {
		return m{"observedGeneration": observed, "replicas": all, "updatedReplicas": updated, "availableReplicas": available}
	}
	ready, settled := condition("Ready", "True", "Available", ""), condition("Reconciling", "False", "Complete", "")
	three := m{"replicas": int64(3)}
	pool := deployment(m{}, m{"observedGeneration": int64(2)}, condition("Ready", "False", "DomainsShort", "1 of 3 Nodes are missing"), settled)
	pool.SetKind("NodePool")
	for name, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want progress
	}{
		"IsDoneWithAllReplicas":              {deployment(three, counts(2, 3, 3, 3), ready, settled), progress{done: true}},
		"WaitsForItsController":              {deployment(three, counts(1, 3, 3, 3), ready, settled), progress{waits: "its controller has not observed the change yet"}},
		"IsNotStalledByTheSpecOfBefore":      {deployment(three, counts(1, 3, 3, 3), condition("Stalled", "True", "ClassNotFound", "no class")), progress{waits: "its controller has not observed the change yet"}},
		"IsStalledWithTheReason":             {deployment(three, counts(2, 3, 0, 3), condition("Stalled", "True", "ClassNotFound", "no class"), condition("Reconciling", "True", "RollingOut", "0 of 3")), progress{stalled: "ClassNotFound: no class"}},
		"WaitsWithTheObjectsOwnWords":        {deployment(three, counts(2, 4, 1, 3), condition("Reconciling", "True", "RollingOut", "1 of 3 are updated")), progress{waits: "RollingOut: 1 of 3 are updated"}},
		"WaitsForTheLastOldMachine":          {deployment(three, counts(2, 4, 3, 3), ready, settled), progress{waits: "status.replicas is 4 of 3"}},
		"WaitsForUpdatedMachines":            {deployment(three, counts(2, 3, 1, 3), ready, settled), progress{waits: "status.updatedReplicas is 1 of 3"}},
		"WaitsForAvailableMachines":          {deployment(three, counts(2, 3, 3, 2), ready, settled), progress{waits: "status.availableReplicas is 2 of 3"}},
		"LeavesOldMachinesToTheUserOnDelete": {deployment(m{"replicas": int64(3), "strategy": m{"type": "OnDelete"}}, counts(2, 3, 0, 3), ready, settled), progress{done: true}},
		"IsDoneWhenPaused":                   {deployment(m{"replicas": int64(3), "paused": true}, counts(2, 3, 0, 3), condition("Reconciling", "True", "Paused", "")), progress{done: true}},
		"OfAPoolWaitsUntilItIsReady":         {pool, progress{waits: "DomainsShort: 1 of 3 Nodes are missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := progressOf(tc.u); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestADeletionReportsWhatItWaitsFor(t *testing.T) {
	u := deployment(map[string]any{}, map[string]any{}, condition("Ready", "False", "Deleting", "waits for the drain of machine a"))
	if got := deletion(u); got != "Deleting: waits for the drain of machine a" {
		t.Error(got)
	}
	u = deployment(map[string]any{}, map[string]any{})
	u.SetFinalizers([]string{"b", "a"})
	if got := deletion(u); got != "the finalizers a, b" {
		t.Error(got)
	}
}
