package function

import (
	"encoding/json"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/drover-dev/drover/internal/names"
)

const poolInput = `{
	"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Pool", "versions": ["v1.35.4"],
	"classes": [{"name": "small", "classRef": {"name": "small"}, "failureDomains": ["a"]}]
}`

// poolXR is a pool of two Machines, or with an autoscaler, after the numbers were recorded.
const poolXR = `{
	"apiVersion": "machine.drover.dev/v1alpha1", "kind": "NodePool",
	"metadata": {"name": "web", "namespace": "team", "uid": "uid", "generation": 1, "resourceVersion": "5"},
	"spec": {"class": "small", "size": 2},
	"status": {"failureDomains": [{"name": "a", "machineDeployment": "NAME", "desiredReplicas": 2, "decision": 1}]}
}`

func poolRequest(t *testing.T, xr string, deployments ...string) *fnv1.RunFunctionRequest {
	t.Helper()
	found := &fnv1.Resources{}
	req := &fnv1.RunFunctionRequest{
		Input:             resource.MustStructJSON(poolInput),
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(xr)}},
		RequiredResources: map[string]*fnv1.Resources{requirementDeployments: found},
	}
	for _, d := range deployments {
		found.Items = append(found.Items, &fnv1.Resource{Resource: resource.MustStructJSON(d)})
	}
	return req
}

// poolName of the MachineDeployment.
var poolName = names.MachineDeployment("web", "uid", "a")

// poolDeployment returns a MachineDeployment whose replicas these managers own.
func poolDeployment(managers ...string) string {
	var fields []string
	for _, m := range managers {
		fields = append(fields, `{"manager": "`+m+`", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}`)
	}
	fields = append(fields, `{"manager": "someone", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}}`)
	return `{
		"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineDeployment",
		"metadata": {
			"name": "` + poolName + `", "namespace": "team", "managedFields": [` + strings.Join(fields, ",") + `],
			"ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "NodePool", "name": "web", "uid": "uid", "controller": true}],
			"annotations": {"machine.drover.dev/pool-decision": "1", "machine.drover.dev/cluster-api-autoscaler-node-group-max-size": "6"}
		},
		"spec": {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"failureDomain": "a"}}}
	}`
}

func callPool(t *testing.T, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, *structpb.Struct) {
	t.Helper()
	rsp, err := runPool(now, req)
	if err != nil {
		t.Fatal(err)
	}
	return rsp, rsp.GetDesired().GetResources()[poolName].GetResource()
}

func TestReplicasOfAPoolAreLeftToWhoeverOwnsThem(t *testing.T) {
	const crossplane = "apiextensions.crossplane.io/composed/0123"
	named := strings.ReplaceAll(poolXR, "NAME", poolName)
	autoscaled := strings.ReplaceAll(strings.ReplaceAll(named, `"size": 2`, `"autoscaling": {"min": 0, "max": 6}`), `"decision": 1`, `"decision": 1, "minSize": 0, "maxSize": 6`)
	for name, tc := range map[string]struct {
		xr       string
		managers []string
		want     any
	}{
		"OfAPoolWithASizeThatNobodyElseScales": {named, []string{crossplane}, 2.0},
		"OfAPoolWithASizeThatSomebodyScaled":   {named, []string{"kubectl"}, 2.0},
		"OfAnAutoscaler":                       {autoscaled, []string{"cluster-autoscaler"}, nil},
		"OfAnAutoscalerThatShares":             {autoscaled, []string{crossplane, "cluster-autoscaler"}, nil},
		"BeforeAnAutoscalerDecides":            {autoscaled, []string{crossplane}, 2.0},
	} {
		t.Run(name, func(t *testing.T) {
			_, d := callPool(t, poolRequest(t, tc.xr, poolDeployment(tc.managers...)))
			spec := d.GetFields()["spec"].GetStructValue().AsMap()
			if got := spec["replicas"]; got != tc.want {
				t.Errorf("replicas %v, want %v", got, tc.want)
			}
			if spec["template"] == nil {
				t.Errorf("spec %v", spec)
			}
		})
	}
	t.Run("TheObservedResourceCountsBeforeTheRequiredOne", func(t *testing.T) {
		req := poolRequest(t, autoscaled, poolDeployment("cluster-autoscaler"))
		req.Observed.Resources = map[string]*fnv1.Resource{poolName: {Resource: resource.MustStructJSON(poolDeployment(crossplane))}}
		if _, d := callPool(t, req); d.GetFields()["spec"].GetStructValue().AsMap()["replicas"] != 2.0 {
			t.Errorf("spec %v", d.GetFields()["spec"])
		}
	})
}

func TestAPoolAsksForItsMachineDeployments(t *testing.T) {
	req := poolRequest(t, poolXR)
	req.RequiredResources = nil
	rsp, _ := callPool(t, req)
	s := rsp.GetRequirements().GetResources()[requirementDeployments]
	if s.GetNamespace() != "team" || s.GetMatchLabels().GetLabels()["machine.drover.dev/node-pool"] != "web" || len(rsp.GetDesired().GetResources()) > 0 {
		t.Errorf("requires %v, desires %v", s, rsp.GetDesired())
	}
}

func TestAClaimGivesAPoolItsNamespaceAndName(t *testing.T) {
	xr := strings.NewReplacer("NAME", names.MachineDeployment("shop", "uid", "a"), `"namespace": "team", `, "", `"name": "web"`, `"name": "web-x7k2p"`,
		`"apiVersion": "machine.drover.dev/v1alpha1", "kind": "NodePool"`, `"apiVersion": "platform.example.org/v1alpha1", "kind": "XNodePool"`,
		`"size": 2`, `"size": 2, "claimRef": {"namespace": "team", "name": "shop"}`).Replace(poolXR)
	rsp, err := runPool(now, poolRequest(t, xr))
	if err != nil {
		t.Fatal(err)
	}
	d := rsp.GetDesired().GetResources()[names.MachineDeployment("shop", "uid", "a")].GetResource().AsMap()
	if m, ok := d["metadata"].(map[string]any); !ok || m["namespace"] != "team" {
		t.Errorf("desired %v", rsp.GetDesired().GetResources())
	}
	if kind := rsp.GetDesired().GetComposite().GetResource().GetFields()["kind"].GetStringValue(); kind != "XNodePool" {
		t.Errorf("kind %s", kind)
	}
	for _, c := range rsp.GetConditions() {
		if c.GetTarget() != fnv1.Target_TARGET_COMPOSITE_AND_CLAIM {
			t.Errorf("the claim does not get the condition %s", c.GetType())
		}
	}
}

func TestAPoolThatCannotBeReadSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct{ input, xr, want string }{
		"AnOfferWithoutClasses": {`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Pool", "versions": ["v1.35.4"]}`, poolXR, "classes: the input of the step offers none"},
		"NoNamespace":           {poolInput, strings.ReplaceAll(poolXR, `"namespace": "team", `, ""), "metadata.namespace: the composite resource must have a namespace, or a claim"},
		"AClassThatIsNoList":    {`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Pool", "classes": "small"}`, poolXR, "cannot decode the step's input"},
	} {
		t.Run(name, func(t *testing.T) {
			req := poolRequest(t, tc.xr)
			req.Input = resource.MustStructJSON(tc.input)
			if _, err := runPool(now, req); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestAPoolReportsTheOfferToItsNamespace runs the step before and after Crossplane has looked for the classes.
func TestAPoolReportsTheOfferToItsNamespace(t *testing.T) {
	class := &fnv1.Resource{Resource: resource.MustStructJSON(`{
		"apiVersion": "machine.drover.dev/v1alpha1", "kind": "MachineClass", "metadata": {"name": "small", "namespace": "team"},
		"spec": {"provider": "local", "forProvider": {"size": "s1"}}
	}`)}
	for name, tc := range map[string]struct {
		was     string
		classes *fnv1.Resources
		want    string
	}{
		"TheClassExists":                {"", &fnv1.Resources{Items: []*fnv1.Resource{class}}, `"classes":[{"failureDomains":["a"],"maxSize":10000,"name":"small","size":"s1"}]`},
		"TheClassDoesNotExist":          {`, "offer": {"maxSize": 1, "classes": [{"name": "small", "maxSize": 1}]}`, &fnv1.Resources{}, `"maxSize":10000`},
		"NothingIsLookedForYet":         {"", nil, ""},
		"UntilThenTheFormerOfferStands": {`, "offer": {"maxSize": 7}`, nil, `"maxSize":7`},
	} {
		t.Run(name, func(t *testing.T) {
			req := poolRequest(t, strings.Replace(strings.ReplaceAll(poolXR, "NAME", poolName), `"decision": 1}]}`, `"decision": 1}]`+tc.was+`}`, 1))
			if tc.classes != nil {
				req.RequiredResources["offered-class-small"] = tc.classes
			}
			rsp, err := runPool(now, req)
			if err != nil {
				t.Fatal(err)
			}
			if s := rsp.GetRequirements().GetResources()["offered-class-small"]; s.GetMatchName() != "small" || s.GetNamespace() != "team" {
				t.Errorf("required %v", s)
			}
			offer, there := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["offer"]
			b, err := json.Marshal(offer.AsInterface())
			if err != nil {
				t.Fatal(err)
			}
			if there != (tc.want != "") || !strings.Contains(string(b), tc.want) || name == "TheClassDoesNotExist" && strings.Contains(string(b), "small") {
				t.Errorf("offer %s, want %s", b, tc.want)
			}
		})
	}
}
