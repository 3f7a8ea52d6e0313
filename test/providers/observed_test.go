package providers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/function/machinetest"
)

// The provider observes the VM with this atProvider, and the Machine is reconciled.
func shows(t *testing.T, p *machinetest.Plane, vm *unstructured.Unstructured, atProvider string) {
	t.Helper()
	machinetest.Set(vm, machinetest.Object(t, atProvider).Object, "status", "atProvider")
	machinetest.Condition(vm, "Synced", "True", "ReconcileSuccess", "")
	machinetest.Condition(vm, "Ready", "True", "Available", "")
	p.Reconcile()
}

func status(p *machinetest.Plane, path ...string) string {
	s, _, _ := unstructured.NestedString(p.Machine.Object, append([]string{"status"}, path...)...)
	return s
}

func TestWhatIsReadOfAVM(t *testing.T) {
	for cloud := range crds {
		t.Run(cloud, func(t *testing.T) {
			want := described[cloud].Observed
			p := newPlane(t, cloud, "")
			vm := rendered(t, p)
			// Drover chooses the name, so the name does not depend on the observation.
			shows(t, p, vm, `{}`)
			if id := status(p, "providerID"); id != "" || status(p, "phase") != "Provisioning" {
				t.Errorf("providerID %q before the cloud reported of the VM, phase %s", id, status(p, "phase"))
			}
			shows(t, p, p.Composed["vm"], want.text(t))
			if got := status(p, "providerID"); got != want.ProviderID {
				t.Errorf("providerID %q, want %q: %v", got, want.ProviderID, p.Machine.Object["status"])
			}
			if phase := status(p, "phase"); phase != "Joining" {
				t.Errorf("phase %s of a VM that runs", phase)
			}
			var got []string
			list, _, _ := unstructured.NestedSlice(p.Machine.Object, "status", "addresses")
			for _, a := range list {
				got = append(got, fmt.Sprintf("%s %s", a.(map[string]any)["type"], a.(map[string]any)["address"]))
			}
			if diff := cmp.Diff(want.Addresses, got); diff != "" {
				t.Errorf("addresses: -want +got:\n%s", diff)
			}
			p.Reconcile()
			if policies, _, _ := unstructured.NestedStringSlice(p.Composed["vm"].Object, "spec", "managementPolicies"); !cmp.Equal(policies, []string{"Observe", "Delete"}) {
				t.Errorf("a VM that is there has the policies %v", policies)
			}
		})
	}
}

func TestAVirtualMachineOfKubeVirt(t *testing.T) {
	p := newPlane(t, "kubevirt", "")
	vm := rendered(t, p)
	says := func(status string) { shows(t, p, p.Composed["vm"], "{manifest: {status: "+status+"}}") }

	machinetest.Condition(vm, "Synced", "False", "ReconcileError", `create failed: cannot apply object: admission webhook "virtualmachine-validator.kubevirt.io" denied the request: spec.template.spec.domain.devices.disks[0] must have a boot order > 0`)
	p.Reconcile()
	if code := status(p, "lastOperation", "errorCode"); code != "InvalidRequest" {
		t.Errorf("%s", code)
	}
	says(`{printableStatus: ErrorUnschedulable, created: true, conditions: [{type: Ready, status: "False", message: "0/3 nodes are available"}]}`)
	if code, phase := status(p, "lastOperation", "errorCode"), status(p, "phase"); code != "CapacityExhausted" || phase != "Provisioning" {
		t.Errorf("%s, phase %s", code, phase)
	}
	if id := status(p, "providerID"); id != "" {
		t.Errorf("providerID %q of a VirtualMachine that has no UID", id)
	}
	// The VirtualMachine exists before its guest starts.
	shows(t, p, p.Composed["vm"], `{manifest: {metadata: {uid: 3d2b0f5e-0000-4000-8000-000000000007}, status: {printableStatus: Starting, created: true, ready: false}}}`)
	if id, phase := status(p, "providerID"), status(p, "phase"); id != "kubevirt://workers-x7k2p-crf74" || phase != "Provisioning" {
		t.Errorf("before the VM is ready: providerID %q, phase %s", id, phase)
	}
	says(`{printableStatus: Running, created: true, ready: true}`)
	if id, phase := status(p, "providerID"), status(p, "phase"); id != "kubevirt://workers-x7k2p-crf74" || phase != "Joining" {
		t.Errorf("providerID %q, phase %s", id, phase)
	}
	// A restarting VM keeps its providerID.
	says(`{printableStatus: Starting, created: true, ready: false}`)
	if id := status(p, "providerID"); id != "kubevirt://workers-x7k2p-crf74" {
		t.Errorf("providerID %q", id)
	}
}

func TestAVMThatIsGoneOrWillNotComeBackFailsTheMachine(t *testing.T) {
	cases := map[string]struct{ cloud, atProvider, reason string }{
		"TerminatedAtAWS":        {"upjet-aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: shutting-down}`, "VMLost"},
		"NotBuiltByOpenStack":    {"openstack", `{id: 0e6c3d2f-7a0c-4b0e-9b1f-6f0f4f0c7f11, powerState: error}`, "VMFailed"},
		"StoppedSpotAtAWS":       {"upjet-aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: stopped, instanceLifecycle: spot}`, "VMFailed"},
		"StoppedByAUserAtAWS":    {"upjet-aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: stopped}`, ""},
		"PreemptedAtGoogle":      {"upjet-gcp", `{id: projects/my-project/zones/europe-west4-a/instances/w, currentStatus: TERMINATED}`, "VMFailed"},
		"PreemptedAtYandexCloud": {"yandex", `{id: fhmexample, status: stopped}`, "VMFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, tc.cloud, "", func(class *unstructured.Unstructured) {
				if tc.reason != "" {
					asSpot(t, tc.cloud)(class)
				}
			})
			shows(t, p, rendered(t, p), described[tc.cloud].Observed.text(t))
			shows(t, p, p.Composed["vm"], tc.atProvider)
			if got := status(p, "failureReason"); got != tc.reason {
				t.Errorf("%q, want %s: %v", got, tc.reason, p.Machine.Object["status"])
			}
		})
	}
}

// TestErrorsHaveTheirClass has error texts from the providers' conditions.
func TestErrorsHaveTheirClass(t *testing.T) {
	for cloud, d := range described {
		p := newPlane(t, cloud, "")
		rendered(t, p)
		for _, tc := range d.Errors {
			t.Run(cloud+"/"+tc.Class, func(t *testing.T) {
				machinetest.Condition(p.Composed["vm"], "LastAsyncOperation", "False", "AsyncCreateFailure", tc.Text)
				machinetest.Condition(p.Composed["vm"], "Synced", "False", "ReconcileError", tc.Text)
				p.Reconcile()
				if got := status(p, "lastOperation", "errorCode"); got != tc.Class {
					t.Errorf("%q is %s, want %s", tc.Text, got, tc.Class)
				}
			})
		}
	}
}
