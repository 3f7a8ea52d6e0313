package function

import (
	"testing"

	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/encoding/protojson"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const capableClassJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass",
	"metadata": {"name": "small", "namespace": "default"},
	"spec": {"provider": "local", "nodeCapacity": {"capacity": {"cpu": 4, "memory": "16Gi"}, "architecture": "arm64", "operatingSystem": "linux"}}
}`

// asking is a request of a set whose template names a NodeTemplate.
func asking(name string) *fnv1.RunFunctionRequest {
	req := setRequest(0, 0)
	spec := req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue().GetFields()["template"].GetStructValue().GetFields()["spec"].GetStructValue()
	spec.Fields["infrastructureRef"] = resource.MustStructJSON(`{"ref": {"apiVersion": "machine.drover.dev/v1alpha1", "kind": "NodeTemplate", "name": "` + name + `"}}`).Fields["ref"]
	req.RequiredResources["class"].Items[0].Resource = resource.MustStructJSON(capableClassJSON)
	return req
}

func TestASetComposesItsNodeTemplateWithItsStatus(t *testing.T) {
	req := asking("workers-x7k2p")
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rsp.GetDesired().GetResources()); n != 0 {
		t.Fatalf("composes %d resources before Crossplane looked for the NodeTemplate of the name", n)
	}
	if got := rsp.GetRequirements().GetResources()["node-template"]; got.GetKind() != "NodeTemplate" || got.GetMatchName() != "workers-x7k2p" || got.GetNamespace() != "default" {
		t.Errorf("requires %v", got)
	}

	req.RequiredResources["node-template"] = &fnv1.Resources{}
	if rsp, err = runReplicas(now, req); err != nil {
		t.Fatal(err)
	}
	got, err := protojson.Marshal(rsp.GetDesired().GetResources()[machinev1alpha1.ResourceNodeTemplate].GetResource().GetFields()["status"])
	if err != nil {
		t.Fatal(err)
	}
	// All values are text: the autoscaler reads no numbers.
	want := resource.MustStructJSON(`{"capacity": {"cpu": "4", "memory": "16Gi"}, "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"}}`)
	if is := resource.MustStructJSON(string(got)); is.String() != want.String() {
		t.Errorf("got %s", got)
	}
	if c := conditionOf(rsp, machinev1alpha1.ConditionScalesFromZero); c.GetReason() != machinev1alpha1.ReasonNodeCapacityKnown {
		t.Errorf("condition %v", c)
	}
}

// TestANodeTemplateOfAnotherDoesNotStopASet has one that another object controls: to compose it
// would fail the whole pipeline.
func TestANodeTemplateOfAnotherDoesNotStopASet(t *testing.T) {
	req := asking("workers-x7k2p")
	req.RequiredResources["node-template"] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(`{
		"apiVersion": "machine.drover.dev/v1alpha1", "kind": "NodeTemplate", "metadata": {"name": "workers-x7k2p", "namespace": "default", "ownerReferences": [
			{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineDeployment", "name": "workers-x7k2p", "uid": "other", "controller": true}]}}`)}}}
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	_ = groupOf(t, rsp)
	if c := conditionOf(rsp, machinev1alpha1.ConditionScalesFromZero); c.GetReason() != machinev1alpha1.ReasonInfrastructureRefInvalid {
		t.Errorf("condition %v", c)
	}
}

// TestAMachineHasNoInfrastructureRef since a write of each Machine would be for nothing.
func TestAMachineHasNoInfrastructureRef(t *testing.T) {
	req := asking("of-another")
	req.GetObserved().GetComposite().GetResource().GetFields()["spec"].GetStructValue().Fields["replicas"] = resource.MustStructJSON(`{"n": 1}`).Fields["n"]
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	g := groupOf(t, rsp)
	if len(g.Spec.Templates) != 1 {
		t.Fatalf("templates %v", g.Spec.Templates)
	}
	if spec := resource.MustStructJSON(string(g.Spec.Templates[0].Spec.Raw)); spec.GetFields()["infrastructureRef"] != nil {
		t.Errorf("the Machine has %v", spec)
	}
}
