package function

import (
	"strings"
	"testing"

	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const capableClassJSON = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass",
	"metadata": {"name": "small", "namespace": "default"},
	"spec": {"provider": "local", "nodeCapacity": {"capacity": {"cpu": 4, "memory": "16Gi"}, "architecture": "arm64", "operatingSystem": "linux"}}
}`

// asking returns a request of a set whose template names a NodeTemplate.
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
	// All values are strings: the autoscaler reads no numbers.
	want := resource.MustStructJSON(`{"capacity": {"cpu": "4", "memory": "16Gi"}, "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"}}`)
	if is := resource.MustStructJSON(string(got)); is.String() != want.String() {
		t.Errorf("got %s", got)
	}
	if c := conditionOf(rsp, machinev1alpha1.ConditionScalesFromZero); c.GetReason() != machinev1alpha1.ReasonNodeCapacityKnown {
		t.Errorf("condition %v", c)
	}
}

// TestANodeTemplateOfAnotherDoesNotStopASet has a NodeTemplate that another object controls:
// composing it would fail the whole pipeline.
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

// TestAMachineHasNoInfrastructureRef, because the reference would only cause a useless write per
// Machine.
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

// TestTheCapacityOfAClassIsDerivedByItsComposition has a class without a capacity of its Nodes.
func TestTheCapacityOfAClassIsDerivedByItsComposition(t *testing.T) {
	req := asking("workers-x7k2p")
	req.RequiredResources["node-template"] = &fnv1.Resources{}
	req.RequiredResources["class"].Items[0].Resource = resource.MustStructJSON(`{
		"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass", "metadata": {"name": "small", "namespace": "default"},
		"spec": {"provider": "local", "forProvider": {"size": "medium"}}}`)
	delete(req.RequiredResources, "compositions")
	rsp, err := runReplicas(now, req)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(rsp.GetDesired().GetResources()); n != 0 {
		t.Fatalf("composes %d resources before Crossplane looked for the Composition", n)
	}
	if got := rsp.GetRequirements().GetResources()["compositions"]; got.GetKind() != "Composition" || got.GetMatchLabels().GetLabels()["provider"] != "local" {
		t.Errorf("requires %v", got)
	}
	for name, tc := range map[string]struct{ expression, capacity, reason, message string }{
		"Known":         {`{"capacity": {"cpu": 2, "memory": "4Gi"}}`, `{"capacity": {"cpu": "2", "memory": "3788Mi"}}`, "NodeCapacityKnown", ""},
		"Unknown":       {`null`, `{}`, "NodeCapacityUnknown", `MachineClass "small" has no cpu and memory in spec.nodeCapacity.capacity: the cluster-autoscaler cannot scale up from zero`},
		"NotReadable":   {`{"capacity": {"cpu": class.spec.forProvider.cpus, "memory": "4Gi"}}`, `{}`, "NodeCapacityUnknown", `Composition "machine-local", input Infrastructure: nodeCapacity`},
		"NotCompilable": {`{"capacity"`, `{}`, "NodeCapacityUnknown", `Composition "machine-local", input Infrastructure: nodeCapacity`},
	} {
		t.Run(name, func(t *testing.T) {
			composition := resource.MustStructJSON(`{"apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition", "metadata": {"name": "machine-local", "labels": {"provider": "local"}},
				"spec": {"compositeTypeRef": {"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine"}, "pipeline": [{"step": "infrastructure", "functionRef": {"name": "drover-function-drover"}, "input": {
					"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Infrastructure", "provider": "local", "virtualMachine": {"apiVersion": "local.drover.dev/v1alpha1", "kind": "VirtualMachine", "fields": []},
					"status": {"providerID": "''"}}}]}}`)
			pipeline := composition.GetFields()["spec"].GetStructValue().GetFields()["pipeline"].GetListValue().GetValues()[0]
			pipeline.GetStructValue().GetFields()["input"].GetStructValue().Fields["nodeCapacity"] = structpb.NewStringValue(tc.expression)
			req.RequiredResources["compositions"] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: composition}}}
			rsp, err := runReplicas(now, req)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(rsp.GetDesired().GetResources()); n != 2 {
				t.Errorf("composes %d resources, want the MachineGroup and the NodeTemplate", n)
			}
			got, err := protojson.Marshal(rsp.GetDesired().GetResources()[machinev1alpha1.ResourceNodeTemplate].GetResource().GetFields()["status"])
			if err != nil {
				t.Fatal(err)
			}
			if is, want := resource.MustStructJSON(string(got)), resource.MustStructJSON(tc.capacity); is.String() != want.String() {
				t.Errorf("got %s, want %s", got, tc.capacity)
			}
			if c := conditionOf(rsp, machinev1alpha1.ConditionScalesFromZero); c.GetReason() != tc.reason || !strings.Contains(c.GetMessage(), tc.message) {
				t.Errorf("condition %v, want %s: %s", c, tc.reason, tc.message)
			}
		})
	}
}
