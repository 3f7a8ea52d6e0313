package gitops

import (
	"maps"
	"slices"
	"testing"
)

// object of a kind, for a case of a table.
func object(apiVersion, kind string, spec, status map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind, "spec": spec, "status": status,
		"metadata": map[string]any{"name": "x", "namespace": "default", "generation": 2},
	}
}

func condition(kind, status, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "Reason", "message": message, "observedGeneration": 2}
}

func observed(conditions ...any) map[string]any {
	return map[string]any{"observedGeneration": 2, "conditions": conditions}
}

const machineGroup = "machine.drover.dev/v1alpha1"

// TestHealthChecksOfArgoCD has states that live objects rarely or never have in a test.
func TestHealthChecksOfArgoCD(t *testing.T) {
	pausedByCrossplane := object(machineGroup, "NodePool", nil, observed(condition("Synced", "False", "paused")))
	pausedByCrossplane["metadata"].(map[string]any)["annotations"] = map[string]any{"crossplane.io/paused": "true"}
	stale := observed(condition("Ready", "True", ""))
	stale["observedGeneration"] = 1
	torn := condition("Ready", "True", "")
	torn["observedGeneration"] = 1
	paused := map[string]any{"paused": true}
	cases := map[string]struct {
		reason        string
		object        map[string]any
		want, message string
	}{
		"AClass":           {"A kind that only holds values has no status.", object(machineGroup, "MachineClass", nil, nil), "Healthy", ""},
		"AClusterClass":    {"The same.", object(machineGroup, "ClusterMachineClass", nil, nil), "Healthy", ""},
		"AProfile":         {"The same.", object(machineGroup, "OperatingSystemProfile", nil, nil), "Healthy", ""},
		"AHealthProfile":   {"The same.", object(machineGroup, "HealthProfile", nil, nil), "Healthy", ""},
		"ARolloutAnalysis": {"The same.", object(machineGroup, "RolloutAnalysis", nil, nil), "Healthy", ""},
		"AnAnalysisRun":    {"Its verdicts are those of the MachineDeployment.", object(machineGroup, "RolloutAnalysisRun", nil, observed()), "Healthy", ""},
		"ARolloutPolicy":   {"A wave that waits is no error of the policy.", object(machineGroup, "RolloutPolicy", nil, map[string]any{"observedGeneration": 2}), "Healthy", ""},
		"ARolloutTurn":     {"What it waits for is shown by the MachineDeployment.", object(machineGroup, "RolloutTurn", nil, map[string]any{}), "Healthy", ""},
		"ARolloutThatWaitsForItsWave": {"It is held and needs nobody.", object(machineGroup, "MachineDeployment", nil,
			observed(condition("Ready", "False", ""), condition("Progressing", "Unknown", "wave b waits for wave a"), condition("Reconciling", "False", "wave b waits for wave a"), condition("Stalled", "False", ""))), "Suspended", "wave b waits for wave a"},
		"ARejectedRollout": {"The cause and the way on are shown.", object(machineGroup, "MachineDeployment", nil,
			observed(condition("Ready", "False", ""), condition("Progressing", "False", "rejected"), condition("Reconciling", "False", ""), condition("Stalled", "True", "Revision 2 was rejected; correct spec.template"))), "Degraded", "Revision 2 was rejected; correct spec.template"},
		"AFailedAnalysis": {"The numbers are shown.", object(machineGroup, "MachineDeployment", nil,
			observed(condition("Ready", "False", ""), condition("Progressing", "False", "step 1"), condition("Stalled", "True", "crashingPods: 4 of 5 pods"))), "Degraded", "crashingPods: 4 of 5 pods"},
		"ACloudsAccount":   {"Credentials of a cloud are not probed.", object("hcloud.drover.dev/v1alpha1", "ProviderConfig", nil, nil), "Healthy", ""},
		"ANewTarget":       {"Nothing is known of the target cluster yet.", object("cluster.drover.dev/v1alpha1", "ProviderConfig", nil, nil), "Progressing", "The target cluster was not probed yet"},
		"AnUnreachableOne": {"The message names the remedy.", object("cluster.drover.dev/v1alpha1", "ClusterProviderConfig", nil, observed(condition("Reachable", "False", "no route"))), "Degraded", "no route"},
		"ATargetWithoutRights": {"A missing right counts before an answer.",
			object("cluster.drover.dev/v1alpha1", "ProviderConfig", nil, observed(condition("Reachable", "True", ""), condition("Authorized", "False", "nodes: patch"))), "Degraded", "nodes: patch"},
		"AReachableTarget":   {"All is well.", object("cluster.drover.dev/v1alpha1", "ProviderConfig", nil, observed(condition("Reachable", "True", "answers"))), "Healthy", "answers"},
		"NoStatus":           {"A new object is not Healthy.", object(machineGroup, "NodePool", nil, nil), "Progressing", "The latest spec was not observed yet"},
		"AStaleStatus":       {"The status is of an earlier spec.", object(machineGroup, "NodePool", nil, stale), "Progressing", "The latest spec was not observed yet"},
		"AStaleCondition":    {"Ready is of an earlier spec.", object(machineGroup, "NodePool", nil, observed(torn)), "Progressing", "The conditions are not those of the latest spec yet"},
		"AnError":            {"Crossplane cannot reconcile.", object(machineGroup, "NodePool", nil, observed(condition("Ready", "True", ""), condition("Synced", "False", "cannot compose"))), "Degraded", "cannot compose"},
		"Stalled":            {"A user has to act.", object(machineGroup, "NodePool", nil, observed(condition("Ready", "False", ""), condition("Stalled", "True", "raise maxInFlight"))), "Degraded", "raise maxInFlight"},
		"Reconciling":        {"The rollout's own text is shown.", object(machineGroup, "NodePool", nil, observed(condition("Ready", "False", ""), condition("Reconciling", "True", "1 of 3"))), "Progressing", "1 of 3"},
		"Ready":              {"The rollout has ended.", object(machineGroup, "NodePool", nil, observed(condition("Ready", "True", ""), condition("Available", "True", "3 of 3"))), "Healthy", "3 of 3"},
		"Paused":             {"A pause is no error.", object(machineGroup, "NodePool", paused, observed(condition("Ready", "False", ""), condition("Progressing", "Unknown", "paused"))), "Suspended", "paused"},
		"StalledWhilePaused": {"A pause hides no error.", object(machineGroup, "NodePool", paused, observed(condition("Ready", "False", ""), condition("Stalled", "True", "x"))), "Degraded", "x"},
		"PausedByCrossplane": {"Synced is False then, which is no error.", pausedByCrossplane, "Suspended", "The annotation crossplane.io/paused stops the reconciliation"},
		"AnInvalidMachine":   {"A user has to act.", object(machineGroup, "Machine", nil, observed(condition("Ready", "False", ""), condition("Valid", "False", "spec.classRef"))), "Degraded", "spec.classRef"},
		"AFailedMachine": {"The failure is shown.", object(machineGroup, "Machine", nil,
			map[string]any{"observedGeneration": 2, "phase": "Failed", "failureMessage": "the VM is gone"}), "Degraded", "the VM is gone"},
		"AnAppliedGroup":    {"All is written.", object(machineGroup, "MachineGroup", nil, observed(condition("Applied", "True", ""))), "Healthy", ""},
		"AGroupWithErrors":  {"A Machine is refused.", object(machineGroup, "MachineGroup", nil, observed(condition("Applied", "False", "refused"))), "Degraded", "refused"},
		"ANodeInventory":    {"It has no conditions.", object("cluster.drover.dev/v1alpha1", "NodeInventory", nil, observed()), "Healthy", ""},
		"AVM":               {"It has a generation in its conditions only.", object("local.drover.dev/v1alpha1", "VirtualMachine", nil, map[string]any{"conditions": []any{condition("Ready", "True", "")}}), "Healthy", ""},
		"AVMThatIsChanging": {"Ready is of an earlier spec.", object("vsphere.drover.dev/v1alpha1", "VirtualMachine", nil, map[string]any{"conditions": []any{torn}}), "Progressing", "The conditions are not those of the latest spec yet"},
		"AVMWithAnError": {"The cloud refuses it.", object("openstack.drover.dev/v1alpha1", "VirtualMachine", nil,
			map[string]any{"conditions": []any{condition("Ready", "False", ""), condition("LastAsyncOperation", "False", "quota exceeded")}}), "Degraded", "quota exceeded"},
	}
	names := slices.Sorted(maps.Keys(cases))
	objects := make([]map[string]any, 0, len(cases))
	for _, name := range names {
		objects = append(objects, cases[name].object)
	}
	verdicts := judge(t, objects, nil, nil)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			tc, got := cases[name], verdicts[i]
			if got.Argo != tc.want || got.ArgoMessage != tc.message {
				t.Errorf("%s Argo CD says %s %q, want %s %q", tc.reason, got.Argo, got.ArgoMessage, tc.want, tc.message)
			}
		})
	}
}
