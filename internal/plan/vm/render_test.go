package vm

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// TestAVMIsItsClassWithWhatTheBindingPlaces: an expression is placed into the spec of a VM of the
// class {"size": "small", "cores": 2, "tags": {"team": "a", "name": "of the class"}}.
func TestAVMIsItsClassWithWhatTheBindingPlaces(t *testing.T) {
	const uid = "00000000-0000-4000-8000-000000000000"
	of := func(change map[string]any) map[string]any {
		out := map[string]any{"size": "small", "cores": int64(2), "tags": map[string]any{"team": "a", "name": "of the class"}}
		maps.Copy(out, change)
		return out
	}
	for name, tc := range map[string]struct {
		path, value   string
		failureDomain *string
		// without means that the class has no forProvider, and unpublished that the user data is
		// unknown.
		without, unpublished bool
		want                 map[string]any
	}{
		"AFieldThatTheClassDoesNotHave": {
			path: "spec.forProvider.name", value: "name",
			want: of(map[string]any{"name": "set-00000-4b8fz"}),
		},
		"AFieldThatTheClassHasIsReplaced": {
			path: "spec.forProvider.size", value: `"large"`,
			want: of(map[string]any{"size": "large"}),
		},
		"AMapIsMergedOverTheOneOfTheClass": {
			path: "spec.forProvider.tags", value: `{"name": name}`,
			want: of(map[string]any{"tags": map[string]any{"team": "a", "name": "set-00000-4b8fz"}}),
		},
		"AMapReplacesWhatIsNoMap": {
			path: "spec.forProvider.size", value: `{"cores": 4}`,
			want: of(map[string]any{"size": map[string]any{"cores": int64(4)}}),
		},
		"AMapWhereTheClassHasNone": {
			path: "spec.forProvider.labels", value: `{"name": name}`,
			want: of(map[string]any{"labels": map[string]any{"name": "set-00000-4b8fz"}}),
		},
		"AValueThatIsAbsentLeavesTheFieldAsTheClassHasIt": {
			path: "spec.forProvider.size", value: "optional.none()",
			want: of(nil),
		},
		"TagsDistinguishTheVMFromThoseOfOtherMachines": {
			path: "spec.forProvider.owner", value: "tags",
			want: of(map[string]any{"owner": map[string]any{
				"drover-installation": uid, "drover-cluster": "prod", "drover-namespace": "team", "drover-machine": "set-00000", "drover-machine-uid": uid,
			}}),
		},
		"TheUserDataIsPlacedByReference": {
			path: "spec.forProvider.userData", value: `{"name": userData.secretName, "key": userData.key}`, unpublished: true,
			want: of(map[string]any{"userData": map[string]any{"name": "set-00000-user-data", "key": "userData"}}),
		},
		"TheUserDataIsPlacedByValue": {
			path: "spec.forProvider.userData", value: "userData.value",
			want: of(map[string]any{"userData": "#cloud-config\n"}),
		},
		"UserDataThatIsNotKnownHasNoValue": {
			path: "spec.forProvider.userData", value: "userData.?value",
			unpublished: true,
			want:        of(nil),
		},
		"AMachineWithoutAFailureDomainHasAnEmptyOne": {
			path: "spec.forProvider.zone", value: `failureDomain + "."`,
			want: of(map[string]any{"zone": "."}),
		},
		"AMachineWithAFailureDomain": {
			path: "spec.forProvider.zone", value: "failureDomain", failureDomain: ptr.To("zone-a"),
			want: of(map[string]any{"zone": "zone-a"}),
		},
		"AnExpressionReadsTheClass": {
			path: "spec.forProvider.memory", value: "class.spec.forProvider.cores * 2",
			want: of(map[string]any{"memory": int64(4)}),
		},
		"AnExpressionReadsTheNameOfTheClass": {
			path: "spec.forProvider.class", value: "class.metadata.name",
			want: of(map[string]any{"class": "a"}),
		},
		"AnExpressionReadsTheMachine": {
			path: "spec.forProvider.cluster", value: `machine.spec.clusterRef.name + "/" + machine.metadata.labels["machine.drover.dev/set"]`,
			want: of(map[string]any{"cluster": "prod/set"}),
		},
		"AnExpressionReadsAClassWithoutFields": {
			path: "spec.forProvider.size", value: `class.spec.forProvider.?size.orValue("medium")`,
			without: true,
			want:    map[string]any{"size": "medium"},
		},
		"AnExpressionReadsAClassWithoutCompanions": {
			path: "spec.forProvider.address", value: `"address" in class.spec.companions`,
			want: of(map[string]any{"address": false}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := single(t, fields(fn.FieldBinding{Path: tc.path, Value: tc.value}))
			o.Class.Spec.ForProvider.Raw = []byte(`{"size": "small", "cores": 2, "tags": {"team": "a", "name": "of the class"}}`)
			o.Machine.Spec.FailureDomain = tc.failureDomain
			o.Machine.Spec.ClusterRef.Name = "prod"
			o.RawMachine["spec"] = map[string]any{"clusterRef": map[string]any{"name": "prod"}}
			if tc.without {
				o.Class.Spec.ForProvider = nil
			}
			if tc.unpublished {
				o.UserData = ""
			}
			d := Plan(b, nil, o)
			if d.VM == nil {
				t.Fatalf("no VM is made: %+v", d.Word)
			}
			want := map[string]any{
				"apiVersion": "test.drover.dev/v1", "kind": "VM",
				"metadata": map[string]any{
					"name": "set-00000-4b8fz", "labels": map[string]any{machinev1alpha1.LabelMachine: "set-00000"},
					"annotations": map[string]any{machinev1alpha1.AnnotationMachineUID: uid, machinev1alpha1.AnnotationNodeName: "set-00000-4b8fz", machinev1alpha1.AnnotationInstallation: uid},
				},
				"spec": map[string]any{
					"providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "cloud"},
					"forProvider":       tc.want,
				},
			}
			if diff := cmp.Diff(want, d.VM.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAClassWithEmptyFieldsIsOneWithoutFields(t *testing.T) {
	b, o := single(t)
	o.Class.Spec.ForProvider = &runtime.RawExtension{}
	d := Plan(b, nil, o)
	if d.VM == nil {
		t.Fatalf("no VM is made: %+v", d.Word)
	}
}

func TestACompanionIsItsPartOfTheClass(t *testing.T) {
	b, err := Bind(input(withCompanions, func(in *fn.Infrastructure) {
		in.Companions[1].Fields = append(in.Companions[1].Fields,
			fn.FieldBinding{Path: "spec.forProvider.pool", Value: `class.spec.companions.address.forProvider.?pool.orValue("default")`},
			fn.FieldBinding{Path: "spec.forProvider.fast", Value: `class.spec.companions.card.forProvider.speed > 1`},
			fn.FieldBinding{Path: "spec.forProvider.of", Value: `companions.address.metadata.name`},
		)
	}))
	if err != nil {
		t.Fatal(err)
	}
	_, o := wanted(t)
	o.Class.Spec.ProviderConfigRef = machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: "cloud"}
	says("address", o, Plan(b, nil, o).Companions["address"], map[string]any{"id": "a-1"}, isReady)
	want := map[string]any{
		"apiVersion": "test.drover.dev/v1", "kind": "Card",
		"metadata": map[string]any{
			"name":        "set-00000-4b8fz-card",
			"labels":      map[string]any{machinev1alpha1.LabelMachine: "set-00000"},
			"annotations": map[string]any{machinev1alpha1.AnnotationOrder: "1"},
		},
		"spec": map[string]any{
			"providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "cloud"},
			"forProvider": map[string]any{
				"name": "set-00000-4b8fz-card", "speed": int64(10), "address": "a-1",
				"pool": "default", "fast": true, "of": "set-00000-4b8fz-address",
			},
		},
	}
	if diff := cmp.Diff(want, Plan(b, nil, o).Companions["card"].Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestAVMHasItsOwnNameAfterItsCompanions: each companion has set the variable "name" before.
func TestAVMHasItsOwnNameAfterItsCompanions(t *testing.T) {
	b, o := wanted(t)
	says("address", o, Plan(b, nil, o).Companions["address"], nil, isReady)
	says("card", o, Plan(b, nil, o).Companions["card"], map[string]any{"id": "c-1"})
	vm := Plan(b, nil, o).VM
	got := vm.Object["spec"].(map[string]any)["forProvider"]
	if diff := cmp.Diff(map[string]any{"name": vm.GetName(), "card": "c-1"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// kindJSON is the schema of the kind that the tests of this file use for VMs and cards.
const kindJSON = `{"type": "object", "properties": {"spec": {"type": "object", "required": ["policy"], "properties": {
	"policy": {"type": "string", "default": "Always"},
	"managementPolicies": {"type": "array", "items": {"type": "string"}, "default": ["*"]},
	"providerConfigRef": {"type": "object", "properties": {"kind": {"type": "string"}, "name": {"type": "string"}}},
	"forProvider": {"type": "object", "properties": {
		"name": {"type": "string", "maxLength": 30}, "cores": {"type": "integer"}, "size": {"type": "string"}, "zone": {"type": "string"}, "card": {"type": "string"},
		"userData": {"type": "string", "maxLength": 10}, "speed": {"type": "integer", "maximum": 10}, "address": {"type": "string"},
		"labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
		"disks": {"type": "array", "items": {"type": "object", "properties": {"kind": {"type": "string", "enum": ["ssd", "hdd"]}}}}
	}}
}, "x-kubernetes-validations": [{"rule": "!has(self.forProvider.zone) || has(self.forProvider.size)", "message": "a zone needs a size"}]}}}`

// TestAClassOfWhichNoVMCanBeMade checks that the problem names the invalid field.
func TestAClassOfWhichNoVMCanBeMade(t *testing.T) {
	place := func(path, value string) func(*fn.Infrastructure) {
		return fields(fn.FieldBinding{Path: "spec.forProvider.name", Value: "name"}, fn.FieldBinding{Path: path, Value: value})
	}
	const ofClass, ofBinding = machinev1alpha1.ReasonForProviderInvalid, machinev1alpha1.ReasonBindingInvalid
	for name, tc := range map[string]struct {
		forProvider string
		binding     func(*fn.Infrastructure)
		companions  map[string]machinev1alpha1.Companion
		// unseen means that the schema is unknown.
		unseen       bool
		reason, want string
	}{
		"AClassThatFits": {forProvider: `{"size": "small", "cores": 2, "disks": [{"kind": "ssd"}]}`},
		"AFieldThatTheKindDoesNotHave": {
			forProvider: `{"flavour": "sweet"}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.flavour: unknown field`,
		},
		"AValueOfAnotherType": {
			forProvider: `{"cores": "two"}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.cores: Invalid value: "string": spec.forProvider.cores in body must be of type integer: "string"`,
		},
		"AllFaultsAreReportedAtOnce": {
			forProvider: `{"flavour": "sweet", "cores": "two"}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.cores: Invalid value: "string": spec.forProvider.cores in body must be of type integer: "string"; forProvider.flavour: unknown field`,
		},
		"FiveFaultsAreReported": {
			forProvider: `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.a: unknown field; forProvider.b: unknown field; forProvider.c: unknown field; forProvider.d: unknown field; forProvider.e: unknown field`,
		},
		"OfSixFaultsOneIsOnlyCounted": {
			forProvider: `{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.a: unknown field; forProvider.b: unknown field; forProvider.c: unknown field; forProvider.d: unknown field; forProvider.e: unknown field; and 1 more`,
		},
		"ARuleOfTheKind": {
			forProvider: `{"zone": "a"}`,
			reason:      ofClass, want: `MachineClass "a": a zone needs a size`,
		},
		"NoRuleIsAskedAboutValuesOfAnotherType": {
			forProvider: `{"zone": 1}`,
			reason:      ofClass, want: `MachineClass "a": forProvider.zone: Invalid value: "integer": spec.forProvider.zone in body must be of type string: "integer"`,
		},
		"AClassThatIsNoObject": {
			forProvider: `[]`,
			reason:      ofClass, want: `MachineClass "a": forProvider: must be an object: json: cannot unmarshal array into Go value of type map[string]interface {}`,
		},
		"AClassWithoutRoomForWhatTheBindingPlaces": {
			forProvider: `{"size": "small"}`, binding: place("spec.forProvider.size.cores", "2"),
			reason: ofClass, want: `MachineClass "a": forProvider.size.cores: has no room for what Drover sets there: spec.forProvider.size is not an object`,
		},
		"AFieldThatTheBindingLeavesIsTheClasss": {
			forProvider: `{"cores": "two"}`, binding: place("spec.forProvider.cores", "optional.none()"),
			reason: ofClass, want: `MachineClass "a": forProvider.cores: Invalid value: "string": spec.forProvider.cores in body must be of type integer: "string"`,
		},
		"AValueOfTheBindingThatDoesNotFit": {
			binding: place("spec.forProvider.cores", `"two"`),
			reason:  ofBinding, want: `virtualMachine.fields[1] (of spec.forProvider.cores): Invalid value: spec.forProvider.cores in body must be of type integer: "string"`,
		},
		"AnElementOfAMapOfTheBinding": {
			binding: place("spec.forProvider.labels", `{"team": "long"}`),
			reason:  ofBinding, want: `virtualMachine.fields[1] (of spec.forProvider.labels): Too long: may not be more than 3 bytes`,
		},
		"AnElementOfAListOfTheBinding": {
			binding: place("spec.forProvider.disks", `[{"kind": "floppy"}]`),
			reason:  ofBinding, want: `virtualMachine.fields[1] (of spec.forProvider.disks): Unsupported value: supported values: "ssd", "hdd"`,
		},
		"AFieldWhoseNameBeginsLikeThatOfTheBindingIsTheClasss": {
			forProvider: `{"sizes": 1}`, binding: place("spec.forProvider.size", `"small"`),
			reason: ofClass, want: `MachineClass "a": forProvider.sizes: unknown field`,
		},
		"TheUserDataIsNotRevealed": {
			binding: place("spec.forProvider.userData", "userData.value"),
			reason:  ofBinding, want: `virtualMachine.fields[1] (of spec.forProvider.userData): Too long: may not be more than 10 bytes`,
		},
		"FaultsOfTheClassAreReportedBeforeThoseOfTheBinding": {
			forProvider: `{"flavour": "sweet"}`, binding: place("spec.forProvider.cores", `"two"`),
			reason: ofClass, want: `MachineClass "a": forProvider.flavour: unknown field`,
		},
		"AnExpressionThatFails": {
			binding: place("spec.forProvider.zone", "machine.spec.nothing"),
			reason:  ofBinding, want: `virtualMachine.fields[1].value (of spec.forProvider.zone): "machine.spec.nothing": line 1, column 13: no such key: nothing`,
		},
		"WhatNoSchemaIsKnownOfIsLeftToTheAPIServer": {
			forProvider: `{"flavour": "sweet"}`, unseen: true,
		},
		"ACompanionThatNoVMHas": {
			companions: map[string]machinev1alpha1.Companion{"disk": {}},
			reason:     ofClass, want: `MachineClass "a": companions.disk: VMs of provider "test" have no such companion: they may have none`,
		},
		"ACompanionThatTheProviderDoesNotHave": {
			companions: map[string]machinev1alpha1.Companion{"card": {}, "disk": {}}, binding: withCompanions,
			reason: ofClass, want: `MachineClass "a": companions.disk: VMs of provider "test" have no such companion: they may have address, card`,
		},
		"ACompanionThatIsNoObject": {
			companions: map[string]machinev1alpha1.Companion{"address": {ForProvider: &runtime.RawExtension{Raw: []byte(`3`)}}}, binding: withCompanions,
			reason: ofClass, want: `MachineClass "a": companions.address.forProvider: must be an object: json: cannot unmarshal number into Go value of type map[string]interface {}`,
		},
		"AFieldOfACompanion": {
			companions: map[string]machinev1alpha1.Companion{"card": {ForProvider: &runtime.RawExtension{Raw: []byte(`{"speed": 11}`)}}}, binding: withCompanions,
			reason: ofClass, want: `MachineClass "a": companions.card.forProvider.speed: Invalid value: 11: spec.forProvider.speed in body should be less than or equal to 10`,
		},
		"ARuleOfTheKindOfACompanion": {
			companions: map[string]machinev1alpha1.Companion{"card": {ForProvider: &runtime.RawExtension{Raw: []byte(`{"zone": "a"}`)}}}, binding: withCompanions,
			reason: ofClass, want: `MachineClass "a": companions.card: a zone needs a size`,
		},
		"ACompanionWithoutRoomForWhatTheBindingPlaces": {
			companions: map[string]machinev1alpha1.Companion{"card": {ForProvider: &runtime.RawExtension{Raw: []byte(`{"size": "small"}`)}}},
			binding: func(in *fn.Infrastructure) {
				withCompanions(in)
				in.Companions[1].Fields[0].Path = "spec.forProvider.size.cores"
			},
			reason: ofClass, want: `MachineClass "a": companions.card.forProvider.size.cores: has no room for what Drover sets there: spec.forProvider.size is not an object`,
		},
		"AValueOfTheBindingThatDoesNotFitACompanion": {
			binding: func(in *fn.Infrastructure) {
				withCompanions(in)
				in.Companions[1].Fields[0].Path = "spec.forProvider.speed"
			},
			reason: ofBinding, want: `companions[1].fields[0] (of spec.forProvider.speed): Invalid value: spec.forProvider.speed in body must be of type integer: "string"`,
		},
		"FaultsOfAClassAndOfItsCompanionsAreReportedAtOnce": {
			forProvider: `{"flavour": "sweet"}`,
			companions:  map[string]machinev1alpha1.Companion{"card": {ForProvider: &runtime.RawExtension{Raw: []byte(`{"flavour": "sour"}`)}}}, binding: withCompanions,
			reason: ofClass, want: `MachineClass "a": companions.card.forProvider.flavour: unknown field; forProvider.flavour: unknown field`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := single(t, func(in *fn.Infrastructure) {
				if tc.binding != nil {
					tc.binding(in)
				}
			})
			o.Class.Spec.ForProvider.Raw, o.Class.Spec.Companions = []byte(tc.forProvider), tc.companions
			if !tc.unseen {
				o.Validator = schemaOf(t, kindJSON)
				o.Validators = map[string]*Validator{"card": o.Validator}
			}
			problem := Check(b, o)
			switch {
			case (problem == nil) != (tc.reason == ""):
				t.Fatalf("problem %+v", problem)
			case problem == nil:
				return
			}
			if diff := cmp.Diff(&plan.Problem{Reason: tc.reason, Message: tc.want}, problem); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if strings.Contains(problem.Message, "#cloud-config") {
				t.Errorf("the user data is revealed: %s", problem.Message)
			}
		})
	}
}

func TestASchemaThatCannotBeReadIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		schema map[string]any
		want   string
	}{
		"AValueThatIsNoJSON":          {map[string]any{"type": make(chan int)}, "unsupported type"},
		"ATypeThatIsNone":             {map[string]any{"type": 3}, "cannot read the schema"},
		"AConstructThatNoSpecMayHave": {map[string]any{"properties": map[string]any{"spec": map[string]any{"$ref": "#/x"}}}, "cannot convert the schema"},
	} {
		t.Run(name, func(t *testing.T) {
			if v, err := NewValidator(tc.schema); v != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, %v, want %q", v, err, tc.want)
			}
		})
	}
}

func TestAKindThatTheAPIServerDoesNotHaveIsReported(t *testing.T) {
	in := input(withCompanions)
	in.VirtualMachine.Package, in.Companions[0].Package = "example.org/provider-test:v1", "example.org/provider-net:v1"
	b, err := Bind(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`virtualMachine: the API server has no kind VM of test.drover.dev/v1: install its provider by "crossplane xpkg install provider example.org/provider-test:v1", or if it is Healthy, activate the kind by a ManagedResourceActivationPolicy`,
		`companions[0]: the API server has no kind Address of test.drover.dev/v1: install its provider by "crossplane xpkg install provider example.org/provider-net:v1", or if it is Healthy, activate the kind by a ManagedResourceActivationPolicy`,
		`companions[1]: the API server has no kind Card of test.drover.dev/v1: install its provider by "crossplane xpkg install provider example.org/provider-test:v1", or if it is Healthy, activate the kind by a ManagedResourceActivationPolicy`,
	}
	got := []string{b.VM.NotInstalled().Message, b.companions[0].NotInstalled().Message, b.companions[1].NotInstalled().Message}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	none, err := Bind(input(func(in *fn.Infrastructure) { in.Provider = "another" }))
	if err != nil {
		t.Fatal(err)
	}
	if m := none.VM.NotInstalled().Message; !strings.Contains(m, "VM of test.drover.dev/v1: install its provider, or") {
		t.Errorf("without a package: %s", m)
	}
}
