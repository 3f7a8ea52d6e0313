package function

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan/orphans"
)

const (
	inputJSON = `{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Orphans",
		"inventory": {"apiVersion": "cloud.example.org/v1", "kind": "Inventory"},
		"virtualMachine": {"apiVersion": "cloud.example.org/v1", "kind": "Server"}}`

	collectorJSON = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "OrphanCollector",
		"metadata": {"name": "local", "uid": "uid-of-collector", "generation": 3, "resourceVersion": "7"},
		"spec": {"namespace": "ns", "providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"}, "policy": "Delete", "gracePeriod": "15m", "interval": "5m", "maxOrphans": 10, "formerInstallations": ["former"], "forProvider": {"region": "north"}}}`

	definitionJSON = `{"apiVersion": "apiextensions.crossplane.io/v2", "kind": "CompositeResourceDefinition", "metadata": {"name": "orphancollectors.machine.drover.dev", "uid": "ours"}}`

	inventoryJSON = `{"apiVersion": "cloud.example.org/v1", "kind": "Inventory",
		"metadata": {"namespace": "ns", "name": "local-x", "generation": 2, "ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "OrphanCollector", "name": "local", "uid": "uid-of-collector", "controller": true}]},
		"status": {"conditions": [{"type": "Synced", "status": %q, "observedGeneration": %d, "message": "slow down"}],
			"atProvider": {"unclaimedCount": 1, "claimedCount": 100, "unclaimed": [{"externalName": "vm-1", "providerID": "cloud://vm-1", "installation": "ours", "cluster": "eu", "namespace": %q, "machine": %q, "machineUID": %q,
				"firstSeen": "2030-01-01T12:00:00Z", "confirmedAt": "2030-01-01T12:15:00Z"}]}}}`

	nodesJSON = `{"apiVersion": "cluster.drover.dev/v1alpha1", "kind": "NodeInventory",
		"metadata": {"namespace": "ns", "name": "local-x", "generation": 2},
		"status": {"observedGeneration": %d, "virtualMachines": [%s]}}`

	serverJSON = `{"apiVersion": "cloud.example.org/v1", "kind": "Server",
		"metadata": {"namespace": "ns", "name": "local-1", "generation": 1, "annotations": {"crossplane.io/external-name": %q},
			"ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "OrphanCollector", "name": "local", "uid": "uid-of-collector", "controller": true}]},
		"spec": {"managementPolicies": ["Observe", "Delete"]},
		"status": {"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 1}]}}`
)

// noNode answers that the VM has no Node.
var noNode = fmt.Sprintf(nodesJSON, 2, `{"externalName": "vm-1"}`)

// callOrphans calls the step as Crossplane does, until its requirements are stable. Only the
// definition exists, and the objects that are given by kind and name.
func callOrphans(t *testing.T, observed map[string]string, there map[string]string) *fnv1.RunFunctionResponse {
	t.Helper()
	req := &fnv1.RunFunctionRequest{
		Input: resource.MustStructJSON(inputJSON),
		Observed: &fnv1.State{
			Composite: &fnv1.Resource{Resource: resource.MustStructJSON(collectorJSON)},
			Resources: map[string]*fnv1.Resource{},
		},
		RequiredResources: map[string]*fnv1.Resources{},
	}
	for name, o := range observed {
		req.Observed.Resources[name] = &fnv1.Resource{Resource: resource.MustStructJSON(o)}
	}
	for range 4 {
		rsp, err := runOrphans(now, req)
		if err != nil {
			t.Fatal(err)
		}
		asked := rsp.GetRequirements().GetResources()
		if slices.Equal(slices.Sorted(maps.Keys(asked)), slices.Sorted(maps.Keys(req.GetRequiredResources()))) {
			return rsp
		}
		for name, s := range asked {
			found := &fnv1.Resources{}
			if o, ok := there[s.GetKind()+" "+s.GetMatchName()]; ok {
				found.Items = []*fnv1.Resource{{Resource: resource.MustStructJSON(o)}}
			}
			if s.GetMatchName() == machinev1alpha1.DefinitionOfInstallation {
				found.Items = []*fnv1.Resource{{Resource: resource.MustStructJSON(definitionJSON)}}
			}
			req.RequiredResources[name] = found
		}
	}
	t.Fatal("the requirements do not come to rest")
	return nil
}

// servers returns the desired servers with their management policies.
func servers(rsp *fnv1.RunFunctionResponse) string {
	var out []string
	for name, r := range rsp.GetDesired().GetResources() {
		if name == machinev1alpha1.ResourceInventory || name == machinev1alpha1.ResourceNodeInventory {
			continue
		}
		f := r.GetResource().AsMap()
		out = append(out, fmt.Sprint(name, " ", f["spec"].(map[string]any)["managementPolicies"], " ", f["spec"].(map[string]any)["forProvider"]))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestWhatTagsShowIsNotTrusted(t *testing.T) {
	orphan := "orphan-" + names.Hash("vm-1") + " [Observe] map[region:north]"
	cases := map[string]struct {
		namespace, machine, uid string
		want                    string
	}{
		"AMachineThatIsGone":       {"fleet", "web-0", "u-1", orphan},
		"NoNamespace":              {"", "web-0", "u-1", ""},
		"NoMachine":                {"fleet", "", "u-1", ""},
		"NoUID":                    {"fleet", "web-0", "", ""},
		"ANamespaceThatCannotBe":   {"../kube-system", "web-0", "u-1", ""},
		"AMachineThatCannotBe":     {"fleet", "web/status", "u-1", ""},
		"AMachineWithBlanksAround": {"fleet", " web-0 ", "u-1", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": fmt.Sprintf(inventoryJSON, "True", 2, tc.namespace, tc.machine, tc.uid)}, nil)
			if got := servers(rsp); got != tc.want {
				t.Errorf("desires %q, want %q", got, tc.want)
			}
			for _, s := range rsp.GetRequirements().GetResources() {
				if strings.ContainsAny(s.GetMatchName()+s.GetNamespace(), "/ ") {
					t.Errorf("it asks for %v", s)
				}
			}
		})
	}
}

func TestWhoStandsForAVM(t *testing.T) {
	const uid = "u-1"
	machine := func(uid string) string {
		return fmt.Sprintf(`{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "metadata": {"namespace": "fleet", "name": "web-0", "uid": %q}}`, uid)
	}
	server := func(owner string) string {
		return fmt.Sprintf(`{"apiVersion": "cloud.example.org/v1", "kind": "Server", "metadata": {"namespace": "fleet", "name": "any", "ownerReferences": [%s]}}`, owner)
	}
	const owner = `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "name": "web-0", "uid": "u-1", "controller": true}`
	cases := map[string]struct {
		there  map[string]string
		synced string
		about  int
		spared bool
	}{
		"Nobody":                           {nil, "True", 2, false},
		"ItsMachine":                       {map[string]string{"Machine web-0": machine(uid)}, "True", 2, true},
		"AnotherMachineOfItsName":          {map[string]string{"Machine web-0": machine("u-2")}, "True", 2, false},
		"TheResourceThatMayBeCreatingIt":   {map[string]string{"Server " + names.OfMachine("web-0", uid): server(owner)}, "True", 2, true},
		"ButNoneThatNobodyControls":        {map[string]string{"Server " + names.OfMachine("web-0", uid): server("")}, "True", 2, false},
		"AListThatFailed":                  {nil, "False", 2, true},
		"AListThatIsOfWhatWasAskedBefore":  {nil, "True", 1, true},
		"AListOfWhichNobodyKnowsHowItWent": {nil, "Unknown", 2, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": fmt.Sprintf(inventoryJSON, tc.synced, tc.about, "fleet", "web-0", uid)}, tc.there)
			if got := servers(rsp); (got == "") != tc.spared {
				t.Errorf("desires %q, to be spared: %v", got, tc.spared)
			}
			if rsp.GetDesired().GetResources()["inventory"] == nil {
				t.Error("the inventory is dropped")
			}
		})
	}
}

// TestAResourceThatLostItsAnnotationsIsGivenBack: without them nothing proves that its VM is unused,
// and to delete the resource as it is would delete the VM.
func TestAResourceThatLostItsAnnotationsIsGivenBack(t *testing.T) {
	name := "orphan-" + names.Hash("vm-1")
	inventory := fmt.Sprintf(inventoryJSON, "True", 2, "", "", "")
	rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": inventory, name: fmt.Sprintf(serverJSON, "vm-1")}, nil)
	if want := name + " [Observe] map[region:north]"; servers(rsp) != want {
		t.Errorf("desires %q, want %q", servers(rsp), want)
	}
}

func TestTheRecordOfInstallationsDecidesAboutAFormerOne(t *testing.T) {
	record := func(data string) map[string]string {
		return map[string]string{"ConfigMap drover-installations": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "crossplane-system", "name": "drover-installations"}, "data": ` + data + `}`}
	}
	cases := map[string]struct {
		record  map[string]string
		deletes bool
	}{
		"WithoutARecord":         {nil, false},
		"WithoutData":            {record(`null`), false},
		"WithDataThatIsNoText":   {record(`{"ours": "Current", "former": 7}`), false},
		"Replaced":               {record(`{"ours": "Current since then", "former": "Replaced at then"}`), true},
		"Lost":                   {record(`{"ours": "Current since then", "former": "Lost"}`), true},
		"Unknown":                {record(`{"ours": "Current since then"}`), false},
		"OfAnotherControlPlane":  {record(`{"theirs": "Current since then", "former": "Replaced at then"}`), false},
		"ThatThisOneIsItsFormer": {record(`{"ours": "Replaced at then", "former": "Lost"}`), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inventory := strings.Replace(fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1"), `"installation": "ours"`, `"installation": "former"`, 1)
			rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": inventory}, tc.record)
			if got := servers(rsp); (got != "") != tc.deletes {
				t.Errorf("desires %q, to be deleted: %v", got, tc.deletes)
			}
		})
	}
}

func TestWhatACollectorComposesIsInItsNamespace(t *testing.T) {
	rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1")}, nil)
	if n := len(rsp.GetDesired().GetResources()); n != 3 {
		t.Errorf("it desires %d resources, want both inventories and a VM", n)
	}
	for name, r := range rsp.GetDesired().GetResources() {
		if ns := r.GetResource().AsMap()["metadata"].(map[string]any)["namespace"]; ns != "ns" {
			t.Errorf("%s is in the namespace %v", name, ns)
		}
	}
}

func TestABadInputIsNamed(t *testing.T) {
	req := &fnv1.RunFunctionRequest{
		Input:    resource.MustStructJSON(`{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Orphans", "inventory": {"apiVersion": "a/v1", "kind": "I"}, "virtualMachine": {"apiVersion": "a/v1"}}`),
		Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(collectorJSON)}},
	}
	if _, err := runOrphans(now, req); err == nil || !strings.Contains(err.Error(), "virtualMachine.kind is required") {
		t.Errorf("error %v", err)
	}
}

// TestAVMWhoseTagsNameNoMachineIsKnownByItsName: at DigitalOcean a tag is an object of the account,
// so there is no tag per Machine.
func TestAVMWhoseTagsNameNoMachineIsKnownByItsName(t *testing.T) {
	const vmName = "web-0-x7k2p"
	controlled := `{"apiVersion": "cloud.example.org/v1", "kind": "Server", "metadata": {"namespace": "fleet", "name": "web-0-x7k2p",
		"ownerReferences": [{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "name": "web-0", "uid": "u-1", "controller": true}]}}`
	answer := func(fields string) string {
		return fmt.Sprintf(nodesJSON, 2, `{"externalName": "vm-1"`+fields+`}`)
	}
	cases := map[string]struct {
		namespace, name, nodes string
		there                  map[string]string
		adopts                 bool
	}{
		"WithoutAMachine":                {"fleet", vmName, answer(""), nil, true},
		"WhoseMachineExists":             {"fleet", vmName, answer(`, "machine": "web-0"`), nil, false},
		"WhoseResourceExists":            {"fleet", vmName, answer(""), map[string]string{"Server " + vmName: controlled}, false},
		"WhoseMachineWasNotLookedForYet": {"fleet", vmName, fmt.Sprintf(nodesJSON, 1, `{"externalName": "vm-1"}`), nil, false},
		"WithoutANamespace":              {"", vmName, answer(""), nil, false},
		"WithANameThatCannotBe":          {"fleet", "web/0", answer(""), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inventory := strings.Replace(fmt.Sprintf(inventoryJSON, "True", 2, tc.namespace, "", ""), `"installation": "ours"`, fmt.Sprintf(`"installation": "ours", "name": %q`, tc.name), 1)
			rsp := callOrphans(t, map[string]string{"nodes": tc.nodes, "inventory": inventory}, tc.there)
			if got := servers(rsp); (got != "") != tc.adopts {
				t.Errorf("desires %q, to be adopted: %v", got, tc.adopts)
			}
			for _, s := range rsp.GetRequirements().GetResources() {
				if strings.ContainsAny(s.GetMatchName()+s.GetNamespace(), "/ ") {
					t.Errorf("it asks for %v", s)
				}
			}
			if !tc.adopts {
				return
			}
			metadata := rsp.GetDesired().GetResources()["orphan-"+names.Hash("vm-1")].GetResource().AsMap()["metadata"].(map[string]any)
			if a := metadata["annotations"].(map[string]any); a["machine.drover.dev/orphan-of-vm"] != vmName || a["machine.drover.dev/orphan-of-namespace"] != "fleet" {
				t.Errorf("annotations %v", a)
			}
			query := rsp.GetDesired().GetResources()["nodes"].GetResource().AsMap()["spec"].(map[string]any)["virtualMachines"].([]any)[0].(map[string]any)
			if query["nodeName"] != vmName || query["namespace"] != "fleet" || query["machineUID"] != nil {
				t.Errorf("query %v", query)
			}
		})
	}
}

// TestAnAdoptedVMThatIsKnownByItsNameIsJudgedByIt: the name comes from the annotations of its
// resource.
func TestAnAdoptedVMThatIsKnownByItsNameIsJudgedByIt(t *testing.T) {
	orphan := "orphan-" + names.Hash("vm-1")
	server := strings.Replace(fmt.Sprintf(serverJSON, "vm-1"), `"crossplane.io/external-name"`,
		`"machine.drover.dev/orphan-of-namespace": "fleet", "machine.drover.dev/orphan-of-installation": "ours", "machine.drover.dev/orphan-of-vm": "web-0-x7k2p", "crossplane.io/external-name"`, 1)
	inventory := strings.Replace(fmt.Sprintf(inventoryJSON, "True", 2, "", "", ""), `{"externalName": "vm-1"`, `{"externalName": "another"`, 1)
	for name, tc := range map[string]struct{ nodes, want string }{
		"WithoutAMachineItIsDeleted":      {noNode, ""},
		"ItIsGivenBackIfItsMachineExists": {fmt.Sprintf(nodesJSON, 2, `{"externalName": "vm-1", "machine": "web-0"}`), orphan + " [Observe] map[region:north]"},
		"ItStaysWhileItsMachineIsUnknown": {fmt.Sprintf(nodesJSON, 1, `{"externalName": "vm-1"}`), orphan + " [Observe Delete] map[region:north]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := servers(callOrphans(t, map[string]string{"nodes": tc.nodes, "inventory": inventory, orphan: server}, nil)); got != tc.want {
				t.Errorf("desires %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheInventoryListsThePlaceOfTheCollectorsVMs(t *testing.T) {
	for name, tc := range map[string]struct {
		paths, forProvider string
		want, err          string
	}{
		"ARegion":             {`"regionPath": "spec.forProvider.region"`, `{"region": "north"}`, "north  spec.forProvider.region ", ""},
		"ANamespace":          {`"namespacePath": "spec.forProvider.manifest.metadata.namespace"`, `{"manifest": {"metadata": {"namespace": "vms"}}}`, " vms  spec.forProvider.manifest.metadata.namespace", ""},
		"ARegionThatIsNeeded": {`"regionPath": "spec.forProvider.region"`, `{}`, "", "spec.forProvider.region: required"},
		"ARegionThatIsNoText": {`"regionPath": "spec.forProvider.region"`, `{"region": 7}`, "", "spec.forProvider.region: required"},
		"NoPlace":             {`"regionPath": ""`, `{"region": "north"}`, "   ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			req := &fnv1.RunFunctionRequest{
				Input: resource.MustStructJSON(strings.Replace(inputJSON, `"kind": "Server"`, `"kind": "Server", `+tc.paths, 1)),
				Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource.MustStructJSON(
					strings.Replace(strings.Replace(collectorJSON, `{"region": "north"}`, tc.forProvider, 1), `"formerInstallations": ["former"], `, "", 1))}},
				RequiredResources: map[string]*fnv1.Resources{
					"installation": {Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(definitionJSON)}}}, requirementAdopted: {},
				},
			}
			first, err := runOrphans(now, req)
			if err == nil {
				for name := range first.GetRequirements().GetResources() {
					if req.RequiredResources[name] == nil {
						req.RequiredResources[name] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: resource.MustStructJSON(definitionJSON)}}}
					}
				}
			}
			rsp, err := runOrphans(now, req)
			if tc.err != "" || err != nil {
				if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			asked, _ := rsp.GetDesired().GetResources()["inventory"].GetResource().AsMap()["spec"].(map[string]any)["forProvider"].(map[string]any)
			kind := asked["virtualMachine"].(map[string]any)
			text := func(v any) string { s, _ := v.(string); return s }
			got := strings.Join([]string{text(asked["region"]), text(asked["namespace"]), text(kind["regionPath"]), text(kind["namespacePath"])}, " ")
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestUnusedResourcesOfMachinesThatAreGoneAreReported(t *testing.T) {
	inventory := strings.Replace(fmt.Sprintf(inventoryJSON, "True", 2, "fleet", "web-0", "u-1"), `"unclaimedCount": 1`, `"resources": [
		{"type": "Volume", "id": "vol-1", "namespace": "fleet", "machine": "gone", "firstSeen": "2030-01-01T12:00:00Z", "confirmedAt": "2030-01-01T12:15:00Z"},
		{"type": "Volume", "id": "vol-2", "namespace": "fleet", "machine": "waits", "firstSeen": "2030-01-01T12:00:00Z", "confirmedAt": "2030-01-01T12:15:00Z"},
		{"type": "Volume", "id": "vol-3", "namespace": "fleet", "machine": "gone", "firstSeen": "2030-01-01T12:00:00Z"},
		{"type": "Volume", "id": "vol-4", "namespace": "../x", "machine": "gone", "firstSeen": "2030-01-01T12:00:00Z", "confirmedAt": "2030-01-01T12:15:00Z"},
		{"type": "PlacementGroup", "id": "17", "firstSeen": "2030-01-01T12:00:00Z", "confirmedAt": "2030-01-01T12:15:00Z"}], "unclaimedCount": 1`, 1)
	waits := map[string]string{"Machine waits": `{"apiVersion": "machine.drover.dev/v1alpha1", "kind": "Machine", "metadata": {"namespace": "fleet", "name": "waits", "uid": "u-2"}}`}
	rsp := callOrphans(t, map[string]string{"nodes": noNode, "inventory": inventory}, waits)
	status, _ := rsp.GetDesired().GetComposite().GetResource().AsMap()["status"].(map[string]any)
	var got []string
	for _, r := range status["resources"].([]any) {
		got = append(got, r.(map[string]any)["id"].(string))
	}
	if !slices.Equal(got, []string{"vol-1", "vol-4", "17"}) {
		t.Errorf("reports %v", got)
	}
	reported := ""
	for _, r := range rsp.GetResults() {
		reported += r.GetReason() + ": " + r.GetMessage() + "\n"
	}
	if !strings.Contains(reported, "UnusedResourceFound: Nothing uses Volume vol-1 of Machine fleet/gone, Volume vol-4 of Machine ../x/gone, PlacementGroup 17; they are not deleted") {
		t.Errorf("events:\n%s", reported)
	}
}

// TestAnOrphanIsFoundByMoreThanItsExternalName reads the Compositions: an Object of
// provider-kubernetes looks at its manifest alone, and a VM of Azure or Google Cloud is named within
// its resource group or zone.
func TestAnOrphanIsFoundByMoreThanItsExternalName(t *testing.T) {
	const ofAzure = "azure:///subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/other-nodes/providers/Microsoft.Compute/virtualMachines/web-0-x7k2p"
	cases := map[string]struct {
		provider, collector, providerID string
		want                            string
	}{
		"AtKubeVirtByItsName": {
			"kubevirt", `{"manifest": {"kind": "VirtualMachine", "metadata": {"namespace": "fleet"}}}`, "kubevirt://web-0-x7k2p",
			`{"manifest":{"kind":"VirtualMachine","metadata":{"name":"web-0-x7k2p","namespace":"fleet"}}}`,
		},
		"AtAzureByItsResourceGroup":                {"upjet-azure", `{"resourceGroupName": "production-nodes"}`, ofAzure, `{"resourceGroupName":"other-nodes"}`},
		"AtAzureWithoutAResourceGroupOfACollector": {"upjet-azure", `{}`, ofAzure, `{"resourceGroupName":"other-nodes"}`},
		"AtAzureByThatOfTheCollectorIfNoneIsKnown": {"upjet-azure", `{"resourceGroupName": "production-nodes"}`, "", `{"resourceGroupName":"production-nodes"}`},
		"AtGoogleCloudByItsZone":                   {"upjet-gcp", `{"zone": "europe-west4-a"}`, "gce://my-project/europe-west4-c/web-0-x7k2p", `{"zone":"europe-west4-c"}`},
		"AtAWSByThoseOfTheCollectorAlone":          {"upjet-aws", `{"region": "eu-west-1"}`, "aws:///eu-west-1b/web-0-x7k2p", `{"region":"eu-west-1"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, tc.provider)
			if err := validateOrphans(in); err != nil {
				t.Fatal(err)
			}
			c := &machinev1alpha1.OrphanCollector{}
			c.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(tc.collector)}
			u, err := newVM(in, c, orphans.Resource{VM: orphans.VM{ExternalName: "web-0-x7k2p", ProviderID: tc.providerID}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(u.Object["spec"].(map[string]any)["forProvider"])
			if err != nil || string(got) != tc.want {
				t.Errorf("forProvider %s, want %s; error %v", got, tc.want, err)
			}
		})
	}
	c := &machinev1alpha1.OrphanCollector{}
	c.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(`{"manifest": "text"}`)}
	if _, err := newVM(inputOf(t, "kubevirt"), c, orphans.Resource{}); err == nil || !strings.Contains(err.Error(), "spec.forProvider.manifest.metadata.name") {
		t.Errorf("error %v", err)
	}
}

// inputOf the Composition of a provider's collectors.
func inputOf(t *testing.T, provider string) *fn.Orphans {
	t.Helper()
	b, err := os.ReadFile("../../apis/machine/compositions/orphancollector-" + provider + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := struct {
		Spec struct {
			Pipeline []struct{ Input fn.Orphans }
		}
	}{}
	if err := yaml.Unmarshal(b, &c); err != nil || len(c.Spec.Pipeline) != 1 {
		t.Fatalf("%d steps, %v", len(c.Spec.Pipeline), err)
	}
	return &c.Spec.Pipeline[0].Input
}

func TestFieldsThatCannotBeSetAreRefusedBeforeThereIsAnOrphan(t *testing.T) {
	for name, tc := range map[string]struct{ path, value, want string }{
		"OutsideOfForProvider": {"spec.managementPolicies", `["*"]`, `virtualMachine.fields[0].path: invalid value "spec.managementPolicies": must name one field below spec.forProvider`},
		"ForProviderItself":    {"spec.forProvider", `{}`, `virtualMachine.fields[0].path: invalid value "spec.forProvider"`},
		"OfSeveral":            {"spec.forProvider.a[*]", `""`, `virtualMachine.fields[0].path: invalid value "spec.forProvider.a[*]"`},
		"WithAWrongExpression": {"spec.forProvider.zone", "providerID +", "virtualMachine.fields[0].value (of spec.forProvider.zone)"},
		"OfAnUnknownVariable":  {"spec.forProvider.zone", "machine.name", "undeclared reference to 'machine'"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputOf(t, "upjet-aws")
			in.VirtualMachine.Fields = []fn.OrphanField{{Path: tc.path, Value: tc.value}}
			if err := validateOrphans(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
