package function

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

const (
	settledSet = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineSet",
		"metadata": {"namespace": "ns", "name": "s", "generation": 2},
		"spec": {"replicas": 2, "template": {"spec": {"clusterRef": {"kind": "ProviderConfig", "name": "target"}}}},
		"status": {"observedGeneration": 2, "replicas": 2}}`
	deploymentJSON = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineDeployment",
		"metadata": {"namespace": "ns", "name": "md"},
		"spec": {"replicas": 2, "template": {"spec": {"clusterRef": {"kind": "ClusterProviderConfig", "name": "default"}}}},
		"status": {"replicas": 2, "terminatingReplicas": 4}}`
	down = `{"status": {"conditions": [{"type": "Reachable", "status": "False", "reason": "Unreachable", "lastTransitionTime": "2030-01-01T12:00:00Z"}]}}`
	up   = `{"status": {"conditions": [{"type": "Reachable", "status": "True", "reason": "Reachable", "lastTransitionTime": "2030-01-01T12:00:00Z"}]}}`
)

func safetyInput(t *testing.T, spec string) *structpb.Struct {
	t.Helper()
	return resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Safety"` + spec + `}`)
}

func safetyRequest(t *testing.T, xr string) *fnv1.RunFunctionRequest {
	t.Helper()
	req := &fnv1.RunFunctionRequest{Input: safetyInput(t, ""), Observed: &fnv1.State{
		Composite: &fnv1.Resource{Resource: resource.MustStructJSON(xr)},
	}}
	return req
}

// callSafety calls the step as Crossplane does: with the resources that it requires, until its
// requirements are stable.
func callSafety(t *testing.T, req *fnv1.RunFunctionRequest, config string) (*fnv1.RunFunctionResponse, plan.Safety) {
	t.Helper()
	rsp, err := runSafety(time.Time{}, req)
	if err != nil {
		t.Fatal(err)
	}
	if s := rsp.GetRequirements().GetResources()["cluster"]; s != nil {
		items := &fnv1.Resources{}
		if config != "" {
			items.Items = append(items.Items, &fnv1.Resource{Resource: resource.MustStructJSON(config)})
		}
		req.RequiredResources = map[string]*fnv1.Resources{"cluster": items}
		if rsp, err = runSafety(time.Time{}, req); err != nil {
			t.Fatal(err)
		}
	}
	said := plan.Safety{}
	b, err := rsp.GetContext().GetFields()[step.ContextSafety].MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &said); err != nil {
		t.Fatal(err)
	}
	return rsp, said
}

func TestASetAsksForTheClusterOfItsTemplate(t *testing.T) {
	for name, tc := range map[string]struct{ xr, want string }{
		"of its namespace": {settledSet, "ProviderConfig ns/target"},
		"the default, as a manifest that is rendered without an API server": {
			strings.Replace(settledSet, `"clusterRef": {"kind": "ProviderConfig", "name": "target"}`, `"clusterRef": {}`, 1), "ClusterProviderConfig /default",
		},
	} {
		t.Run(name, func(t *testing.T) {
			rsp, err := runSafety(time.Time{}, safetyRequest(t, tc.xr))
			if err != nil {
				t.Fatal(err)
			}
			s := rsp.GetRequirements().GetResources()["cluster"]
			if got := s.GetKind() + " " + s.GetNamespace() + "/" + s.GetMatchName(); got != tc.want || s.GetApiVersion() != "cluster.drover.dev/v1alpha1" {
				t.Errorf("requires %v", s)
			}
			if _, said := rsp.GetContext().GetFields()[step.ContextSafety]; said {
				t.Error("it said something before it looked")
			}
		})
	}
}

func TestSafety(t *testing.T) {
	crowdedSet := strings.Replace(settledSet, `"replicas": 2}}`, `"replicas": 20}}`, 1)
	for name, tc := range map[string]struct {
		xr, config string
		want       plan.Safety
		again      time.Duration
	}{
		"ASetWhoseClusterIsDownIsFrozen":        {settledSet, down, plan.Safety{Frozen: true, Reason: machinev1alpha1.ReasonTargetUnreachable}, 15 * time.Second},
		"ASetWhoseClusterIsUpIsNot":             {settledSet, up, plan.Safety{}, plan.AtRest},
		"NorIsOneWhoseClusterWasNotMeasuredYet": {settledSet, `{}`, plan.Safety{}, plan.AtRest},
		"OneWithoutConfigurationHasAProblem": {settledSet, "", plan.Safety{Problem: &plan.Problem{
			Reason: "ClusterNotFound", Message: `spec.template.spec.clusterRef: there is no ProviderConfig "target" in namespace "ns" of cluster.drover.dev`,
		}}, 15 * time.Second},
		"ADeploymentThatRollsBackNamesThat": {
			strings.NewReplacer(`"replicas": 2`, `"rollbackTo": {"revision": 7}, "replicas": 2`, `"status": {`, `"status": {"revisions": [{"revision": 7, "clusterRef": {"kind": "ClusterProviderConfig", "name": "old"}}], `).Replace(deploymentJSON), "",
			plan.Safety{Frozen: true, Reason: machinev1alpha1.ReasonOvershoot, Sets: "true", Problem: &plan.Problem{
				Reason: "ClusterNotFound", Message: `spec.rollbackTo.revision: 7: clusterRef: there is no ClusterProviderConfig "old" of cluster.drover.dev`,
			}}, 15 * time.Second,
		},
		"ADeploymentIsJudgedByAllOfIts":       {deploymentJSON, up, plan.Safety{Frozen: true, Reason: machinev1alpha1.ReasonOvershoot, Sets: "true"}, 5 * time.Minute},
		"ASetThatStandsAloneIsJudgedByItself": {crowdedSet, up, plan.Safety{Frozen: true, Reason: machinev1alpha1.ReasonOvershoot, Sets: "true"}, plan.AtRest},
		"TheSetOfADeploymentIsJudgedByThat": {
			strings.Replace(crowdedSet, `"name": "s"`, `"name": "s", "ownerReferences": [{"kind": "MachineDeployment", "controller": true}]`, 1),
			up, plan.Safety{}, plan.AtRest,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rsp, got := callSafety(t, safetyRequest(t, tc.xr), tc.config)
			if got.Frozen != (got.Message != "") {
				t.Errorf("said %+v", got)
			}
			got.Message = ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d := rsp.GetMeta().GetTtl().AsDuration(); d != tc.again {
				t.Errorf("called again after %s, want %s", d, tc.again)
			}
		})
	}
}

func TestTheStatusOfTheStepsAfterItKeepsWhatItRemembers(t *testing.T) {
	req := safetyRequest(t, deploymentJSON)
	first, _ := callSafety(t, req, up)
	req.Desired = first.GetDesired()
	rsp := step.NewResponse(req)
	if err := rsp.Status("machine.drover.dev/v1alpha1", "MachineDeployment", &machinev1alpha1.MachineDeploymentStatus{Replicas: 2}); err != nil {
		t.Fatal(err)
	}
	got := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().AsMap()
	if diff := cmp.Diff(map[string]any{"expected": 3.0}, got["safety"]); diff != "" || got["replicas"] != 2.0 {
		t.Errorf("status %v\n%s", got, diff)
	}
}

func TestBadMarginsAreNamed(t *testing.T) {
	for spec, want := range map[string]string{
		`, "overshoot": {"upMargin": -1}`:   "overshoot.upMargin: -1 must be 0 or more",
		`, "overshoot": {"downMargin": -2}`: "overshoot.downMargin: -2 must be 0 or more",
	} {
		req := safetyRequest(t, deploymentJSON)
		req.Input = safetyInput(t, spec)
		if _, err := runSafety(time.Time{}, req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestMarginsOfTheInputCount(t *testing.T) {
	req := safetyRequest(t, deploymentJSON)
	req.Input = safetyInput(t, `, "overshoot": {"upMargin": 3}`)
	if _, got := callSafety(t, req, up); got.Frozen {
		t.Errorf("frozen: %s", got.Message)
	}
}
