package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// single returns a Machine with published user data, of a class without companions.
func single(t *testing.T, change ...func(*fn.Infrastructure)) (*Binding, Observed) {
	t.Helper()
	b, err := Bind(input(change...))
	if err != nil {
		t.Fatal(err)
	}
	class := &machinev1alpha1.MachineClass{}
	class.Name, class.Spec.Provider = "a", "test"
	class.Spec.ProviderConfigRef = machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: "cloud"}
	class.Spec.ForProvider = &runtime.RawExtension{Raw: []byte(`{"size": "small"}`)}
	template := &machinev1alpha1.Machine{}
	template.Namespace, template.Name = "team", "set"
	return b, Specimen(class, template)
}

func TestAVMBeganWhenItMayExist(t *testing.T) {
	begun, composed := vm(map[string]string{"crossplane.io/external-name": "1"}, nil), vm(nil, nil)
	for name, tc := range map[string]struct {
		providerID string
		vm         *plan.Object
		want       bool
	}{
		"AMachineWithoutAVM":                         {"", nil, false},
		"AMachineThatRemembersAProviderID":           {"test:///1", nil, true},
		"AVMThatItsProviderHasNotTouched":            {"", &composed, false},
		"AVMThatItsProviderMayHaveCreated":           {"", &begun, true},
		"AVMThatWasForgottenByAMachineThatRemembers": {"test:///1", &composed, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{}
			m.Status.ProviderID = tc.providerID
			if got := (Observed{Machine: m, VM: tc.vm}).Begun(); got != tc.want {
				t.Errorf("begun: %t", got)
			}
		})
	}
}

func TestAVMIsMadeWhenNothingIsMissing(t *testing.T) {
	problem := &plan.Problem{Reason: "Any", Message: "thing"}
	for name, tc := range map[string]struct {
		change  func(*Observed)
		invalid *plan.Problem
		want    plan.VM
		made    bool
	}{
		"AMachineGetsAVM": {
			want: plan.VM{State: plan.VMCreating}, made: true,
		},
		"ABindingThatIsNotValidMakesNone": {
			invalid: problem,
			want:    plan.VM{State: plan.VMAbsent, Problem: problem},
		},
		"AVMThatIsGoneIsNotMadeAgain": {
			change: func(o *Observed) { o.Machine.Status.ProviderID = "test:///1" },
			want:   plan.VM{State: plan.VMLost, ProviderID: "test:///1", Message: "the VM of VM test:///1 is gone"},
		},
		"AMachineThatFailedGetsNone": {
			change: func(o *Observed) { o.Machine.Status.Phase = machinev1alpha1.MachineFailed },
			want:   plan.VM{State: plan.VMAbsent},
		},
		"AClassThatDoesNotExistMakesNone": {
			change: func(o *Observed) { o.Class, o.ClassProblem = nil, problem },
			want:   plan.VM{State: plan.VMAbsent, Problem: problem},
		},
		"NoneIsMadeThatCouldNotBeDistinguishedFromThoseOfOtherInstallations": {
			change: func(o *Observed) { o.Installation, o.InstallationProblem = "", problem },
			want:   plan.VM{State: plan.VMAbsent, Problem: problem},
		},
		"AClassOfAnotherProviderMakesNone": {
			change: func(o *Observed) { o.Class.Spec.Provider = "other" },
			want: plan.VM{State: plan.VMAbsent, Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonProviderMismatch,
				Message: `MachineClass "a": spec.provider: is "other", but the Machine's Composition makes VMs of provider "test": select the Composition labeled provider: other with the Machine's spec.crossplane.compositionSelector.matchLabels`,
			}},
		},
		"UserDataWithAProblemMakesNone": {
			change: func(o *Observed) { o.Bootstrap.Problem = problem },
			want:   plan.VM{State: plan.VMAbsent},
		},
		"AVMWaitsForItsUserData": {
			change: func(o *Observed) { o.Bootstrap.SecretName = "" },
			want:   plan.VM{State: plan.VMAbsent},
		},
		"AClassWithAConfigurationThatDoesNotExistMakesNone": {
			change: func(o *Observed) {
				o.MissingConfig = &plan.MissingConfig{Group: "test.drover.dev", Kind: "ClusterProviderConfig", Name: "cloud"}
			},
			want: plan.VM{State: plan.VMAbsent, Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonProviderConfigNotFound,
				Message: `MachineClass "a": spec.providerConfigRef: there is no ClusterProviderConfig "cloud" of test.drover.dev. No VM is created until it exists`,
			}},
		},
		"TheNamespaceOfAConfigurationThatDoesNotExistIsNamed": {
			change: func(o *Observed) {
				o.MissingConfig = &plan.MissingConfig{Group: "test.drover.dev", Kind: "ProviderConfig", Name: "cloud", Namespace: "team"}
			},
			want: plan.VM{State: plan.VMAbsent, Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonProviderConfigNotFound,
				Message: `MachineClass "a": spec.providerConfigRef: there is no ProviderConfig "cloud" of test.drover.dev in the namespace "team". No VM is created until it exists`,
			}},
		},
		"AClassThatFitsNoVMMakesNone": {
			change: func(o *Observed) { o.Class.Spec.ForProvider.Raw = []byte(`[]`) },
			want: plan.VM{State: plan.VMAbsent, Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonForProviderInvalid,
				Message: `MachineClass "a": forProvider: must be an object: json: cannot unmarshal array into Go value of type map[string]interface {}`,
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := single(t)
			if tc.change != nil {
				tc.change(&o)
			}
			d := Plan(b, tc.invalid, o)
			tc.want.Name = names.OfMachine(o.Machine.Name, o.Machine.UID)
			if diff := cmp.Diff(tc.want, d.Word); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (d.VM != nil) != tc.made {
				t.Errorf("made: %v", d.VM)
			}
		})
	}
}

// TestAVMThatIsThere plans for an existing VM resource with the size "large", while the class has
// the size "small".
func TestAVMThatIsThere(t *testing.T) {
	problem := &plan.Problem{Reason: "Any", Message: "thing"}
	const begun = "crossplane.io/external-name"
	unreadable := func(in *fn.Infrastructure) { in.Status.ProviderID = "vm.status.nothing" }
	unread := &plan.Problem{
		Reason:  machinev1alpha1.ReasonBindingInvalid,
		Message: `status.providerID: "vm.status.nothing": line 1, column 10: no such key: nothing`,
	}
	refused := []map[string]any{condition("Synced", "False", "ReconcileError", policiesDisabled)}
	for name, tc := range map[string]struct {
		binding    func(*fn.Infrastructure)
		annotation string
		id         string
		conditions []map[string]any
		change     func(*Observed)
		// invalid means that there is no binding.
		invalid *plan.Problem
		size    string
		pinned  bool
		want    plan.VM
	}{
		"OneThatItsProviderHasNotTouchedIsMadeOfTheClassAsItIs": {
			size: "small",
			want: plan.VM{State: plan.VMCreating},
		},
		"OneThatItsProviderMayHaveCreatedStaysAsItWasRequested": {
			annotation: begun,
			size:       "large",
			want:       plan.VM{State: plan.VMCreating},
		},
		"OneWhoseProviderIDIsKnownIsPinned": {
			annotation: begun, id: "test:///1",
			size: "large", pinned: true,
			want: plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Confirmed: true},
		},
		"OneThatCannotBeMadeNowStaysAsItWasRequested": {
			change: func(o *Observed) { o.Class, o.ClassProblem = nil, problem },
			size:   "large",
			want:   plan.VM{State: plan.VMCreating, Problem: problem},
		},
		"OneDoesNotNeedTheConfigurationThatIsGoneSince": {
			change: func(o *Observed) { o.MissingConfig = &plan.MissingConfig{Kind: "ClusterProviderConfig", Name: "cloud"} },
			size:   "small",
			want:   plan.VM{State: plan.VMCreating},
		},
		"OneOfABindingThatIsNotValidStaysAsItWasRequested": {
			invalid: problem,
			size:    "large",
			want:    plan.VM{State: plan.VMCreating, Problem: problem},
		},
		"OneWhosePoliciesItsProviderRefusesReportsHowToStartTheProvider": {
			conditions: refused,
			size:       "small",
			want: plan.VM{State: plan.VMCreating, ErrorCode: "Transient", Message: policiesDisabled, Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonManagementPoliciesDisabled,
				Message: "the provider of VM (test.drover.dev) runs without management policies, and could not delete a VM: start it with --enable-management-policies",
			}},
		},
		"WhatKeepsTheVMFromBeingMadeIsReportedBeforeThat": {
			change:     func(o *Observed) { o.Class, o.ClassProblem = nil, problem },
			conditions: refused,
			size:       "large",
			want:       plan.VM{State: plan.VMCreating, ErrorCode: "Transient", Message: policiesDisabled, Problem: problem},
		},
		"OneThatRunsReportsThatItsBindingIsNotValid": {
			annotation: begun, invalid: problem,
			change: func(o *Observed) { o.Machine.Status.ProviderID = "test:///1" },
			size:   "large", pinned: true,
			want: plan.VM{State: plan.VMCreating, ProviderID: "test:///1", Problem: problem},
		},
		"AnErrorHasNoClassWithoutABinding": {
			annotation: begun, invalid: problem, conditions: []map[string]any{condition("Synced", "False", "ReconcileError", "no quota")},
			size: "large",
			want: plan.VM{State: plan.VMCreating, Message: "no quota", Problem: problem},
		},
		"AStatusThatCannotBeReadIsReported": {
			binding: unreadable, annotation: begun,
			size: "large",
			want: plan.VM{State: plan.VMCreating, Problem: unread},
		},
		"AStatusThatCannotBeReadIsReportedBeforeWhatKeepsTheVMFromBeingMade": {
			binding: unreadable,
			change:  func(o *Observed) { o.Class, o.ClassProblem = nil, problem },
			size:    "large",
			want:    plan.VM{State: plan.VMCreating, Problem: unread},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := single(t, func(in *fn.Infrastructure) {
				if tc.binding != nil {
					tc.binding(in)
				}
			})
			if tc.invalid != nil {
				b = nil
			}
			status := map[string]any{}
			if tc.id != "" {
				status["id"] = tc.id
			}
			there := vm(map[string]string{tc.annotation: "vm-1"}, status, tc.conditions...)
			there.Object["spec"] = map[string]any{"forProvider": map[string]any{"size": "large"}}
			o.VM = &there
			if tc.change != nil {
				tc.change(&o)
			}
			d := Plan(b, tc.invalid, o)
			tc.want.Name = "vm"
			if diff := cmp.Diff(tc.want, d.Word); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if size, _, _ := unstructured.NestedString(d.VM.Object, "spec", "forProvider", "size"); size != tc.size {
				t.Errorf("the VM has the size %q", size)
			}
			policies, _, _ := unstructured.NestedStringSlice(d.VM.Object, "spec", "managementPolicies")
			if pinned := cmp.Equal(policies, []string{"Observe", "Delete"}); pinned != tc.pinned || !pinned && policies != nil {
				t.Errorf("the VM has the policies %v", policies)
			}
		})
	}
}

func TestCompanionsOfAVMThatIsMadeAnewAreMadeAnew(t *testing.T) {
	b, o := wanted(t)
	o.Class.Spec.Companions["address"] = machinev1alpha1.Companion{ForProvider: &runtime.RawExtension{Raw: []byte(`{"pool": "new"}`)}}
	// The provider has not begun its creation.
	address := vm(nil, map[string]any{"id": "a-1"}, isReady)
	address.Object["spec"] = map[string]any{"forProvider": map[string]any{"pool": "old"}}
	o.Companions["address"] = address
	there := vm(nil, nil)
	o.VM = &there
	o.Companions["card"] = vm(map[string]string{"crossplane.io/external-name": "c-1"}, map[string]any{"id": "c-1"})
	d := Plan(b, nil, o)
	if d.composed() != "address card vm" {
		t.Fatalf("composed %q: %+v", d.composed(), d.Word)
	}
	if pool, _, _ := unstructured.NestedString(d.Companions["address"].Object, "spec", "forProvider", "pool"); pool != "new" {
		t.Errorf("the address is of the pool %q", pool)
	}
	if a := d.VM.GetAnnotations()[machinev1alpha1.AnnotationCompanions]; a != "address,card" {
		t.Errorf("the VM is made with %q", a)
	}
}

func TestWithoutAClassTheCompanionsAreThoseThatAllVMsHave(t *testing.T) {
	b, o := wanted(t)
	if got := namesOf(b.CompanionsOf(nil)); got != "card" {
		t.Errorf("without a class: %q", got)
	}
	if got := namesOf(b.CompanionsOf(o.Class)); got != "address card" {
		t.Errorf("of a class with an address: %q", got)
	}
}

func TestAVMRemembersTheCompanionsThatItWasMadeWith(t *testing.T) {
	b, _ := wanted(t)
	for annotation, want := range map[string]string{"address,card": "address card", "card": "card", "disk": "", "": ""} {
		if got := namesOf(b.CompanionsMade(vm(map[string]string{machinev1alpha1.AnnotationCompanions: annotation}, nil))); got != want {
			t.Errorf("%q: %q, want %q", annotation, got, want)
		}
	}
}

func namesOf(companions []Companion) string {
	var out []string
	for _, c := range companions {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

func TestAVMReportsTheCompanionThatItWaitsFor(t *testing.T) {
	now := metav1.Now()
	denied := func(in *fn.Infrastructure) {
		in.Status.ErrorClasses = []fn.ErrorClass{{Code: fn.ErrorPermissionDenied, Match: "credentials"}}
	}
	for name, tc := range map[string]struct {
		change func(plan.Object)
		ready  string
		want   plan.VM
	}{
		"OneThatIsNotReadyIsWaitedFor": {
			change: func(plan.Object) {},
			want:   plan.VM{State: plan.VMCreating, Message: "waiting for Card %s, which the VM needs"},
		},
		"AnErrorOfOneThatIsNotReadyIsReported": {
			change: func(c plan.Object) { setConditions(c, condition("Synced", "False", "ReconcileError", "no room")) },
			want:   plan.VM{State: plan.VMCreating, ErrorCode: "Transient", Message: "Card %s: no room"},
		},
		"WrongCredentialsAreReportedWithTheirConfiguration": {
			change: func(c plan.Object) {
				setConditions(c, condition("Synced", "False", "ReconcileError", "invalid credentials"))
			},
			want: plan.VM{State: plan.VMCreating, ErrorCode: "PermissionDenied", Message: `Card %s: ClusterProviderConfig "cloud": invalid credentials`},
		},
		"OneWhoseReadinessCannotBeReadIsABindingThatIsNotValid": {
			change: func(plan.Object) {}, ready: "companion.status.nothing",
			want: plan.VM{State: plan.VMCreating, Message: "waiting for Card %s, which the VM needs", Problem: &plan.Problem{
				Reason:  machinev1alpha1.ReasonBindingInvalid,
				Message: `companions[1].ready: "companion.status.nothing": line 1, column 17: no such key: nothing`,
			}},
		},
		"OneThatIsReadyAndBeingDeletedIsLost": {
			change: func(c plan.Object) {
				c.SetDeletionTimestamp(&now)
				c.Object["status"] = map[string]any{"id": "c-1"}
			},
			want: plan.VM{State: plan.VMLost, Message: "Card %s is being deleted, although its Machine is not"},
		},
		"ACreationThatMerelyRunsIsNotUnknown": {
			change: func(c plan.Object) {
				c.SetAnnotations(map[string]string{"crossplane.io/external-create-pending": "2030-01-01T12:00:00Z"})
			},
			want: plan.VM{State: plan.VMCreating, Message: "waiting for Card %s, which the VM needs"},
		},
		"ACreationThatEndedIsNotUnknown": {
			change: func(c plan.Object) {
				setConditions(c, condition("Synced", "False", "ReconcileError", "cannot determine creation result"))
			},
			want: plan.VM{State: plan.VMCreating, ErrorCode: "Transient", Message: "Card %s: cannot determine creation result"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := wanted(t)
			b, err := Bind(input(withCompanions, denied, func(in *fn.Infrastructure) {
				if tc.ready != "" {
					in.Companions[1].Ready = tc.ready
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			o.Class.Spec.ProviderConfigRef = machinev1alpha1.VMProviderConfigReference{Kind: "ClusterProviderConfig", Name: "cloud"}
			says("address", o, Plan(b, nil, o).Companions["address"], nil, isReady)
			says("card", o, Plan(b, nil, o).Companions["card"], nil)
			tc.change(o.Companions["card"])
			tc.want.Name = names.OfMachine(o.Machine.Name, o.Machine.UID)
			tc.want.Message = strings.Replace(tc.want.Message, "%s", o.Companions["card"].GetName(), 1)
			d := Plan(b, nil, o)
			if diff := cmp.Diff(tc.want, d.Word); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if d.composed() != "address card" {
				t.Errorf("composed %q", d.composed())
			}
		})
	}
}

func TestAVMDoesNotReportTheErrorOfACompanionThatIsReady(t *testing.T) {
	b, o := wanted(t)
	says("address", o, Plan(b, nil, o).Companions["address"], nil, isReady, condition("Synced", "False", "ReconcileError", "no quota"))
	says("card", o, Plan(b, nil, o).Companions["card"], map[string]any{"id": "c-1"})
	d := Plan(b, nil, o)
	if diff := cmp.Diff(plan.VM{State: plan.VMCreating, Name: d.VM.GetName()}, d.Word); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
