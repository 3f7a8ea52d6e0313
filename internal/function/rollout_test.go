package function

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
)

// gated is a MachineDeployment whose template was changed from v1.35.3 to v1.35.4, with two Machines of the former.
func gated(t *testing.T, gate string) *fnv1.RunFunctionRequest {
	t.Helper()
	const spec = `{"spec": {"classRef": {"kind": "MachineClass", "name": "small"}, "version": "%"}, "metadata": {"labels": {"pool": "a"%%}}}`
	template := func(version, labels string) string {
		return strings.Replace(strings.Replace(spec, "%%", labels, 1), "%", version, 1)
	}
	req := &fnv1.RunFunctionRequest{
		Input: resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Rollout"}`),
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineDeployment",
			"metadata": {"namespace": "ns", "name": "md", "uid": "u", "generation": 1},
			"spec": {"replicas": 2, "selector": {"matchLabels": {"pool": "a"}}, "template": ` + template("v1.35.4", "") + `},
			"status": {"observedGeneration": 1, "machineSets": [{"name": "md-old", "replicas": 2}]}}`)}},
		RequiredResources: map[string]*fnv1.Resources{
			"class":             {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass", "metadata": {"namespace": "ns", "name": "small"}, "spec": {"provider": "local"}}`)}}},
			requirementPolicies: {},
			requirementSets: {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineSet",
				"metadata": {"namespace": "ns", "name": "md-old", "uid": "s", "generation": 1, "labels": {"machine.drover.dev/deployment": "md", "machine.drover.dev/template-hash": "old"},
					"ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineDeployment", "name": "md", "uid": "u", "controller": true}]},
				"spec": {"replicas": 2, "selector": {"matchLabels": {"pool": "a"}}, "template": ` + template("v1.35.3", `, "machine.drover.dev/deployment": "md"`) + `},
				"status": {"decidedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}`)}}},
		},
	}
	if gate != "" {
		req.Context = resource.MustStructJSON(`{"` + step.ContextRolloutGate + `": ` + gate + `}`)
	}
	return req
}

// TestAStepOfTheUsersOwnHoldsARollout has the context that a step before the step rollout left.
func TestAStepOfTheUsersOwnHoldsARollout(t *testing.T) {
	for name, tc := range map[string]struct{ gate, reason, message string }{
		"without one":    {"", "MachineSetCreated", ""},
		"it lets it go":  {`{"hold": false, "reason": "Free"}`, "MachineSetCreated", ""},
		"it holds it":    {`{"hold": true, "reason": "EtcdUpgrade", "message": "etcd is being upgraded", "until": "2999-01-01T00:00:00Z"}`, "GateHolds", "EtcdUpgrade: etcd is being upgraded; until 2999-01-01T00:00:00Z"},
		"without a word": {`{"hold": true}`, "GateHolds", "a step of the pipeline holds the rollout"},
	} {
		t.Run(name, func(t *testing.T) {
			rsp, err := runRollout(now, gated(t, tc.gate))
			if err != nil {
				t.Fatal(err)
			}
			if c := conditionOf(rsp, "Progressing"); c.GetReason() != tc.reason || !strings.Contains(c.GetMessage(), tc.message) {
				t.Errorf("Progressing is %v, want %s with %q", c, tc.reason, tc.message)
			}
		})
	}
	for _, bad := range []string{`{"hold": "yes"}`, `{"hold": true, "until": "tomorrow"}`, `"hold"`} {
		if _, err := runRollout(now, gated(t, bad)); err == nil || !strings.Contains(err.Error(), `"drover.dev/rollout-gate"`) || !strings.Contains(err.Error(), "must have hold") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

// TestAnalysesAreComposedAndRead has a step with an analysis, before and after provider-drover looked for it.
func TestAnalysesAreComposedAndRead(t *testing.T) {
	run := func(t *testing.T, status string) *fnv1.RunFunctionResponse {
		t.Helper()
		req := gated(t, "")
		spec := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue()
		spec.Fields["strategy"] = structpb.NewStructValue(resource.MustStructJSON(`{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0, "steps": [{"updated": 1, "analyses": ["pods"]}]}}`))
		if status != "" {
			req.Observed.Resources = map[string]*fnv1.Resource{machinev1alpha1.ResourceAnalysisRun: {Resource: resource.MustStructJSON(
				`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "RolloutAnalysisRun", "metadata": {"namespace": "ns", "name": "md-x"}, "spec": {"machineDeployment": "md", "analyses": ["pods"]}, "status": ` + status + `}`)}}
		}
		rsp, err := runRollout(now, req)
		if err != nil {
			t.Fatal(err)
		}
		return rsp
	}
	for name, tc := range map[string]struct{ status, reason, message string }{
		"before it is looked for":       {"", "Analyzing", "waits for provider-drover to look for the RolloutAnalyses pods"},
		"one that exists":               {`{"observedGeneration": 1, "found": ["pods"]}`, "MachineSetCreated", ""},
		"one that does not exist":       {`{"observedGeneration": 1, "problems": [{"name": "pods", "reason": "AnalysisNotFound", "message": "it must be one of canary"}]}`, "AnalysisNotFound", `spec.strategy.rollingUpdate.steps[0].analyses[0]: invalid value "pods": it must be one of canary`},
		"a verdict about nothing of it": {`{"observedGeneration": 1, "found": ["pods"], "step": {"rollout": "9-x", "step": 1, "since": "2026-01-01T00:00:00Z"}, "results": [{"name": "pods", "verdict": "Fail", "startTime": "2026-01-01T00:00:00Z", "deadline": "2026-01-01T00:30:00Z"}]}`, "MachineSetCreated", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, tc.status)
			if c := conditionOf(rsp, "Progressing"); c.GetReason() != tc.reason || !strings.Contains(c.GetMessage(), tc.message) {
				t.Errorf("Progressing is %v, want %s with %q", c, tc.reason, tc.message)
			}
			composed := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceAnalysisRun].GetResource()
			got := composed.AsMap()
			if got["kind"] != "RolloutAnalysisRun" || composed.GetFields()["spec"].GetStructValue().GetFields()["machineDeployment"].GetStringValue() != "md" || got["status"] != nil {
				t.Errorf("composed %v", got)
			}
		})
	}
	rsp, err := runRollout(now, gated(t, ""))
	if err != nil || rsp.GetDesired().GetResources()[machinev1alpha1.ResourceAnalysisRun] != nil {
		t.Errorf("without analyses a run is composed: %v", err)
	}
}

// TestTurnsAreComposedAndRead has a RolloutPolicy, before and after provider-drover answered.
func TestTurnsAreComposedAndRead(t *testing.T) {
	run := func(t *testing.T, policies int, turn string) *fnv1.RunFunctionResponse {
		t.Helper()
		req := gated(t, "")
		for range policies {
			p := &fnv1.Resource{Resource: resource.MustStructJSON(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "fleet"}}`)}
			req.RequiredResources[requirementPolicies].Items = append(req.RequiredResources[requirementPolicies].Items, p)
		}
		if turn != "" {
			req.Observed.Resources = map[string]*fnv1.Resource{machinev1alpha1.ResourceTurn: {Resource: resource.MustStructJSON(turn)}}
		}
		rsp, err := runRollout(now, req)
		if err != nil {
			t.Fatal(err)
		}
		return rsp
	}
	asked := run(t, 1, "").GetDesired().GetResources()[machinev1alpha1.ResourceTurn].GetResource()
	template := asked.GetFields()["spec"].GetStructValue().GetFields()["template"].GetStringValue()
	if got := asked.AsMap(); got["kind"] != "RolloutTurn" || template == "" || got["status"] != nil {
		t.Fatalf("composed %v", got)
	}
	answer := func(status string) string {
		return strings.ReplaceAll(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "RolloutTurn", "metadata": {"namespace": "ns", "name": "md-x"}, "spec": {"machineDeployment": "md", "template": "%"}, "status": `+status+`}`, "%", template)
	}
	for name, tc := range map[string]struct {
		policies              int
		turn, reason, message string
	}{
		"without a policy":    {0, "", "MachineSetCreated", ""},
		"before an answer":    {1, "", "AwaitingTurn", "waits for provider-drover to ask the RolloutPolicies"},
		"an answer":           {1, answer(`{"template": "%", "admittedTime": "2026-01-01T00:00:00Z"}`), "MachineSetCreated", ""},
		"an answer to others": {1, answer(`{"template": "x", "admittedTime": "2026-01-01T00:00:00Z"}`), "AwaitingTurn", "waits for provider-drover"},
		"a hold":              {2, answer(`{"template": "%", "held": {"reason": "AwaitingWave", "message": "wave b waits for wave a"}}`), "AwaitingWave", "wave b waits for wave a"},
	} {
		t.Run(name, func(t *testing.T) {
			rsp := run(t, tc.policies, tc.turn)
			if c := conditionOf(rsp, "Progressing"); c.GetReason() != tc.reason || !strings.Contains(c.GetMessage(), tc.message) {
				t.Errorf("Progressing is %v, want %s with %q", c, tc.reason, tc.message)
			}
			if asks := rsp.GetDesired().GetResources()[machinev1alpha1.ResourceTurn] != nil; asks != (tc.policies > 0) {
				t.Errorf("a turn is composed: %t", asks)
			}
		})
	}
	req := gated(t, "")
	delete(req.RequiredResources, requirementPolicies)
	rsp, err := runRollout(now, req)
	if err != nil || rsp.GetRequirements().GetResources()[requirementPolicies] == nil || len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("before the policies were looked for it decides %v: %v", rsp, err)
	}
}
