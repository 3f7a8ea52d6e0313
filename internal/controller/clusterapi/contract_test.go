package clusterapi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/native/nativetest"
)

// docs is the page with the rules.
const docs = "../../../docs/providers/cluster-api.md"

// rules are the rules of the contract of InfraMachines that concern the owner of one, with their words in
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-machine, and those of InfraClusters.
var rules = []struct {
	rule string
	test func(*testing.T)
}{
	{"All resources MUST be namespace-scoped", isInTheNamespace},
	{"Providers MUST set the label of the contract on the CRD", choosesTheVersion},
	{"The name of the CRD MUST have the format of CalculateCRDName", namesTheCRD},
	{"A provider of another API group MUST grant its rights by aggregation", aggregatesRights},
	{"The providerID MUST surface on spec.providerID", readsTheProviderID},
	{"The InfraMachine MUST comply with spec.failureDomain of the Machine", placesIt},
	{"Addresses MUST surface in status.addresses", readsAddresses},
	{"Each InfraMachine MUST report that it is provisioned", waitsUntilProvisioned},
	{"Once provisioned is true, it never reverts", neverReverts},
	{"Providers SHOULD implement conditions, of which Ready is mirrored", mirrorsConditions},
	{"Terminal failures have no special treatment since v1beta2", failsByV1beta1},
	{"Providers SHOULD implement pausing", respectsPauses},
	{"The InfraMachine has a Machine as its owner, and that a Cluster", createsCompanionsFirst},
	{"The Cluster reports that its infrastructure is provisioned", waitsForTheInfraCluster},
	{"The Machine has spec.bootstrap.dataSecretName", publishesUserData},
	{"A deleted InfraMachine has a Machine as its owner until it is gone", deletesCompanionsLast},
	{"An externally managed InfraCluster is not changed", leavesTheInfraCluster},
}

// TestTheContract has a row for each rule, with each version of the contract.
func TestTheContract(t *testing.T) {
	for _, r := range rules {
		t.Run(r.rule, r.test)
	}
}

func TestTheDocsHaveEachRule(t *testing.T) {
	b, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(b), "| "+r.rule+" |") {
			t.Errorf("%s: no row for the rule %q", docs, r.rule)
		}
	}
	if rows := strings.Count(string(b), "MUST") + strings.Count(string(b), "SHOULD"); rows == 0 {
		t.Error("the page has no rules")
	}
}

// of returns a test for each contract.
func each(t *testing.T, f func(*testing.T, release)) {
	t.Helper()
	for _, c := range []release{{v1beta2, v1beta2}, {v1beta1, v1beta1}, {v1beta1, v1beta2}} {
		t.Run(fmt.Sprintf("%s with %s", c.contract, c.core), func(t *testing.T) { f(t, c) })
	}
}

// A release has the contract that a provider fulfills, and the version of Cluster API's own kinds that it reads.
type release struct{ contract, core contract }

func isRunning(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" }

// created returns the objects of a VM that runs.
func created(t *testing.T, c release, change func(*v1alpha1.VirtualMachine), check func(l *lab, vm *v1alpha1.VirtualMachine, infra, machine, cluster *unstructured.Unstructured)) {
	t.Helper()
	l, vm := newLab(c), newVM("vm-1", map[string]string{machinev1alpha1.TagInstallation: "i", machinev1alpha1.TagCluster: "team-a/production"})
	if change != nil {
		change(vm)
	}
	nativetest.Until(t, l.cloud(), vm, isRunning, func(vm *v1alpha1.VirtualMachine) {
		l.do(func() {
			check(l, vm, l.object(l.kind("LabMachine"), "vm-1"), l.object(c.core.coreKind("Machine"), "vm-1"), l.object(c.core.coreKind("Cluster"), clusterName))
		})
	})
}

func isInTheNamespace(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		created(t, c, nil, func(_ *lab, vm *v1alpha1.VirtualMachine, infra, machine, cluster *unstructured.Unstructured) {
			for _, o := range []*unstructured.Unstructured{infra, machine, cluster} {
				if o.GetNamespace() != vm.Namespace {
					t.Errorf("%s is in namespace %q", o.GetKind(), o.GetNamespace())
				}
			}
		})
	})
}

func choosesTheVersion(t *testing.T) {
	k := schema.GroupKind{Group: infraGroup, Kind: "FooMachine"}
	for name, tc := range map[string]struct {
		labels   map[string]string
		version  string
		contract contract
		want     string // part of the error
	}{
		"TheNewestContract":                   {map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2", v1beta2, ""},
		"TheNewestVersionOfAContract":         {map[string]string{"cluster.x-k8s.io/v1beta2": "v1_v1beta2_v1beta10"}, "v1", v1beta2, ""},
		"AVersionOfV1beta1":                   {map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta1_v1beta2"}, "v1beta2", v1beta1, ""},
		"AnEmptyLabel":                        {map[string]string{"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1"}, "v1", v1beta1, ""},
		"AContractThatIsGone":                 {map[string]string{"cluster.x-k8s.io/v1alpha4": "v1alpha4"}, "", "", "neither of the labels cluster.x-k8s.io/v1beta2 and cluster.x-k8s.io/v1beta1"},
		"ACRDOfAnotherSystemThatIsNoProvider": {nil, "", "", "the CRD foomachines.infrastructure.cluster.x-k8s.io has neither"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kindOf(k, tc.labels)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("error %v, want %q", err, tc.want)
				}
				return
			}
			if err != nil || got.Version != tc.version || got.contract != tc.contract {
				t.Errorf("%s of %s, %v; want %s of %s", got.Version, got.contract, err, tc.version, tc.contract)
			}
		})
	}
}

func namesTheCRD(t *testing.T) {
	for kind, want := range map[string]string{"AWSMachine": "awsmachines.", "Metal3Machine": "metal3machines.", "DevMachine": "devmachines.", "FooProxy": "fooproxies."} {
		if got := crdName(schema.GroupKind{Group: "g", Kind: kind}); got != want+"g" {
			t.Errorf("%s: %s, want %sg", kind, got, want)
		}
	}
}

func aggregatesRights(t *testing.T) {
	b, err := os.ReadFile("../../../package/provider-drover/rbac-provider-clusterapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		role := struct {
			Metadata        metav1.ObjectMeta
			AggregationRule struct{ ClusterRoleSelectors []metav1.LabelSelector }
		}{}
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, s := range role.AggregationRule.ClusterRoleSelectors {
			if s.MatchLabels["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
				return
			}
		}
	}
	t.Error("no ClusterRole aggregates those with the label cluster.x-k8s.io/aggregate-to-manager")
}

func readsTheProviderID(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		created(t, c, nil, func(_ *lab, vm *v1alpha1.VirtualMachine, infra, _, _ *unstructured.Unstructured) {
			if got := vm.Status.AtProvider.ProviderID; got != stringAt(infra, "spec", "providerID") || got == "" {
				t.Errorf("providerID %q", got)
			}
		})
	})
}

func placesIt(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		created(t, c, func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.FailureDomain = ptr.To("zone-a") },
			func(_ *lab, _ *v1alpha1.VirtualMachine, _, machine, _ *unstructured.Unstructured) {
				if got := stringAt(machine, "spec", "failureDomain"); got != "zone-a" {
					t.Errorf("spec.failureDomain of the Machine is %q", got)
				}
			})
	})
	for name, tc := range map[string]struct {
		contract contract
		object   string
		want     string
	}{
		"TheStatusHasIt":        {v1beta2, `{status: {failureDomain: zone-a}, spec: {failureDomain: zone-b}}`, "zone-a"},
		"InV1beta1TheSpecHasIt": {v1beta1, `{spec: {failureDomain: zone-b}}`, "zone-b"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(tc.contract, parse(t, tc.object)).failureDomain; got != tc.want {
				t.Errorf("failure domain %q, want %q", got, tc.want)
			}
		})
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func readsAddresses(t *testing.T) {
	got := read(v1beta2, parse(t, `{status: {addresses: [{type: InternalIP, address: 10.0.0.7}, {type: ExternalDNS, address: vm.example.org}, {type: Other, address: x}, {type: Hostname}, text]}}`)).addresses
	if want := "[{InternalIP 10.0.0.7} {ExternalDNS vm.example.org}]"; fmt.Sprint(got) != want {
		t.Errorf("addresses %v, want %s", got, want)
	}
}

func waitsUntilProvisioned(t *testing.T) {
	for name, tc := range map[string]struct {
		contract contract
		object   string
		want     bool
	}{
		"Provisioned":              {v1beta2, `{status: {initialization: {provisioned: true}}}`, true},
		"Not":                      {v1beta2, `{status: {initialization: {provisioned: false}}}`, false},
		"ReadyOfTheOldContract":    {v1beta2, `{status: {ready: true}}`, false},
		"InV1beta1Ready":           {v1beta1, `{status: {ready: true}}`, true},
		"InV1beta1NotProvisioned":  {v1beta1, `{status: {initialization: {provisioned: true}}}`, false},
		"AFieldOfAnotherType":      {v1beta2, `{status: {initialization: {provisioned: "true"}}}`, false},
		"AStatusThatIsNotYetThere": {v1beta2, `{spec: {providerID: x}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(tc.contract, parse(t, tc.object)).provisioned; got != tc.want {
				t.Errorf("provisioned %t", got)
			}
		})
	}
}

func neverReverts(t *testing.T) {
	l, vm := newLab(release{v1beta2, v1beta2}), newVM("vm-1", nil)
	nativetest.Until(t, l.cloud(), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if !isRunning(vm) {
			return false
		}
		l.do(func() {
			o := l.object(l.kind("LabMachine"), "vm-1")
			l.makes = false
			o.Object["status"] = map[string]any{}
			l.must(l.inner.Status().Update(t.Context(), o))
		})
		time.Sleep(5 * time.Minute)
		return true
	}, func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
			t.Errorf("a VM that ran has %+v", c)
		}
	})
}

func mirrorsConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		problem string // beginning
		waits   string
	}{
		"AWaitIsNoProblem":                   {`{status: {conditions: [{type: Ready, status: "False", reason: NotReady, message: waiting for the volume}]}}`, "", "Ready: NotReady waiting for the volume"},
		"WordsOfACloudWithoutRoom":           {`{status: {conditions: [{type: Ready, status: "False", reason: InstanceProvisionFailed, message: "InsufficientInstanceCapacity: try another zone"}]}}`, "CapacityExhausted: Ready: InstanceProvisionFailed: ", "Ready: InstanceProvisionFailed"},
		"WordsOfAQuota":                      {`{status: {conditions: [{type: VM, status: "False", reason: Failed, message: "Quota exceeded for cores"}]}}`, "QuotaExceeded: VM: ", "VM: Failed"},
		"AnErrorOfTheOldContract":            {`{status: {conditions: [{type: Ready, status: "False", severity: Error, reason: Failed, message: broken}]}}`, "Transient: Ready: Failed: broken", "Ready: Failed"},
		"AnErrorBehindItsSummary":            {`{status: {conditions: [{type: Ready, status: "False", severity: Error, reason: Failed, message: 0 of 2 completed}, {type: InstanceReady, status: "False", severity: Error, reason: Failed, message: "InsufficientInstanceCapacity: no"}]}}`, "CapacityExhausted: InstanceReady: Failed: Insuff", "Ready: Failed"},
		"AnErrorWithoutAClass":               {`{status: {conditions: [{type: Ready, status: "False", severity: Error, reason: Failed, message: 0 of 2 completed}, {type: Disk, status: "False", severity: Error, reason: Failed, message: broken}]}}`, "Transient: Disk: Failed: broken", "Ready: Failed"},
		"AnInformationOfTheOldContract":      {`{status: {conditions: [{type: Ready, status: "False", severity: Info, reason: WaitingForQuota, message: quota}]}}`, "", "Ready: WaitingForQuota"},
		"AConditionThatIsTrue":               {`{status: {conditions: [{type: QuotaExceeded, status: "True", reason: Quota, message: quota}]}}`, "", "its provider has not reported"},
		"ConditionsOfAProvisionedVMAreFacts": {`{status: {initialization: {provisioned: true}, conditions: [{type: Ready, status: "False", reason: Failed, message: quota}]}}`, "", "Ready: Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := read(v1beta2, parse(t, tc.object))
			if tc.problem == "" && r.problem != "" || !strings.HasPrefix(r.problem, tc.problem) {
				t.Errorf("problem %q, want %q", r.problem, tc.problem)
			}
			if !strings.HasPrefix(r.waitsFor(), tc.waits) {
				t.Errorf("waits for %q, want %q", r.waitsFor(), tc.waits)
			}
		})
	}
}

func failsByV1beta1(t *testing.T) {
	const failed = `{status: {failureReason: CreateError, failureMessage: "InsufficientInstanceCapacity"}}`
	if got := read(v1beta1, parse(t, failed)).failed; got != "CreateError: InsufficientInstanceCapacity" {
		t.Errorf("failed %q", got)
	}
	if got := read(v1beta2, parse(t, failed)).failed; got != "" {
		t.Errorf("the contract v1beta2 has no terminal failures, and failed is %q", got)
	}
	l, vm := newLab(release{v1beta1, v1beta1}), newVM("vm-1", nil)
	l.makes = false
	nativetest.Until(t, l.cloud(), vm, func(vm *v1alpha1.VirtualMachine) bool {
		l.do(func() {
			if o := l.object(l.kind("LabMachine"), "vm-1"); o != nil {
				o.Object["status"] = map[string]any{"failureReason": "CreateError", "failureMessage": "no capacity"}
				l.must(l.inner.Status().Update(t.Context(), o))
			}
		})
		return vm.Status.AtProvider.State == string(native.StateFailed)
	}, func(vm *v1alpha1.VirtualMachine) {
		if got := vm.Status.AtProvider.StateText; got != "CreateError: no capacity" {
			t.Errorf("state text %q", got)
		}
	})
}

func respectsPauses(t *testing.T) {
	for name, object := range map[string]string{
		"ByTheAnnotation": `{metadata: {annotations: {cluster.x-k8s.io/paused: ""}}}`,
		"ByTheCondition":  `{status: {conditions: [{type: Paused, status: "True", reason: Paused, message: Cluster spec.paused is set to true}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r := read(v1beta2, parse(t, object)); !r.paused || !strings.Contains(r.waitsFor(), "paused") {
				t.Errorf("paused %t, waits for %q", r.paused, r.waitsFor())
			}
		})
	}
	if r := read(v1beta2, parse(t, `{status: {conditions: [{type: Paused, status: "False", reason: NotPaused}]}}`)); r.paused {
		t.Error("NotPaused counts as paused")
	}
	// A paused InfraMachine is neither made nor deleted, and the status names the cause.
	l, vm := newLab(release{v1beta2, v1beta2}), newVM("vm-1", nil)
	vm.Spec.ForProvider.InfraMachine.Metadata.Annotations = map[string]string{annotationPaused: ""}
	nativetest.Until(t, l.cloud(), vm, func(vm *v1alpha1.VirtualMachine) bool {
		at := vm.Status.AtProvider
		return at.InfraMachine != nil && at.InfraMachine.Paused && strings.HasPrefix(at.Error, "Transient: paused: ")
	}, func(vm *v1alpha1.VirtualMachine) {
		a, err := l.cloud().Provider.Open(l.cloud().Config, l.credentials())
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Delete(t.Context(), vm); err == nil || !strings.Contains(err.Error(), annotationPaused) {
			t.Errorf("the deletion of a paused InfraMachine: %v", err)
		}
		l.do(func() {
			if o := l.object(l.kind("LabMachine"), "vm-1"); o == nil || o.GetDeletionTimestamp() != nil || len(l.vms) > 0 {
				t.Errorf("a paused InfraMachine was touched: %v, VMs %v", o, l.vms)
			}
		})
	})
}

func createsCompanionsFirst(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		created(t, c, nil, func(l *lab, vm *v1alpha1.VirtualMachine, infra, machine, cluster *unstructured.Unstructured) {
			if want := []string{"LabCluster", "Cluster", "Machine", "*v1.Secret", "LabMachine"}; !slices.Equal(append([]string{"LabCluster"}, l.created...), want) {
				t.Errorf("created %q, want %q", l.created, want[1:])
			}
			owner := metav1.GetControllerOf(infra)
			if owner == nil || owner.UID != machine.GetUID() || owner.APIVersion != "cluster.x-k8s.io/"+string(c.core) || owner.Kind != "Machine" {
				t.Errorf("the owner of the InfraMachine is %+v", owner)
			}
			for _, o := range []*unstructured.Unstructured{infra, machine} {
				if got := o.GetLabels()[labelCluster]; got != clusterName {
					t.Errorf("the label %s of the %s is %q", labelCluster, o.GetKind(), got)
				}
			}
			ref, _, _ := unstructured.NestedStringMap(machine.Object, "spec", "infrastructureRef")
			want := "map[apiGroup:" + infraGroup + " kind:LabMachine name:vm-1]"
			if c.core == v1beta1 {
				want = "map[apiVersion:" + infraGroup + "/v1 kind:LabMachine name:vm-1 namespace:ns]"
			}
			if fmt.Sprint(ref) != want {
				t.Errorf("spec.infrastructureRef of the Machine is %v, want %s", ref, want)
			}
			if got := stringAt(machine, "spec", "clusterName") + " " + stringAt(machine, "spec", "version"); got != "target v1.35.4" {
				t.Errorf("clusterName and version of the Machine are %q", got)
			}
			if infra.GetAnnotations()[machinev1alpha1.TagCluster] != "team-a/production" || infra.GetLabels()[machinev1alpha1.TagInstallation] != "i" {
				t.Errorf("the tags of the InfraMachine are %v and %v", infra.GetAnnotations(), infra.GetLabels())
			}
			for _, o := range []*unstructured.Unstructured{machine, cluster} {
				if conditions := read(c.core, o).conditions; len(conditions) == 0 || conditions[0].Type != conditionTruth || !strings.Contains(conditions[0].Message, "Drover") && !strings.Contains(conditions[0].Message, "drover") {
					t.Errorf("the status of the %s does not report who keeps it: %+v", o.GetKind(), conditions)
				}
			}
			for _, o := range []*unstructured.Unstructured{infra, machine, cluster} {
				for _, ref := range o.GetOwnerReferences() {
					if ref.UID == vm.UID {
						t.Errorf("the %s is owned by the VirtualMachine: a foreground deletion would delete it before the drain", o.GetKind())
					}
				}
			}
			host, _, _ := unstructured.NestedString(cluster.Object, "spec", "controlPlaneEndpoint", "host")
			if host != "10.0.0.1" {
				t.Errorf("the endpoint of the Cluster is %q", host)
			}
		})
	})
}

func waitsForTheInfraCluster(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		l, vm := newLab(c), newVM("vm-1", nil)
		infra := l.object(l.kind("LabCluster"), clusterName)
		infra.Object["status"] = map[string]any{}
		l.must(l.inner.Status().Update(t.Context(), infra))
		asked := false
		nativetest.Until(t, l.cloud(), vm, func(vm *v1alpha1.VirtualMachine) bool {
			if strings.HasPrefix(vm.Status.AtProvider.Error, "Transient: waiting for LabCluster target") && !asked {
				asked = true
				time.Sleep(10 * time.Minute)
				l.do(func() {
					if len(l.vms) > 0 || isClusterReady(c.core, l.object(c.core.coreKind("Cluster"), clusterName)) {
						t.Error("the Cluster was reported as ready before its InfraCluster was")
					}
					l.provision(l.object(l.kind("LabCluster"), clusterName))
				})
			}
			return isRunning(vm)
		}, nil)
		if !asked {
			t.Error("the status does not name the InfraCluster")
		}
	})
}

func publishesUserData(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		created(t, c, nil, func(l *lab, _ *v1alpha1.VirtualMachine, _, machine, _ *unstructured.Unstructured) {
			s := &corev1.Secret{}
			l.must(l.inner.Get(t.Context(), types.NamespacedName{Namespace: nativetest.Namespace, Name: stringAt(machine, "spec", "bootstrap", "dataSecretName")}, s))
			if string(s.Data["value"]) != nativetest.UserData || string(s.Data["format"]) != "cloud-config" || s.Type != "cluster.x-k8s.io/secret" || s.Labels[labelCluster] != clusterName || !metav1.IsControlledBy(s, machine) {
				t.Errorf("the Secret is of type %s, with labels %v, format %s and owners %v", s.Type, s.Labels, s.Data["format"], s.OwnerReferences)
			}
		})
	})
	for data, want := range map[string]string{
		"#cloud-config\n": "cloud-config", "#!/bin/sh\n": "cloud-config",
		"\n {\"ignition\": {\"version\": \"3.4.0\"}}": "ignition", `{"other": 1}`: "cloud-config",
	} {
		if got := formatOf(data); got != want {
			t.Errorf("the format of %q is %s, want %s", data, got, want)
		}
	}
}

func deletesCompanionsLast(t *testing.T) {
	each(t, func(t *testing.T, c release) {
		l, vm := newLab(c), newVM("vm-1", nil)
		nativetest.Until(t, l.cloud(), vm, isRunning, func(vm *v1alpha1.VirtualMachine) {
			a, err := l.cloud().Provider.Open(l.cloud().Config, l.credentials())
			if err != nil {
				t.Fatal(err)
			}
			vm.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
			var trace []string
			for range 20 {
				got, err := a.Get(t.Context(), vm, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				if state := string(got.State); len(trace) == 0 || trace[len(trace)-1] != state {
					trace = append(trace, state)
				}
				if got.State == native.StateNone {
					break
				}
				if got.State != native.StateDeleting {
					if err := a.Delete(t.Context(), vm); err != nil {
						t.Fatal(err)
					}
				}
				l.do(func() {
					if l.object(l.kind("LabMachine"), "vm-1") != nil && l.object(c.core.coreKind("Machine"), "vm-1") == nil {
						t.Error("the Machine is gone before its InfraMachine")
					}
				})
				time.Sleep(time.Second)
			}
			if want := "[Running Deleting Incomplete ]"; fmt.Sprint(trace) != want {
				t.Errorf("states %v, want %s", trace, want)
			}
			if left := l.cloud().Leftovers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	})
}

func leavesTheInfraCluster(t *testing.T) {
	created(t, release{v1beta2, v1beta2}, nil, func(l *lab, _ *v1alpha1.VirtualMachine, _, _, cluster *unstructured.Unstructured) {
		infra := l.object(l.kind("LabCluster"), clusterName)
		if refs := infra.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != cluster.GetUID() || refs[0].Controller != nil {
			t.Errorf("the owners of the InfraCluster are %+v", refs)
		}
		if got := fmt.Sprint(infra.Object["spec"]); got != "map[controlPlaneEndpoint:map[host:10.0.0.1 port:6443]]" {
			t.Errorf("the spec of the InfraCluster is %s", got)
		}
	})
}

// TestWhatIsRefused has the causes for which nothing is created.
func TestWhatIsRefused(t *testing.T) {
	lease := func(held time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: v1alpha1.LeaseOfClusterAPI}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("capi-controller-manager-0"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: &metav1.MicroTime{Time: time.Now().Add(held)},
		}}
	}
	for name, tc := range map[string]struct {
		lab    func(*testing.T, *lab)
		change func(*v1alpha1.VirtualMachine)
		want   string
	}{
		"TheControllersOfClusterAPI": {func(t *testing.T, l *lab) { l.must(l.inner.Create(t.Context(), lease(time.Hour))) }, nil, "InvalidRequest: the controllers of Cluster API run in the cluster (Lease capi-system/controller-leader-election-capi is held)"},
		"AClusterOfClusterAPI": {func(t *testing.T, l *lab) {
			l.must(l.inner.Create(t.Context(), newObject(l.core.coreKind("Cluster"), nativetest.Namespace, clusterName)))
		}, nil, "InvalidRequest: spec.clusterName: the Cluster ns/target exists and has no label clusterapi.drover.dev/kept-by-drover=true"},
		"NoInfraCluster": {func(t *testing.T, l *lab) {
			l.must(l.inner.Delete(t.Context(), l.object(l.kind("LabCluster"), clusterName)))
		}, nil, `InvalidRequest: spec.infraCluster: namespace ns has no LabCluster "target"`},
		"AKindThatTheConfigurationDoesNotList": {nil, func(vm *v1alpha1.VirtualMachine) { vm.Spec.ForProvider.InfraMachine.Kind = "AWSMachine" }, `InvalidRequest: forProvider.infraMachine.kind: invalid value "AWSMachine" of infrastructure.cluster.x-k8s.io: must be one of the kinds of spec.infraMachineKinds of the configuration: [{infrastructure.cluster.x-k8s.io LabMachine}]`},
		"AnObjectOfAnotherOwner": {func(t *testing.T, l *lab) {
			l.must(l.inner.Create(t.Context(), newObject(l.kind("LabMachine"), nativetest.Namespace, "vm-1")))
		}, nil, `InvalidRequest: forProvider.name: invalid value "vm-1": LabMachine ns/vm-1 exists and has another owner: its label clusterapi.drover.dev/virtual-machine is not `},
	} {
		t.Run(name, func(t *testing.T) {
			l, vm := newLab(release{v1beta2, v1beta2}), newVM("vm-1", nil)
			if tc.lab != nil {
				tc.lab(t, l)
			}
			if tc.change != nil {
				tc.change(vm)
			}
			nativetest.Until(t, l.cloud(), vm, func(vm *v1alpha1.VirtualMachine) bool {
				return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, tc.want)
			}, func(*v1alpha1.VirtualMachine) {
				l.do(func() {
					if len(l.vms) > 0 {
						t.Errorf("VMs %v were made", l.vms)
					}
				})
			})
		})
	}
	// A Lease that is not renewed is that of controllers that were stopped.
	if v1alpha1.IsHeld(lease(-time.Minute).Spec, time.Now()) {
		t.Error("an expired Lease counts as held")
	}
	if !v1alpha1.IsHeld(lease(-10*time.Second).Spec, time.Now()) {
		t.Error("a Lease between two renewals does not count as held")
	}
	l, vm := newLab(release{v1beta2, v1beta2}), newVM("vm-1", nil)
	nativetest.Until(t, l.cloud(), vm, isRunning, nil)
}

func TestAKubeconfigIsRequiredWithASecret(t *testing.T) {
	l := newLab(release{v1beta2, v1beta2})
	p := provider(l.dial, time.Now)
	if _, err := p.Open(l.cloud().Config, credentials{}); err == nil || !strings.Contains(err.Error(), "kubeconfig: must not be empty") {
		t.Errorf("an empty kubeconfig: %v", err)
	}
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Credentials.Source = v1alpha1.CredentialsInjectedIdentity
	if _, err := p.Open(pc, credentials{}); err != nil {
		t.Error(err)
	}
}
