package function

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/resource"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/step"
	"github.com/drover-dev/drover/internal/plan"
)

// schemaJSON is a schema as Crossplane shows it. As with the providers of large clouds, a rule
// requires size.
const schemaJSON = `{"type": "object", "properties": {"spec": {"type": "object", "properties": {
	"managementPolicies": {"type": "array", "items": {"type": "string"}, "default": ["*"]},
	"providerConfigRef": {"type": "object", "properties": {"kind": {"type": "string"}, "name": {"type": "string"}}},
	"forProvider": {"type": "object", "properties": {
		"name": {"type": "string", "maxLength": 20}, "cores": {"type": "integer"}, "size": {"type": "string"}, "zone": {"type": "string"},
		"disks": {"type": "array", "items": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["ssd", "hdd"]}}}}
	}}
}, "x-kubernetes-validations": [{"rule": "has(self.forProvider.size)", "message": "spec.forProvider.size is a required parameter"}]}}}`

func composition(t *testing.T, change func(input map[string]any)) plan.Object {
	t.Helper()
	in, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&fn.Infrastructure{
		Provider: "test",
		VirtualMachine: fn.VirtualMachineBinding{
			APIVersion: "test.drover.dev/v1", Kind: "VM",
			Fields: []fn.FieldBinding{{Path: "spec.forProvider.name", Value: "name"}},
		},
		Status: fn.StatusBinding{ProviderID: `vm.status.?id.orValue("")`},
	})
	if err != nil {
		t.Fatal(err)
	}
	in["apiVersion"], in["kind"] = "fn.drover.dev/v1alpha1", "Infrastructure"
	if change != nil {
		change(in)
	}
	c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pipeline": []any{
		map[string]any{"step": "bootstrap", "input": map[string]any{"apiVersion": "fn.drover.dev/v1alpha1", "kind": "Bootstrap"}},
		map[string]any{"step": "infrastructure", "input": in},
	}}}}
	c.SetName("machine-test")
	return plan.Object{Unstructured: c}
}

func TestCheck(t *testing.T) {
	field := func(path, value string) func(map[string]any) {
		return func(in map[string]any) {
			_ = unstructured.SetNestedSlice(in, []any{map[string]any{"path": path, "value": value}}, "virtualMachine", "fields")
		}
	}
	cases := map[string]struct {
		forProvider string
		change      func(map[string]any)
		// provider of the class, if not test.
		provider string
		// unseen: Crossplane shows no schemas. notLooked: it has not looked yet. notInstalled: there
		// is none.
		unseen, notLooked, notInstalled bool
		// bootstrap: the class needs provider-clusterapi, whose kind Crossplane does not show.
		bootstrap bool
		// revisions of providers' packages, "" if Crossplane has not looked for them yet.
		revisions  string
		reason     string
		want       []string
		incomplete bool
	}{
		"AClassOfWhichAVMCanBeMade": {forProvider: `{"size": "small", "cores": 2, "disks": [{"kind": "ssd"}]}`},
		"AFieldThatThereIsNot": {
			forProvider: `{"size": "small", "flavour": "sweet"}`,
			reason:      machinev1alpha1.ReasonForProviderInvalid, want: []string{`MachineClass "a"`, "forProvider.flavour: unknown field"},
		},
		"AValueOfAnotherType": {
			forProvider: `{"size": "small", "cores": "two"}`,
			reason:      machinev1alpha1.ReasonForProviderInvalid, want: []string{`forProvider.cores: Invalid value: "string"`},
		},
		"AValueOfAnotherTypeWhereTheBindingLeavesIt": {
			forProvider: `{"size": "small", "zone": 1}`,
			reason:      machinev1alpha1.ReasonForProviderInvalid, want: []string{`forProvider.zone: Invalid value: "integer"`},
		},
		"AValueThatIsNotAllowed": {
			forProvider: `{"size": "small", "disks": [{"kind": "floppy"}]}`,
			reason:      machinev1alpha1.ReasonForProviderInvalid, want: []string{`forProvider.disks[0].kind: Unsupported value: "floppy"`, `"ssd", "hdd"`},
		},
		"ARuleOfTheKind": {
			forProvider: `{"cores": 2}`,
			reason:      machinev1alpha1.ReasonForProviderInvalid, want: []string{"spec.forProvider.size is a required parameter"},
		},
		"ABindingThatDoesNotFitTheKind": {
			forProvider: `{"size": "small"}`, change: field("spec.forProvider.name", `"a-name-that-is-much-too-long"`),
			reason: machinev1alpha1.ReasonBindingInvalid, want: []string{"virtualMachine.fields[0] (of spec.forProvider.name): Too long"},
		},
		"AnExpressionThatIsNone": {
			forProvider: `{"size": "small"}`, change: field("spec.forProvider.name", "nam"),
			reason: machinev1alpha1.ReasonBindingInvalid, want: []string{`Composition "machine-test", input Infrastructure: virtualMachine.fields[0].value (of spec.forProvider.name): "nam": line 1, column 1`},
		},
		"AnExpressionThatFails": {
			forProvider: `{"size": "small"}`, change: field("spec.forProvider.zone", "machine.spec.nothing"),
			reason: machinev1alpha1.ReasonBindingInvalid, want: []string{"no such key: nothing"},
		},
		"AnInputOfAnotherForm": {
			forProvider: `{"size": "small"}`, change: func(in map[string]any) { in["status"] = "good" },
			reason: machinev1alpha1.ReasonBindingInvalid, want: []string{"machine-test"},
		},
		"ACompositionWithTheLabelOfAnother": {
			forProvider: `{"size": "small"}`, provider: "other",
			reason: machinev1alpha1.ReasonBindingInvalid, want: []string{`provider: is "test", but the Composition has the label provider: other`},
		},
		"AKindThatIsNotInstalled": {
			forProvider: `{"size": "small"}`, notInstalled: true, revisions: `[]`,
			reason: machinev1alpha1.ReasonProviderNotInstalled, want: []string{"no kind VM of test.drover.dev/v1"},
		},
		"AKindOfWhichNoPackageWasLookedForYet": {forProvider: `{"size": "small"}`, notInstalled: true, incomplete: true},
		"AKindThatAPackageHasIsLeftToTheMachine": {
			forProvider: `{"size": "small"}`, notInstalled: true, revisions: `[` + revisionOf("Active", "CustomResourceDefinition", "vms.test.drover.dev") + `]`,
		},
		"AKindThatIsNotActivatedIsLeftToTheMachine": {
			forProvider: `{"size": "small"}`, notInstalled: true, revisions: `[` + revisionOf("Active", "ManagedResourceDefinition", "vms.test.drover.dev") + `]`,
		},
		"AKindOfAFormerRevision": {
			forProvider: `{"size": "small"}`, notInstalled: true, revisions: `[` + revisionOf("Inactive", "CustomResourceDefinition", "vms.test.drover.dev") + `]`,
			reason: machinev1alpha1.ReasonProviderNotInstalled,
		},
		"AKindOfAnotherGroup": {
			forProvider: `{"size": "small"}`, notInstalled: true, revisions: `[` + revisionOf("Active", "CustomResourceDefinition", "vms.other.drover.dev") + `]`,
			reason: machinev1alpha1.ReasonProviderNotInstalled,
		},
		"AClassThatNeedsProviderClusterAPIWithoutIt": {
			forProvider: `{"size": "small"}`, bootstrap: true, revisions: `[]`,
			reason: machinev1alpha1.ReasonProviderNotInstalled, want: []string{"no kind Bootstrap of clusterapi.drover.dev/v1alpha1"},
		},
		"AClassThatNeedsProviderClusterAPIWhichIsNotLookedForYet": {forProvider: `{"size": "small"}`, bootstrap: true, incomplete: true},
		"AClassThatNeedsProviderClusterAPIWhoseSchemaIsNotShownYet": {
			forProvider: `{"size": "small"}`, bootstrap: true, revisions: `[` + revisionOf("Active", "CustomResourceDefinition", "bootstraps.clusterapi.drover.dev") + `]`,
		},
		"WhatIsNotSeenIsLeftToTheAPIServer":     {forProvider: `{"size": 3}`, unseen: true},
		"WhatWasNotLookedAtYetIsAskedFor":       {forProvider: `{"size": 3}`, notLooked: true, incomplete: true},
		"AnotherStepThanOursIsSomebodyElses":    {forProvider: `{"size": 3}`, change: func(in map[string]any) { in["kind"] = "Other" }},
		"ACompositionOfAnotherFormIsUnknowable": {forProvider: `{}`, change: func(in map[string]any) { clear(in) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Capabilities: []fnv1.Capability{
				fnv1.Capability_CAPABILITY_CAPABILITIES, fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
			}}}
			switch {
			case tc.unseen:
				req.Meta.Capabilities = nil
			case tc.notInstalled:
				req.RequiredSchemas = map[string]*fnv1.Schema{requirementSchema: {}}
			case !tc.notLooked:
				req.RequiredSchemas = map[string]*fnv1.Schema{requirementSchema: {OpenapiV3: resource.MustStructJSON(schemaJSON)}}
			}
			if tc.bootstrap {
				req.RequiredSchemas[requirementBootstrapSchema] = &fnv1.Schema{}
			}
			if tc.revisions != "" {
				req.RequiredResources = map[string]*fnv1.Resources{requirementRevisions: revisionsOf(t, tc.revisions)}
			}
			class := &machinev1alpha1.MachineClass{}
			class.Name, class.Spec.Provider = "a", "test"
			if tc.provider != "" {
				class.Spec.Provider = tc.provider
			}
			class.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(tc.forProvider)}
			if tc.bootstrap {
				class.Spec.UserData = &machinev1alpha1.UserData{BootstrapTemplateRef: &machinev1alpha1.BootstrapTemplateReference{}}
			}
			template := &machinev1alpha1.Machine{}
			template.Name = "set"

			rsp := step.NewResponse(req)
			problem, complete := checkClass(req, rsp, composition(t, tc.change), class, template)
			if complete == tc.incomplete {
				t.Errorf("complete: %t", complete)
			}
			switch {
			case (problem == nil) != (tc.reason == ""):
				t.Fatalf("problem %+v", problem)
			case problem == nil:
				return
			case problem.Reason != tc.reason:
				t.Errorf("reason %s", problem.Reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(problem.Message, want) {
					t.Errorf("%q is not in %s", want, problem.Message)
				}
			}
		})
	}
}

// revisionOf returns the revision of a provider's package that defines a kind.
func revisionOf(state, kind, name string) string {
	return fmt.Sprintf(`{"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "metadata": {"name": "p"}, "spec": {"desiredState": %q}, "status": {"objectRefs": [{"kind": %q, "name": %q}]}}`, state, kind, name)
}

func revisionsOf(t *testing.T, list string) *fnv1.Resources {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		t.Fatal(err)
	}
	out := &fnv1.Resources{}
	for _, r := range all {
		s, err := structpb.NewStruct(r)
		if err != nil {
			t.Fatal(err)
		}
		out.Items = append(out.Items, &fnv1.Resource{Resource: s})
	}
	return out
}
