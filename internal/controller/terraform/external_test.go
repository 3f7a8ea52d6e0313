package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/terraform/v1alpha1"
	"github.com/drover-dev/drover/internal/terraform/plugin"
	"github.com/drover-dev/drover/internal/terraform/plugin/plugintest"
)

type ctx = context.Context

func TestAVMLivesAndEnds(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 3)
	vms := plugintest.List(t, w.dir)
	if len(vms) != 1 {
		t.Fatalf("the cloud has %v: %s", vms, synced(vm))
	}
	if want := map[string]string{"team": "red", "drover-machine": "a", "zone": "zone-b"}; !cmp.Equal(vms[0].Tags, want) || vms[0].Size != "large" || vms[0].UserData != userData {
		t.Errorf("VM %+v, want the tags %v, the size and the user data", vms[0], want)
	}
	at := vm.Status.AtProvider
	if want := []v1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.7"}}; at.ProviderID != "fake://id-a" || !at.Running || at.Failed != "" || !cmp.Equal(at.Addresses, want) {
		t.Errorf("status %+v", at)
	}
	if meta.GetExternalName(vm) != "id-a" || vm.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || isPending(vm) {
		t.Errorf("external name %q, conditions %v", meta.GetExternalName(vm), vm.Status.Conditions)
	}
	w.keepsSecrets(vm)
	states := w.states()
	if len(states) != 1 || states[0].Namespace != stateNamespace || !strings.Contains(string(states[0].Data[keyState]), "id-a") {
		t.Errorf("states: %v, want one in the namespace of the provider", states)
	}

	w.delete(vm)
	w.reconcile(vm, 3)
	if vm.UID != "" || len(plugintest.List(t, w.dir)) != 0 || len(w.states()) != 0 {
		t.Errorf("left are the object %q (%s), VMs %v, states %d", vm.UID, synced(vm), plugintest.List(t, w.dir), len(w.states()))
	}
}

func TestAVMAtRestCostsNoWrite(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 4)
	w.before = func(verb string, obj client.Object) error {
		if _, ok := obj.(*corev1.Secret); ok {
			t.Errorf("%s of Secret %s", verb, obj.GetName())
		}
		return nil
	}
	before := vm.ResourceVersion
	w.reconcile(vm, 3)
	if vm.ResourceVersion != before {
		t.Log("the managed reconciler writes its status as it is; mr.Quiet leaves that out")
	}
}

func TestNothingIsCreatedOfWhatIsWrong(t *testing.T) {
	arguments := func(json string) func(*v1alpha1.VirtualMachine) {
		return func(vm *v1alpha1.VirtualMachine) {
			vm.Spec.ForProvider.Arguments = &extv1.JSON{Raw: []byte(json)}
		}
	}
	cases := map[string]struct {
		change func(*v1alpha1.VirtualMachine)
		config func(*v1alpha1.ProviderConfigSpec)
		want   string
	}{
		"AnUnknownArgument":      {arguments(`{"flavour": "x"}`), nil, "arguments.flavour: unknown argument"},
		"ARefusedValue":          {arguments(`{"size": "huge"}`), nil, `arguments.size: `},
		"NoUserData":             {func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.UserDataSecretRef.Name = "gone" }, nil, `cannot get Secret "gone"`},
		"ATypeThatIsNotAllowed":  {func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.Type = "fake_user" }, nil, `spec.forProvider.type: invalid value "fake_user": spec.virtualMachines allows fake_vm`},
		"ATypeThatIsNotThere":    {nil, func(s *v1alpha1.ProviderConfigSpec) { s.VirtualMachines[0].Type = "fake_volume" }, `"fake_volume": the provider has no such resource type`},
		"AForeignNamespace":      {nil, func(s *v1alpha1.ProviderConfigSpec) { s.AllowedNamespaces = []string{"fleet-*"} }, "spec.allowedNamespaces does not allow the namespace team"},
		"AnotherProgram":         {nil, func(s *v1alpha1.ProviderConfigSpec) { s.Provider.SHA256 = []string{strings.Repeat("0", 64)} }, "is not among the allowed ones"},
		"AnExpressionThatIsNone": {nil, func(s *v1alpha1.ProviderConfigSpec) { s.VirtualMachines[0].Arguments[0].Value = "nme" }, "spec.virtualMachines[0].arguments[0].value"},
		"AKindOfConfiguration":   {func(vm *v1alpha1.VirtualMachine) { vm.Spec.ProviderConfigReference.Kind = "ProviderConfig" }, nil, "must be ClusterProviderConfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.config != nil {
				w.change(tc.config)
			}
			vm := w.vm("a", func(vm *v1alpha1.VirtualMachine) {
				if tc.change != nil {
					tc.change(vm)
				}
			})
			w.reconcile(vm, 2)
			if !strings.Contains(synced(vm), tc.want) {
				t.Errorf("Synced: %s, want %q", synced(vm), tc.want)
			}
			// No creation was tried, so none is recorded.
			if _, tried := vm.Annotations[meta.AnnotationKeyExternalCreatePending]; tried || len(plugintest.List(t, w.dir)) != 0 {
				t.Errorf("annotations %v, VMs %v", vm.Annotations, plugintest.List(t, w.dir))
			}
			w.keepsSecrets(vm)
			w.delete(vm)
			w.reconcile(vm, 2)
		})
	}
}

func TestARefusedVMIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	vm := w.vm(plugintest.Refused)
	w.reconcile(vm, 1)
	if !strings.Contains(synced(vm), "quota exceeded") || isPending(vm) || meta.GetExternalName(vm) != "" {
		t.Errorf("Synced: %s, annotations %v", synced(vm), vm.Annotations)
	}
	// The provider prints the user data.
	if !strings.Contains(synced(vm), masked) {
		t.Errorf("the user data are not masked: %s", synced(vm))
	}
	w.keepsSecrets(vm)
}

func TestACreationWithUnknownResultIsNotRepeated(t *testing.T) {
	for _, name := range []string{plugintest.Lost, plugintest.Crash} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			vm := w.vm(name)
			w.reconcile(vm, 1)
			if !isPending(vm) || len(plugintest.List(t, w.dir)) != 1 {
				t.Fatalf("annotations %v, VMs %v, Synced: %s", vm.Annotations, plugintest.List(t, w.dir), synced(vm))
			}
			w.restart()
			w.reconcile(vm, 3)
			if !isPending(vm) || len(plugintest.List(t, w.dir)) != 1 || !strings.Contains(synced(vm), "cannot determine creation result") {
				t.Errorf("annotations %v, VMs %v, Synced: %s", vm.Annotations, plugintest.List(t, w.dir), synced(vm))
			}
			w.delete(vm)
			w.reconcile(vm, 2)
			if vm.UID != "" {
				t.Errorf("the object is held by a VM that nobody knows: %s", synced(vm))
			}
		})
	}
}

// TestAControllerThatIsKilledAfterTheStateIsSavedFindsTheVM kills the controller before the
// annotations are written.
func TestAControllerThatIsKilledAfterTheStateIsSavedFindsTheVM(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.before = func(verb string, obj client.Object) error {
		if _, isVM := obj.(*v1alpha1.VirtualMachine); isVM && meta.GetExternalName(obj) != "" {
			return errors.New("killed")
		}
		return nil
	}
	w.reconcile(vm, 1)
	if !isPending(vm) || len(w.states()) != 1 {
		t.Fatalf("annotations %v, %d states", vm.Annotations, len(w.states()))
	}
	w.before = nil
	w.restart()
	w.reconcile(vm, 2)
	if isPending(vm) || meta.GetExternalName(vm) != "id-a" || !vm.Status.AtProvider.Running || len(plugintest.List(t, w.dir)) != 1 {
		t.Errorf("annotations %v, status %+v, VMs %v", vm.Annotations, vm.Status.AtProvider, plugintest.List(t, w.dir))
	}
}

func TestAHalfMadeVMFailsAndIsDeleted(t *testing.T) {
	w := newWorld(t)
	vm := w.vm(plugintest.HalfMade)
	w.reconcile(vm, 3)
	at := vm.Status.AtProvider
	if !strings.Contains(at.Failed, "no host has room for it") || at.Running || at.ProviderID == "" || meta.GetExternalName(vm) == "" {
		t.Errorf("status %+v, external name %q", at, meta.GetExternalName(vm))
	}
	if c := vm.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionFalse || c.Reason != xpv2.ReasonUnavailable {
		t.Errorf("Ready: %+v", c)
	}
	w.restart()
	w.reconcile(vm, 1)
	if vm.Status.AtProvider.Failed == "" || len(plugintest.List(t, w.dir)) != 1 {
		t.Errorf("after a restart: %+v, VMs %v", vm.Status.AtProvider, plugintest.List(t, w.dir))
	}
	w.delete(vm)
	w.reconcile(vm, 3)
	if vm.UID != "" || len(plugintest.List(t, w.dir)) != 0 {
		t.Errorf("left is %v: %s", plugintest.List(t, w.dir), synced(vm))
	}
}

func TestALostVMIsReportedAndNotCreatedAgain(t *testing.T) {
	for name, policies := range map[string]xpv2.ManagementPolicies{
		"Pinned":    {xpv2.ManagementActionObserve, xpv2.ManagementActionDelete},
		"NotPinned": {xpv2.ManagementActionAll},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			vm := w.vm("a")
			w.reconcile(vm, 3)
			vm.Spec.ManagementPolicies = policies
			if err := w.kube.Update(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
			w.reconcile(vm, 1)
			plugintest.Lose(t, w.dir, "id-a")
			w.reconcile(vm, 2)
			if c := vm.GetCondition(xpv2.TypeReady); c.Reason != machinev1alpha1.ReasonMissing || vm.Status.AtProvider.Running || len(plugintest.List(t, w.dir)) != 0 {
				t.Errorf("Ready: %+v, VMs %v", c, plugintest.List(t, w.dir))
			}
			w.delete(vm)
			w.reconcile(vm, 2)
			if vm.UID != "" {
				t.Errorf("the object of a lost VM stays: %s", synced(vm))
			}
		})
	}
}

// TestAVMThatAnotherConfigurationDoesNotFindIsNotLost changes the directory of the cloud.
func TestAVMThatAnotherConfigurationDoesNotFindIsNotLost(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 3)
	was := w.config.Spec.Configuration
	w.change(func(s *v1alpha1.ProviderConfigSpec) {
		s.Configuration = &extv1.JSON{Raw: fmt.Appendf(nil, `{"dir": %q}`, t.TempDir())}
	})
	w.reconcile(vm, 2)
	if vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing || !strings.Contains(synced(vm), "is not the one that it was created with") {
		t.Errorf("Ready %s, Synced: %s", vm.GetCondition(xpv2.TypeReady).Reason, synced(vm))
	}
	w.delete(vm)
	w.reconcile(vm, 2)
	if vm.UID == "" {
		t.Error("the object of a VM that exists is gone")
	}
	w.change(func(s *v1alpha1.ProviderConfigSpec) { s.Configuration = was })
	w.reconcile(vm, 3)
	if vm.UID != "" || len(plugintest.List(t, w.dir)) != 0 {
		t.Errorf("with the old configuration: %s, VMs %v", synced(vm), plugintest.List(t, w.dir))
	}
}

// TestAVMIsAdoptedByItsExternalName has a VM resource as after a restore: with the name, and without
// a state.
func TestAVMIsAdoptedByItsExternalName(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 3)
	for _, s := range w.states() {
		if err := w.kube.Delete(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
	}
	vm.Spec.ForProvider.Arguments = &extv1.JSON{Raw: []byte(`{"size": "small"}`)}
	if err := w.kube.Update(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	w.reconcile(vm, 1)
	if vms := plugintest.List(t, w.dir); len(vms) != 1 || vms[0].Size != "large" {
		t.Errorf("the VM was created again: %+v", vms)
	}
	if vm.Status.AtProvider.ProviderID != "fake://id-a" || len(w.states()) != 1 || len(plugintest.List(t, w.dir)) != 1 {
		t.Errorf("status %+v, %d states, VMs %v, Synced: %s", vm.Status.AtProvider, len(w.states()), plugintest.List(t, w.dir), synced(vm))
	}
	w.delete(vm)
	w.reconcile(vm, 3)
	if vm.UID != "" || len(plugintest.List(t, w.dir)) != 0 {
		t.Errorf("the adopted VM stays: %s", synced(vm))
	}
}

func TestAVMIsDeletedWithoutItsUserData(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 3)
	s := &corev1.Secret{}
	s.Namespace, s.Name = namespace, "user-data"
	if err := w.kube.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	w.reconcile(vm, 1)
	if !vm.Status.AtProvider.Running || vm.GetCondition(xpv2.TypeSynced).Status != corev1.ConditionTrue {
		t.Errorf("Synced: %s", synced(vm))
	}
	w.delete(vm)
	w.reconcile(vm, 3)
	if vm.UID != "" || len(plugintest.List(t, w.dir)) != 0 {
		t.Errorf("it stays: %s", synced(vm))
	}
}

func TestAStateOfAnotherVersionIsUpgraded(t *testing.T) {
	w := newWorld(t)
	vm := w.vm("a")
	w.reconcile(vm, 3)
	s := w.states()[0]
	r := &record{}
	if err := json.Unmarshal(s.Data[keyState], r); err != nil {
		t.Fatal(err)
	}
	r.Version, r.State = "1.0.0", plugin.SavedState{SchemaVersion: 0, Value: json.RawMessage(`{"id": "id-a", "name": "a", "flavor": "large"}`)}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	s.Data[keyState] = b
	if err := w.kube.Update(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	w.reconcile(vm, 1)
	if got := string(w.states()[0].Data[keyState]); !strings.Contains(got, `"size":"large"`) || !strings.Contains(got, `"version":"`+plugintest.Version+`"`) {
		t.Errorf("%s, state %s", synced(vm), got)
	}
}

// TestASlowCreationHoldsNoOther creates a slow VM and another one.
func TestASlowCreationHoldsNoOther(t *testing.T) {
	w := newWorld(t)
	slow, fast := w.vm("slow"), w.vm("fast")
	w.reconcile(fast, 0)
	var both sync.WaitGroup
	ended := make(chan string, 2)
	for _, vm := range []*v1alpha1.VirtualMachine{slow, fast} {
		both.Go(func() {
			_, _ = w.reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vm)})
			ended <- vm.Name
		})
	}
	if first := <-ended; first != "fast" {
		t.Errorf("%s ended first", first)
	}
	both.Wait()
	pids := map[int]bool{}
	for _, vm := range plugintest.List(t, w.dir) {
		pids[vm.PID] = true
	}
	if len(pids) != 1 {
		t.Errorf("%d processes made the VMs", len(pids))
	}
}

func TestWrongCredentialsAreNamedAndMasked(t *testing.T) {
	w := newWorld(t)
	s := &corev1.Secret{}
	s.Namespace, s.Name, s.Data = stateNamespace, "fake", map[string][]byte{"credentials": []byte(`{"token": "wrong"}`)}
	if err := w.kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	vm := w.vm("a")
	w.reconcile(vm, 1)
	if !strings.Contains(synced(vm), `ClusterProviderConfig "default"`) || !strings.Contains(synced(vm), "401 Unauthorized") {
		t.Errorf("Synced: %s", synced(vm))
	}
}

func TestIsUnknown(t *testing.T) {
	diagnostic := func(text string) error { return &plugin.Diagnostic{Summary: text} }
	for text, tc := range map[string]struct {
		err  error
		want bool
	}{
		"ARefusal":              {diagnostic("server limit exceeded (resource_limit_exceeded)"), false},
		"ARefusedConnection":    {diagnostic(`Post "https://c/v1/servers": dial tcp 10.0.0.1:443: connect: connection refused`), false},
		"AHostThatIsNotThere":   {diagnostic(`dial tcp: lookup c: no such host`), false},
		"ALostAnswer":           {diagnostic(`Post "https://c/v1/servers": unexpected EOF`), true},
		"ATimeout":              {diagnostic(`context deadline exceeded (Client.Timeout exceeded while awaiting headers)`), true},
		"AnErrorOfTheServer":    {diagnostic(`Expected HTTP response code [200 202] but got 503 instead`), true},
		"TwoErrorsOfWhichOneIs": {errors.Join(diagnostic("quota"), diagnostic("unexpected EOF")), true},
		"NoAnswerOfTheProvider": {&plugin.CallError{Call: "ApplyResourceChange", Err: errors.New("transport is closing")}, true},
		"WhatNobodyUnderstands": {errors.New("cannot decode the provider's value"), true},
		"TheLocalCloud":         {diagnostic("CreationUnknown: EOF"), true},
	} {
		if got := isUnknown(tc.err); got != tc.want {
			t.Errorf("%s: %t, want %t", text, got, tc.want)
		}
	}
}

func TestMask(t *testing.T) {
	secrets := []string{"#!/bin/sh\ntoken=abcdef.0123456789abcdef\n", "secret-of-the-cloud", "on"}
	for _, text := range []string{
		"got #!/bin/sh\ntoken=abcdef.0123456789abcdef\n.",
		`got "#!/bin/sh\ntoken=abcdef.0123456789abcdef\n".`,
		"got IyEvYmluL3NoCnRva2VuPWFiY2RlZi4wMTIzNDU2Nzg5YWJjZGVmCg==.",
		"line 2: token=abcdef.0123456789abcdef is wrong",
		"secret-of-the-cloud is wrong",
	} {
		got := mask(errors.New(text), secrets).Error()
		if !strings.Contains(got, masked) || slices.ContainsFunc([]string{"0123456789abcdef", "secret-of", "IyEv"}, func(s string) bool { return strings.Contains(got, s) }) {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := mask(errors.New("nothing is on"), secrets).Error(); got != "nothing is on" {
		t.Errorf("a short text is masked: %q", got)
	}
}
