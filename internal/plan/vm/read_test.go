package vm

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func vm(annotations map[string]string, status map[string]any, conditions ...map[string]any) plan.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.drover.dev/v1", "kind": "VM"}}
	u.SetName("vm")
	u.SetAnnotations(annotations)
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	var list []any
	for _, c := range conditions {
		list = append(list, c)
	}
	if list != nil {
		status["conditions"] = list
	}
	u.Object["status"] = status
	return plan.Object{Unstructured: u}
}

// deleted returns a VM that is being deleted.
func deleted(o plan.Object) plan.Object {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	return o
}

func condition(typ, status, reason, message string) map[string]any {
	return map[string]any{"type": typ, "status": status, "reason": reason, "message": message}
}

func TestRead(t *testing.T) {
	pending := map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z"}
	id := map[string]any{"id": "test:///1"}
	ready := condition("Ready", "True", "Available", "")
	incomplete := condition("Synced", "False", "ReconcileError", "cannot determine creation result - remove the annotation")

	cases := map[string]struct {
		change     func(*fn.Infrastructure)
		vm         plan.Object
		remembered string
		addresses  []machinev1alpha1.Address
		want       plan.VM
		err        string
	}{
		"AVMThatNobodyLookedAtYetIsBeingCreated": {
			vm:   vm(nil, nil),
			want: plan.VM{State: plan.VMCreating},
		},
		"AVMIsRunningWhenItIsReadyAndItsProviderIDIsKnown": {
			vm:   vm(nil, id, ready),
			want: plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true},
		},
		"AReadyVMOfUnknownProviderIDIsNotRunning": {
			vm:   vm(nil, nil, ready),
			want: plan.VM{State: plan.VMCreating, Unidentified: true},
		},
		"TheBindingSaysWhatRunningIs": {
			change: func(in *fn.Infrastructure) { in.Status.Running = `vm.status.?state.orValue("") == "on"` },
			vm:     vm(nil, map[string]any{"id": "test:///1", "state": "off"}, ready),
			want:   plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
		},
		"TheMachineRemembersAProviderIDThatIsSaidNoMore": {
			vm:         vm(nil, nil, ready),
			remembered: "test:///1",
			want:       plan.VM{State: plan.VMRunning, ProviderID: "test:///1"},
		},
		"AProviderIDThatOnlyTheStatusHasIsNotConfirmed": {
			vm:         vm(nil, map[string]any{"id": ""}, ready),
			remembered: "test:///forged",
			want:       plan.VM{State: plan.VMRunning, ProviderID: "test:///forged"},
		},
		"TheVMGoesBeforeTheStatus": {
			vm:         vm(nil, id, ready),
			remembered: "test:///forged",
			want:       plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true},
		},
		"ACreationThatRunsIsNotUnknown": {
			vm:   vm(pending, nil),
			want: plan.VM{State: plan.VMCreating},
		},
		"ACreationThatTheProviderGaveUpIsUnknown": {
			vm:   vm(pending, nil, incomplete),
			want: plan.VM{State: plan.VMCreateUnknown, Message: "the provider began to create the VM, and it is unknown whether the VM exists"},
		},
		"ACreationThatFailedIsTriedAgain": {
			vm: vm(map[string]string{
				"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z", "crossplane.io/external-create-failed": "2030-01-01T12:00:00Z",
			}, nil, condition("Synced", "False", "ReconcileError", "create failed: no quota")),
			want: plan.VM{State: plan.VMCreating, ErrorCode: "QuotaExceeded", Message: "create failed: no quota"},
		},
		"AnAsynchronousErrorIsSeenBehindASyncThatWentWell": {
			vm: vm(nil, nil, condition("Synced", "True", "ReconcileSuccess", ""),
				condition("LastAsyncOperation", "False", "AsyncCreateFailure", "no quota")),
			want: plan.VM{State: plan.VMCreating, ErrorCode: "QuotaExceeded", Message: "no quota"},
		},
		"AVMThatTheProviderMissesIsLost": {
			vm:   vm(nil, id, condition("Ready", "False", "Missing", "gone")),
			want: plan.VM{State: plan.VMLost, ProviderID: "test:///1", Confirmed: true, Message: "the provider finds VM test:///1 no more"},
		},
		"AVMThatMayOnlyBeObservedAndDoesNotExistIsLost": {
			vm:   vm(nil, id, ready, condition("Synced", "False", "ReconcileError", "observe failed: external resource does not exist")),
			want: plan.VM{State: plan.VMLost, ProviderID: "test:///1", Confirmed: true, Message: "the provider finds VM test:///1 no more"},
		},
		"AVMThatWasNeverThereIsNotLost": {
			vm:   vm(nil, nil, condition("Ready", "False", "Missing", "gone")),
			want: plan.VM{State: plan.VMCreating},
		},
		"TheBindingSaysWhatLostIs": {
			change: func(in *fn.Infrastructure) { in.Status.Lost = `vm.status.?state.orValue("") == "terminated"` },
			vm:     vm(nil, map[string]any{"id": "test:///1", "state": "terminated"}, ready),
			want:   plan.VM{State: plan.VMLost, ProviderID: "test:///1", Confirmed: true, Message: "the provider finds VM test:///1 no more"},
		},
		"ABindingThatSaysWhatLostIsDoesNotHideThatTheProviderMissesTheVM": {
			change: func(in *fn.Infrastructure) { in.Status.Lost = `vm.status.?state.orValue("") == "terminated"` },
			vm:     vm(nil, id, condition("Ready", "False", "Missing", "gone")),
			want:   plan.VM{State: plan.VMLost, ProviderID: "test:///1", Confirmed: true, Message: "the provider finds VM test:///1 no more"},
		},
		"TheBindingSaysWhatFailedIs": {
			change: func(in *fn.Infrastructure) { in.Status.Failed = `vm.status.?fault.orValue("")` },
			vm:     vm(nil, map[string]any{"id": "test:///1", "fault": "out of quota"}, ready),
			want:   plan.VM{State: plan.VMFailed, ProviderID: "test:///1", Confirmed: true, ErrorCode: "QuotaExceeded", Message: "out of quota"},
		},
		"TheBindingSaysWhatAnErrorIs": {
			change: func(in *fn.Infrastructure) { in.Status.Error = `vm.status.?trouble.orValue("")` },
			vm:     vm(nil, map[string]any{"trouble": "no quota"}, condition("Synced", "False", "ReconcileError", "something else")),
			want:   plan.VM{State: plan.VMCreating, ErrorCode: "QuotaExceeded", Message: "no quota"},
		},
		"AddressesAreRead": {
			change: func(in *fn.Infrastructure) {
				in.Status.Addresses = `vm.status.ips.map(a, {"type": "InternalIP", "address": a})`
			},
			vm: vm(nil, map[string]any{"id": "test:///1", "ips": []any{"10.0.0.1"}}),
			want: plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true,
				Addresses: []workernode.Address{{Type: "InternalIP", Address: "10.0.0.1"}}},
		},
		"AddressesOfTheGuestAreMarked": {
			change: func(in *fn.Infrastructure) {
				in.Status.Addresses = `[{"type": "Hostname", "address": vm.metadata.name}]`
				in.Status.GuestAddresses = `vm.status.ips.map(a, {"type": "InternalIP", "address": a})`
			},
			vm: vm(nil, map[string]any{"id": "test:///1", "ips": []any{"10.0.0.1"}}),
			want: plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true,
				Addresses: []workernode.Address{{Type: "Hostname", Address: "vm"}, {Type: "InternalIP", Address: "10.0.0.1", Guest: true}}},
		},
		"AGuestCannotReportThatItsAddressIsTheClouds": {
			change: func(in *fn.Infrastructure) { in.Status.GuestAddresses = `vm.status.ips` },
			vm:     vm(nil, map[string]any{"id": "test:///1", "ips": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1", "guest": false}}}),
			want: plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true,
				Addresses: []workernode.Address{{Type: "InternalIP", Address: "10.0.0.1", Guest: true}}},
		},
		"AnAddressOfAGuestOfAnUnknownTypeIsRefused": {
			change: func(in *fn.Infrastructure) { in.Status.GuestAddresses = `[{"type": "PublicIP", "address": "1.2.3.4"}]` },
			vm:     vm(nil, id),
			want:   plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
			err:    "status.guestAddresses",
		},
		"WhatTheNodeSaysOfItselfIsNotTheVMs": {
			addresses: []machinev1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.66"}},
			vm:        vm(nil, id),
			want:      plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
		},
		"AnAddressOfAnUnknownTypeIsRefused": {
			change: func(in *fn.Infrastructure) { in.Status.Addresses = `[{"type": "PublicIP", "address": "1.2.3.4"}]` },
			vm:     vm(nil, id),
			want:   plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
			err:    "PublicIP",
		},
		"AnAddressWithoutAValueIsRefused": {
			change: func(in *fn.Infrastructure) { in.Status.Addresses = `[{"type": "InternalIP", "address": ""}]` },
			vm:     vm(nil, id),
			want:   plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
			err:    "status.addresses",
		},
		"AVMThatIsBeingDeletedThoughItsMachineIsNotIsLost": {
			vm:   deleted(vm(nil, id, ready, condition("LastAsyncOperation", "False", "AsyncDeleteFailure", "no quota"))),
			want: plan.VM{State: plan.VMLost, ProviderID: "test:///1", Confirmed: true, Message: `VM "vm" is being deleted, although its Machine is not`},
		},
		"AnUnknownResultOfAnotherOperationIsNotThatOfTheCreation": {
			vm:   vm(nil, nil, incomplete),
			want: plan.VM{State: plan.VMCreating, ErrorCode: "Transient", Message: "cannot determine creation result - remove the annotation"},
		},
		"ABindingMayReadAllOfIt": {
			change: func(in *fn.Infrastructure) {
				in.Status.Running, in.Status.Error, in.Status.Failed, in.Status.Lost = "true", `""`, `""`, "false"
				in.Status.Addresses = `[{"type": "Hostname", "address": vm.metadata.name}]`
			},
			vm: vm(nil, id),
			want: plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true,
				Addresses: []workernode.Address{{Type: "Hostname", Address: "vm"}}},
		},
		"ARunningThatCannotBeReadSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.Running = "vm.status.nothing" },
			vm:     vm(nil, id, ready),
			want:   plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
			err:    `status.running: "vm.status.nothing"`,
		},
		"AnErrorThatCannotBeReadSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.Error = "vm.status.nothing" },
			vm:     vm(nil, id, ready),
			want:   plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true},
			err:    `status.error: "vm.status.nothing"`,
		},
		"AFailedThatCannotBeReadSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.Failed = "vm.status.nothing" },
			vm:     vm(nil, id, ready),
			want:   plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true},
			err:    `status.failed: "vm.status.nothing"`,
		},
		"ALostThatCannotBeReadSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.Lost = "vm.status.nothing" },
			vm:     vm(nil, id, ready),
			want:   plan.VM{State: plan.VMRunning, ProviderID: "test:///1", Confirmed: true},
			err:    `status.lost: "vm.status.nothing"`,
		},
		"AValueOfAnotherTypeSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.ProviderID = "vm.status.id" },
			vm:     vm(nil, map[string]any{"id": int64(3)}),
			want:   plan.VM{State: plan.VMCreating},
			err:    "must give a string, gives a int64",
		},
		"AValueThatIsNullSaysNothing": {
			change: func(in *fn.Infrastructure) { in.Status.ProviderID = "vm.status.id" },
			vm:     vm(nil, map[string]any{"id": nil}),
			want:   plan.VM{State: plan.VMCreating},
		},
		"AValueThatIsNoJSONSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.ProviderID = "dyn(type(vm))" },
			vm:     vm(nil, id),
			want:   plan.VM{State: plan.VMCreating},
			err:    `status.providerID: "dyn(type(vm))": line 1, column 1`,
		},
		"AnExpressionThatFailsOnItsSecondLineSaysSo": {
			change: func(in *fn.Infrastructure) { in.Status.ProviderID = "\"test:///\" +\n  vm.status.nothing" },
			vm:     vm(nil, nil),
			want:   plan.VM{State: plan.VMCreating},
			err:    "line 2, column 12",
		},
		"AnExpressionThatFailsLeavesWhatTheMachineRemembers": {
			change:     func(in *fn.Infrastructure) { in.Status.ProviderID = "vm.status.nothing" },
			vm:         vm(nil, nil),
			remembered: "test:///1",
			want:       plan.VM{State: plan.VMCreating, ProviderID: "test:///1"},
			err:        `status.providerID: "vm.status.nothing": line 1, column 10: no such key: nothing`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input()
			if tc.change != nil {
				tc.change(in)
			}
			b, err := Bind(in)
			if err != nil {
				t.Fatal(err)
			}
			m := &machinev1alpha1.Machine{}
			m.Status.ProviderID, m.Status.Addresses = tc.remembered, tc.addresses
			got, err := read(b, Observed{Machine: m, RawMachine: map[string]any{}, VM: &tc.vm})
			tc.want.Name = "vm"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error: want %q, got %v", tc.err, err)
			}
		})
	}
}

func TestALongErrorIsCut(t *testing.T) {
	b, err := Bind(input())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ said, want string }{
		"OneOfAKibibyteIsNot":      {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"OneThatIsLonger":          {strings.Repeat("a", 1025), strings.Repeat("a", 1024) + "..."},
		"InTheMiddleOfNoCharacter": {"a" + strings.Repeat("ö", 4000), "a" + strings.Repeat("ö", 511) + "..."},
		"BetweenTwoCharacters":     {strings.Repeat("ö", 4000), strings.Repeat("ö", 512) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			there := vm(nil, nil, condition("Synced", "False", "ReconcileError", tc.said))
			got, err := read(b, Observed{Machine: &machinev1alpha1.Machine{}, VM: &there})
			if err != nil || got.Message != tc.want {
				t.Errorf("%v, %d bytes", err, len(got.Message))
			}
		})
	}
}

func TestWrongCredentialsAreReportedWithTheNameOfTheirConfiguration(t *testing.T) {
	const said = "api error AuthFailure: credentials"
	named := `cannot get credentials of ClusterProviderConfig "cloud"`
	cases := map[string]struct{ said, want string }{
		"TheCloudDoesNotKnowIt":     {said, `ClusterProviderConfig "cloud": ` + said},
		"TheProviderSaysItAlready":  {named, named},
		"OtherErrorsAreNotItsFault": {"no room", "no room"},
		"AnotherOfItsKindIsNamed":   {`credentials of ClusterProviderConfig "other"`, `ClusterProviderConfig "cloud": credentials of ClusterProviderConfig "other"`},
		"OneOfItsNameIsNoneOfIt":    {`credentials of Secret "cloud"`, `ClusterProviderConfig "cloud": credentials of Secret "cloud"`},
	}
	in := input()
	in.Status.ErrorClasses = []fn.ErrorClass{{Code: fn.ErrorPermissionDenied, Match: "credentials"}}
	b, err := Bind(in)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := vm(nil, nil, condition("Synced", "False", "ReconcileError", tc.said))
			o.Object["spec"] = map[string]any{"providerConfigRef": map[string]any{"kind": "ClusterProviderConfig", "name": "cloud"}}
			got, err := read(b, Observed{Machine: &machinev1alpha1.Machine{}, RawMachine: map[string]any{}, VM: &o})
			if err != nil || got.Message != tc.want {
				t.Errorf("%q, %v, want %q", got.Message, err, tc.want)
			}
		})
	}
}

// TestAMissingConfigurationIsNamedAsMissing has the errors of providers for a configuration that does not exist. The
// bindings classify them like credentials that the provider cannot get.
func TestAMissingConfigurationIsNamedAsMissing(t *testing.T) {
	in := input()
	in.Status.ErrorClasses = []fn.ErrorClass{{Code: fn.ErrorPermissionDenied, Match: "(cannot|failed to) (get|track|extract).*(ProviderConfig|credentials)"}}
	b, err := Bind(in)
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		`connect failed: cannot get referenced ProviderConfig: "none": ClusterProviderConfig.aws.m.upbound.io "none" not found`:              "ProviderConfigNotFound",
		`connect failed: ClusterProviderConfig "none": clusterproviderconfigs.proxmox.drover.dev "none" not found`:                           "ProviderConfigNotFound",
		`connect failed: failed to track ProviderConfig usage: ProviderConfig.gcp.m.upbound.io "none" not found`:                             "ProviderConfigNotFound",
		`connect failed: cannot get credentials of ClusterProviderConfig "cloud": Secret "none" not found`:                                   "PermissionDenied",
		`create failed: image "ClusterProviderConfig" was not found`:                                                                         "Transient",
		`connect failed: ClusterProviderConfig "cloud": cannot list clusterproviderconfigs.proxmox.drover.dev: the server could not find it`: "Transient",
	} {
		o := vm(nil, nil, condition("Synced", "False", "ReconcileError", said))
		got, err := read(b, Observed{Machine: &machinev1alpha1.Machine{}, RawMachine: map[string]any{}, VM: &o})
		if err != nil || got.ErrorCode != want {
			t.Errorf("%s: class %q, %v, want %q", said, got.ErrorCode, err, want)
		}
	}
}

func TestWrongCredentialsOfAVMWithoutAConfigurationAreReportedAsTheyAre(t *testing.T) {
	b, err := Bind(input(func(in *fn.Infrastructure) {
		in.Status.ErrorClasses = []fn.ErrorClass{{Code: fn.ErrorPermissionDenied, Match: "credentials"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	there := vm(nil, nil, condition("Synced", "False", "ReconcileError", "no credentials"))
	got, err := read(b, Observed{Machine: &machinev1alpha1.Machine{}, VM: &there})
	if err != nil || got.Message != "no credentials" || got.ErrorCode != "PermissionDenied" {
		t.Errorf("%+v, %v", got, err)
	}
}
