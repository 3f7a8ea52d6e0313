package providers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/drover-dev/drover/internal/function/machinetest"
)

// observed has the status.atProvider that a provider reports for a VM that it created, and the
// fields that the Machine's status has then. They equal those that the cloud's controller manager
// writes to the Node, byte for byte.
var observed = map[string]struct {
	atProvider string
	providerID string
	addresses  []string
}{
	"alibaba": {
		atProvider: `{place: "account 1234567890123456, region cn-hangzhou", providerID: cn-hangzhou.i-bp1example, state: Running, stateText: Running, hostName: workers-x7k2p-crf74, addresses: [{type: InternalIP, address: 10.0.0.7}, {type: InternalIP, address: "2408:4005:3b2:5a00::7"}, {type: ExternalIP, address: 203.0.113.7}]}`,
		providerID: "cn-hangzhou.i-bp1example",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 2408:4005:3b2:5a00::7", "ExternalIP 203.0.113.7", "Hostname workers-x7k2p-crf74"},
	},
	"aws": {
		atProvider: `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: running, privateIp: 10.0.0.7, secondaryPrivateIps: [10.0.0.8, 10.0.0.9], ipv6Addresses: ["2001:db8::7"], publicIp: "", privateDns: ip-10-0-0-7.eu-west-1.compute.internal}`,
		providerID: "aws:///eu-west-1a/i-0abc",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 10.0.0.8", "InternalIP 10.0.0.9", "InternalIP 2001:db8::7", "InternalDNS ip-10-0-0-7.eu-west-1.compute.internal", "Hostname workers-x7k2p-crf74"},
	},
	"azure": {
		atProvider: `{id: /subscriptions/0B1F6471-1BF0-4DDA-AEC3-CB9272F09590/resourceGroups/Production-Nodes/providers/Microsoft.Compute/virtualMachines/workers-x7k2p-crf74, publicIpAddresses: [203.0.113.7], privateIpAddresses: [10.0.0.7]}`,
		providerID: "azure:///subscriptions/0b1f6471-1bf0-4dda-aec3-cb9272f09590/resourceGroups/production-nodes/providers/Microsoft.Compute/virtualMachines/workers-x7k2p-crf74",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP fd00::7", "ExternalIP 203.0.113.7", "Hostname workers-x7k2p-crf74"},
	},
	"gcp": {
		atProvider: `{id: projects/my-project/zones/europe-west4-a/instances/workers-x7k2p-crf74, currentStatus: RUNNING, networkInterface: [{networkIp: 10.0.0.7, accessConfig: [{natIp: 203.0.113.7}], ipv6AccessConfig: [{externalIpv6: "2001:db8::7"}]}, {networkIp: 10.1.0.7, ipv6Address: "fd20:db8::7"}]}`,
		providerID: "gce://my-project/europe-west4-a/workers-x7k2p-crf74",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 10.1.0.7", "InternalIP fd20:db8::7", "ExternalIP 203.0.113.7", "ExternalIP 2001:db8::7", "Hostname workers-x7k2p-crf74"},
	},
	"hcloud": {
		atProvider: `{id: "42", status: running, name: workers-x7k2p-crf74, ipv4Address: 203.0.113.7, ipv6Address: "2001:db8::1", network: [{networkId: 4711, ip: 10.0.0.7}]}`,
		providerID: "hcloud://42",
		addresses:  []string{"InternalIP 10.0.0.7", "ExternalIP 203.0.113.7", "ExternalIP 2001:db8::1", "Hostname workers-x7k2p-crf74"},
	},
	"openstack": {
		atProvider: `{id: 0e6c3d2f-7a0c-4b0e-9b1f-6f0f4f0c7f11, powerState: active, name: workers-x7k2p-crf74, network: [{name: nodes, fixedIpV4: 10.0.0.7, fixedIpV6: "2001:db8::7"}, {name: storage, fixedIpV4: 10.1.0.7}]}`,
		providerID: "openstack:///0e6c3d2f-7a0c-4b0e-9b1f-6f0f4f0c7f11",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 2001:db8::7", "InternalIP 10.1.0.7", "Hostname workers-x7k2p-crf74"},
	},
	"digitalocean": {
		atProvider: `{id: "245738308", status: active, name: workers-x7k2p-crf74, ipv4Address: 203.0.113.7, ipv4AddressPrivate: 10.0.0.7}`,
		providerID: "digitalocean://245738308",
		addresses:  []string{"InternalIP 10.0.0.7", "ExternalIP 203.0.113.7", "Hostname workers-x7k2p-crf74"},
	},
	"opentofu": {
		atProvider: `{checksum: 0a1b, outputs: {provider_id: cn-hangzhou.i-bp1example, addresses: [{type: InternalIP, address: 10.0.0.7}, {type: Hostname, address: workers-x7k2p-crf74}]}}`,
		providerID: "cn-hangzhou.i-bp1example",
		addresses:  []string{"InternalIP 10.0.0.7", "Hostname workers-x7k2p-crf74"},
	},
	"metalstack": {
		atProvider: `{place: "project b7c1f2a0-0000-4000-8000-000000000001, created 2024-05-06T07:08:09Z", providerID: "metal://fra-equ01/e0ab02d2-27cd-5a5e-8efc-080ba80cf258", state: Running, stateText: Phoned Home, machineID: e0ab02d2-27cd-5a5e-8efc-080ba80cf258, allocationUUID: 8a2b1c70-0000-4000-8000-000000000001, hostname: workers-x7k2p-crf74, addresses: [{type: InternalIP, address: 10.0.0.7}, {type: ExternalIP, address: 203.0.113.7}]}`,
		providerID: "metal://fra-equ01/e0ab02d2-27cd-5a5e-8efc-080ba80cf258",
		addresses:  []string{"InternalIP 10.0.0.7", "ExternalIP 203.0.113.7", "Hostname workers-x7k2p-crf74"},
	},
	"nutanix": {
		atProvider: `{place: Prism Central 00060000-0000-0000-0000-00000000c000, providerID: "nutanix://9d199d16-1c8e-4ddf-40f5-20a2d78aa918", state: Running, stateText: "ON", uuid: 9d199d16-1c8e-4ddf-40f5-20a2d78aa918, addresses: [{type: InternalIP, address: 10.0.0.7}], learnedAddresses: [{type: InternalIP, address: "2001:db8::7"}]}`,
		providerID: "nutanix://9d199d16-1c8e-4ddf-40f5-20a2d78aa918",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 2001:db8::7"},
	},
	"vcd": {
		atProvider: `{place: "organization urn:vcloud:org:a93c9db9-7471-3192-8d09-a8f7eeda85f9", providerID: "vmware-cloud-director://urn:vcloud:vm:9d199d16-1c8e-4ddf-40f5-20a2d78aa918", state: Running, stateText: POWERED_ON, id: "urn:vcloud:vm:9d199d16-1c8e-4ddf-40f5-20a2d78aa918", addresses: [{type: InternalIP, address: 10.0.0.7}], guestAddresses: [{type: InternalIP, address: "2001:db8::7"}]}`,
		providerID: "vmware-cloud-director://urn:vcloud:vm:9d199d16-1c8e-4ddf-40f5-20a2d78aa918",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 2001:db8::7"},
	},
	"proxmox": {
		atProvider: `{place: cluster lab, providerID: "proxmox://0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11", state: Running, stateText: running, vmid: 100, node: pve2, addresses: [{type: InternalIP, address: 10.0.0.7}]}`,
		providerID: "proxmox://0b0e7d2c-6a52-4a0b-9b53-1f6f6c8c9d11",
		addresses:  []string{"InternalIP 10.0.0.7"},
	},
	"scaleway": {
		atProvider: `{id: fr-par-1/11111111-2222-3333-4444-555555555555, state: started, name: workers-x7k2p-crf74, privateIps: [{address: 10.0.0.7}], publicIps: [{address: 203.0.113.7}]}`,
		providerID: "scaleway://instance/fr-par-1/11111111-2222-3333-4444-555555555555",
		addresses:  []string{"InternalIP 10.0.0.7", "ExternalIP 203.0.113.7", "Hostname workers-x7k2p-crf74"},
	},
	"terraform": {
		atProvider: `{provider: hetznercloud/hcloud 1.68.0, type: hcloud_server, providerID: "hcloud://42", running: true, addresses: [{type: InternalIP, address: 10.0.0.7}, {type: Hostname, address: workers-x7k2p-crf74}]}`,
		providerID: "hcloud://42",
		addresses:  []string{"InternalIP 10.0.0.7", "Hostname workers-x7k2p-crf74"},
	},
	"yandex": {
		atProvider: `{id: fhmexample, status: running, name: workers-x7k2p-crf74, fqdn: workers-x7k2p-crf74.ru-central1.internal, networkInterface: [{ipAddress: 10.0.0.7, natIpAddress: 203.0.113.7, ipv6Address: "2001:db8::7"}, {ipAddress: 10.1.0.7}]}`,
		providerID: "yandex://fhmexample",
		addresses:  []string{"InternalIP 10.0.0.7", "InternalIP 10.1.0.7", "InternalIP 2001:db8::7", "ExternalIP 203.0.113.7", "InternalDNS workers-x7k2p-crf74.ru-central1.internal", "Hostname workers-x7k2p-crf74"},
	},
}

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
			want := observed[cloud]
			p := newPlane(t, cloud, "")
			vm := rendered(t, p)
			// Drover chooses the name, so the name does not depend on the observation.
			shows(t, p, vm, `{}`)
			if id := status(p, "providerID"); id != "" || status(p, "phase") != "Provisioning" {
				t.Errorf("providerID %q before the cloud reported of the VM, phase %s", id, status(p, "phase"))
			}
			shows(t, p, p.Composed["vm"], want.atProvider)
			if got := status(p, "providerID"); got != want.providerID {
				t.Errorf("providerID %q, want %q: %v", got, want.providerID, p.Machine.Object["status"])
			}
			if phase := status(p, "phase"); phase != "Joining" {
				t.Errorf("phase %s of a VM that runs", phase)
			}
			var got []string
			list, _, _ := unstructured.NestedSlice(p.Machine.Object, "status", "addresses")
			for _, a := range list {
				got = append(got, fmt.Sprintf("%s %s", a.(map[string]any)["type"], a.(map[string]any)["address"]))
			}
			if diff := cmp.Diff(want.addresses, got); diff != "" {
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
		"TerminatedAtAWS":        {"aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: shutting-down}`, "VMLost"},
		"NotBuiltByOpenStack":    {"openstack", `{id: 0e6c3d2f-7a0c-4b0e-9b1f-6f0f4f0c7f11, powerState: error}`, "VMFailed"},
		"StoppedSpotAtAWS":       {"aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: stopped, instanceLifecycle: spot}`, "VMFailed"},
		"StoppedByAUserAtAWS":    {"aws", `{id: i-0abc, availabilityZone: eu-west-1a, instanceState: stopped}`, ""},
		"PreemptedAtGoogle":      {"gcp", `{id: projects/my-project/zones/europe-west4-a/instances/w, currentStatus: TERMINATED}`, "VMFailed"},
		"PreemptedAtYandexCloud": {"yandex", `{id: fhmexample, status: stopped}`, "VMFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, tc.cloud, "", func(class *unstructured.Unstructured) {
				if tc.reason != "" {
					asSpot(t, tc.cloud)(class)
				}
			})
			shows(t, p, rendered(t, p), observed[tc.cloud].atProvider)
			shows(t, p, p.Composed["vm"], tc.atProvider)
			if got := status(p, "failureReason"); got != tc.reason {
				t.Errorf("%q, want %s: %v", got, tc.reason, p.Machine.Object["status"])
			}
		})
	}
}

// TestErrorsHaveTheirClass has error texts from the providers' conditions.
func TestErrorsHaveTheirClass(t *testing.T) {
	const aws = "async create failed: failed to create the resource: [{0 creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 400, RequestID: 0f1e, api error %s  []}]"
	const gcp = "async create failed: failed to create the resource: [{0 Error creating instance: %s  []}]"
	const do = "async create failed: apply failed: Error creating droplet: POST https://api.digitalocean.com/v2/droplets: %s: "
	const yc = "async create failed: apply failed: Error while requesting API to create instance: server-request-id = 0f1e client-request-id = 2d3c rpc error: code = %s: "
	const hc = `create failed: ClusterProviderConfig "default": failed to create the resource: [{0 %s  []}]`
	cases := []struct{ cloud, text, class string }{
		{"openstack", fmt.Sprintf(hc, `Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST http://c/v2.1/servers], but got 403 instead: {"forbidden": {"code": 403, "message": "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}`), "QuotaExceeded"},
		{"openstack", fmt.Sprintf(hc, `Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST http://c/v2.1/servers], but got 403 instead: {"forbidden": {"code": 403, "message": "Policy doesn't allow os_compute_api:servers:create to be performed."}}`), "PermissionDenied"},
		{"openstack", fmt.Sprintf(hc, `Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST http://c/v2.1/servers], but got 400 instead: {"badRequest": {"code": 400, "message": "The requested availability zone is not available"}}`), "InvalidRequest"},
		{"openstack", fmt.Sprintf(hc, "Unable to find flavor with name huge"), "InvalidRequest"},
		{"openstack", fmt.Sprintf(hc, `Error creating openstack_networking_port_v2: Expected HTTP response code [201 202] when accessing [POST https://n/v2.0/ports], but got 409 instead: {"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['port'].", "detail": ""}}`), "QuotaExceeded"},
		{"openstack", fmt.Sprintf(hc, `Error creating openstack_networking_port_v2: Expected HTTP response code [201 202] when accessing [POST https://n/v2.0/ports], but got 409 instead: {"NeutronError": {"type": "IpAddressGenerationFailure", "message": "No more IP addresses available on network n.", "detail": ""}}`), "CapacityExhausted"},
		{"openstack", fmt.Sprintf(hc, `Error creating openstack_networking_port_v2: Expected HTTP response code [201 202] when accessing [POST https://n/v2.0/ports], but got 403 instead: {"NeutronError": {"type": "PolicyNotAuthorized", "message": "rule:create_port is disallowed by policy", "detail": ""}}`), "PermissionDenied"},
		{"openstack", fmt.Sprintf(hc, `Error creating openstack_networking_port_v2: Expected HTTP response code [201 202] when accessing [POST https://n/v2.0/ports], but got 409 instead: {"NeutronError": {"type": "AddressPairAndPortSecurityRequired", "message": "Port Security must be enabled in order to have allowed address pairs on a port.", "detail": ""}}`), "InvalidRequest"},
		{"openstack", fmt.Sprintf(hc, `Error creating openstack_networking_floatingip_v2: Expected HTTP response code [201] when accessing [POST https://n/v2.0/floatingips], but got 400 instead: {"NeutronError": {"type": "ExternalIpAddressExhausted", "message": "Unable to find any IP address on external network n.", "detail": ""}}`), "CapacityExhausted"},
		{"openstack", fmt.Sprintf(hc, `No network found with name: public`), "InvalidRequest"},
		{"openstack", fmt.Sprintf(hc, "Error trying to get network information from the Network API: Could not find any matching network for name none"), "InvalidRequest"},
		{"openstack", `connect failed: ClusterProviderConfig "default": cannot get terraform setup: cannot log in at https://k/v3: Expected HTTP response code [201 300] when accessing [POST https://k/v3/auth/tokens], but got 401 instead: {}`, "PermissionDenied"},
		{"openstack", fmt.Sprintf(hc, `Error creating OpenStack server: Post "http://c/v2.1/servers": Throttled: too many requests to c: the next one is due in 40s`), "Throttled"},
		{"openstack", fmt.Sprintf(hc, `Error creating OpenStack server: Expected HTTP response code [200 202] when accessing [POST http://c/v2.1/servers], but got 503 instead: no server is available`), "Transient"},
		{"nutanix", `create failed: ClusterProviderConfig "default": InvalidRequest: forProvider.image: "x": Prism Central has no such image, or the user may not view it`, "InvalidRequest"},
		{"nutanix", `observe failed: ClusterProviderConfig "default": CapacityExhausted: the task VmPowerOn failed: no host has enough resources (VMM-30128, INSUFFICIENT_RESOURCES_ERROR)`, "CapacityExhausted"},
		{"nutanix", `connect failed: ClusterProviderConfig "default": credentials: password: must not be empty`, "PermissionDenied"},
		{"nutanix", `observe failed: ClusterProviderConfig "default": Transient: cannot read the VM: unexpected EOF`, "Transient"},
		{"vcd", `create failed: ClusterProviderConfig "default": InvalidRequest: forProvider.template: "x": there is no such template in the catalog "images", or the user may not view it`, "InvalidRequest"},
		{"vcd", `observe failed: ClusterProviderConfig "default": CapacityExhausted: the task vappDeploy failed: The available Memory resources in the parent resource pool are insufficient for the operation. (VC_OPERATION_ERROR)`, "CapacityExhausted"},
		{"vcd", `create failed: ClusterProviderConfig "default": QuotaExceeded: cannot create the VM: The requested operation will exceed the VDC's storage quota (status 400, BAD_REQUEST)`, "QuotaExceeded"},
		{"vcd", `create failed: ClusterProviderConfig "default": Throttled: cannot create the VM: The maximum number of simultaneous operations for user "drover" on organization "acme" has been reached. (status 400, OPERATION_LIMITS_EXCEEDED)`, "Throttled"},
		{"vcd", `connect failed: ClusterProviderConfig "default": credentials: password: must not be empty without apiToken`, "PermissionDenied"},
		{"vcd", `connect failed: ClusterProviderConfig "default": credentials: set apiToken, or username and password, not both`, "PermissionDenied"},
		{"vcd", `update failed: ClusterProviderConfig "default": Transient: cannot power on the VM: unexpected EOF`, "Transient"},
		{"metalstack", `create failed: ClusterProviderConfig "default": CapacityExhausted: cannot allocate a machine: no machine available (status 422)`, "CapacityExhausted"},
		{"metalstack", `create failed: ClusterProviderConfig "default": QuotaExceeded: cannot allocate a machine: project quota for machines reached max:3 (status 422)`, "QuotaExceeded"},
		{"metalstack", `observe failed: ClusterProviderConfig "default": InvalidRequest: spec.project: invalid value "x": metal-stack has no such project`, "InvalidRequest"},
		{"metalstack", `observe failed: ClusterProviderConfig "default": PermissionDenied: cannot read project p: Wrong HMAC found (status 403)`, "PermissionDenied"},
		{"metalstack", `connect failed: ClusterProviderConfig "default": credentials: hmac or token: one of them must not be empty`, "PermissionDenied"},
		{"metalstack", `observe failed: ClusterProviderConfig "default": Transient: cannot read machine m: unexpected EOF`, "Transient"},
		{"alibaba", `create failed: ClusterProviderConfig "default": CapacityExhausted: cannot create the instance: Sales of this resource are temporarily suspended in the specified zone (OperationDenied.NoStock, status 403)`, "CapacityExhausted"},
		{"alibaba", `create failed: ClusterProviderConfig "default": QuotaExceeded: cannot create the instance: The maximum number of Pay-As-You-Go instances is exceeded (QuotaExceed.AfterpayInstance, status 400)`, "QuotaExceeded"},
		{"alibaba", `create failed: ClusterProviderConfig "default": InvalidRequest: cannot create the instance: The specified KeyPairName does not exist in our records (InvalidKeyPairName.NotFound, status 404)`, "InvalidRequest"},
		{"alibaba", `observe failed: ClusterProviderConfig "default": PermissionDenied: cannot list instances: User not authorized to operate on the specified resource, or this API doesn't support RAM (Forbidden.RAM, status 403)`, "PermissionDenied"},
		{"alibaba", `connect failed: ClusterProviderConfig "default": credentials: accessKeySecret: must not be empty`, "PermissionDenied"},
		{"alibaba", `observe failed: ClusterProviderConfig "default": Throttled: cannot list instances: Request was denied due to user flow control (Throttling.User, status 400)`, "Throttled"},
		{"alibaba", `create failed: ClusterProviderConfig "default": Transient: cannot create the instance: unexpected EOF`, "Transient"},
		{"proxmox", `create failed: ClusterProviderConfig "default": InvalidRequest: cannot clone template "t" to VMID 100 on node pve1: pool 'x' does not exist (status 500)`, "InvalidRequest"},
		{"proxmox", `observe failed: ClusterProviderConfig "default": CapacityExhausted: the task qmclone failed: no space left on device`, "CapacityExhausted"},
		{"proxmox", `connect failed: ClusterProviderConfig "default": credentials: tokenID: must be like "drover@pve!drover"`, "PermissionDenied"},
		{"proxmox", `observe failed: ClusterProviderConfig "default": Transient: cannot list the vms of the cluster: unexpected EOF`, "Transient"},
		{"hcloud", fmt.Sprintf(hc, "server limit exceeded (resource_limit_exceeded, 1a2b3c4d5e6f)"), "QuotaExceeded"},
		{"hcloud", fmt.Sprintf(hc, `Post "https://api.hetzner.cloud/v1/servers": forProvider.placementGroupPrefix: cannot create the placement group "workers-1": the project has reached its limit of placement groups, by default 50: placement group limit exceeded (resource_limit_exceeded)`), "QuotaExceeded"},
		{"hcloud", fmt.Sprintf(hc, `Post "https://api.hetzner.cloud/v1/servers": forProvider.placementGroupPrefix: invalid value "workers": the project has a placement group "workers-1" that this installation of Drover did not create; choose another prefix, or rename or delete the group (uniqueness_error)`), "InvalidRequest"},
		{"hcloud", fmt.Sprintf(hc, "placement group with ID 369587 contains already 10 servers (placement_group_member_limit_reached, 2dd189f25ea44581)"), "Transient"},
		{"hcloud", fmt.Sprintf(hc, "error during placement (resource_unavailable)"), "CapacityExhausted"},
		{"hcloud", fmt.Sprintf(hc, "invalid input in field 'user_data' (invalid_input): [user_data => [must be at most 32768 bytes]]"), "InvalidRequest"},
		{"hcloud", fmt.Sprintf(hc, "image beos for architecture x86 not found"), "InvalidRequest"},
		{"hcloud", fmt.Sprintf(hc, "SSH key not found: nobody"), "InvalidRequest"},
		{"hcloud", fmt.Sprintf(hc, "the token you provided is invalid (unauthorized, 1a2b)"), "PermissionDenied"},
		{"hcloud", fmt.Sprintf(hc, "token is only allowed to perform GET requests (token_readonly)"), "PermissionDenied"},
		{"hcloud", `connect failed: ClusterProviderConfig "default": cannot get terraform setup: Secret crossplane-system/hcloud, key "credentials": token: must not be empty`, "PermissionDenied"},
		{"hcloud", `connect failed: ClusterProviderConfig "default": cannot get terraform setup: spec.providerConfigRef: cannot get ClusterProviderConfig "default": clusterproviderconfigs.hcloud.drover.dev "default" not found`, "ProviderConfigNotFound"},
		{"hcloud", fmt.Sprintf(hc, `Post "https://api.hetzner.cloud/v1/servers": Throttled: too many requests to api.hetzner.cloud: the next one is due in 40s`), "Throttled"},
		{"hcloud", fmt.Sprintf(hc, `Post "https://api.hetzner.cloud/v1/servers": unexpected EOF`), "Transient"},
		{"aws", fmt.Sprintf(aws, "InsufficientInstanceCapacity: We currently do not have sufficient m7i.large capacity in the Availability Zone you requested"), "CapacityExhausted"},
		{"aws", fmt.Sprintf(aws, "VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32 allows"), "QuotaExceeded"},
		{"aws", fmt.Sprintf(aws, "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"), "QuotaExceeded"},
		{"aws", fmt.Sprintf(aws, "AddressLimitExceeded: The maximum number of addresses has been reached."), "QuotaExceeded"},
		{"aws", fmt.Sprintf(aws, "TooManyTargets: You've reached the limit on the number of targets."), "QuotaExceeded"},
		{"aws", fmt.Sprintf(aws, "TargetGroupNotFound: One or more target groups not found"), "InvalidRequest"},
		{"aws", fmt.Sprintf(aws, "RequestLimitExceeded: Request limit exceeded."), "Throttled"},
		{"aws", fmt.Sprintf(aws, "UnauthorizedOperation: You are not authorized to perform this operation."), "PermissionDenied"},
		{"aws", fmt.Sprintf(aws, "InvalidAMIID.NotFound: The image id '[ami-0123]' does not exist"), "InvalidRequest"},
		{"aws", fmt.Sprintf(aws, "InvalidParameterValue: Value (x) for parameter groupId is invalid"), "InvalidRequest"},
		{"aws", `connect failed: cannot initialize the Terraform plugin SDK async external client: cannot get terraform setup: cannot get referenced ProviderConfig: ClusterProviderConfig.aws.m.upbound.io "default" not found`, "ProviderConfigNotFound"},
		{"aws", fmt.Sprintf(aws, "InternalError: An internal error has occurred"), "Transient"},

		{"gcp", fmt.Sprintf(gcp, "The zone 'projects/p/zones/europe-west4-a' does not have enough resources available to fulfill the request.  Try a different zone, or try again later., reason: ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"), "CapacityExhausted"},
		{"gcp", fmt.Sprintf(gcp, "googleapi: Error 403: Quota 'CPUS' exceeded.  Limit: 24.0 in region europe-west4., quotaExceeded"), "QuotaExceeded"},
		{"gcp", fmt.Sprintf(gcp, "googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded"), "Throttled"},
		{"gcp", fmt.Sprintf(gcp, "googleapi: Error 403: Required 'compute.instances.create' permission for 'projects/p', forbidden"), "PermissionDenied"},
		{"gcp", fmt.Sprintf(gcp, "googleapi: Error 400: Invalid value for field 'resource.machineType': 'x'. The referenced resource does not exist., invalid"), "InvalidRequest"},
		{"gcp", fmt.Sprintf(gcp, "googleapi: Error 503: Backend Error, backendError"), "Transient"},

		{"digitalocean", fmt.Sprintf(do, `422 (request "0f1e") creating this/these droplet(s) will exceed your droplet limit`), "QuotaExceeded"},
		{"digitalocean", fmt.Sprintf(do, `422 (request "0f1e") Size is not available in this region.`), "CapacityExhausted"},
		{"digitalocean", fmt.Sprintf(do, `429 (request "0f1e") Too many requests`), "Throttled"},
		{"digitalocean", fmt.Sprintf(do, `401 (request "0f1e") Unable to authenticate you`), "PermissionDenied"},
		{"digitalocean", fmt.Sprintf(do, `422 (request "0f1e") You specified an invalid image for Droplet creation.`), "InvalidRequest"},
		{"digitalocean", fmt.Sprintf(do, `500 (request "0f1e") Server Error`), "Transient"},

		{"yandex", fmt.Sprintf(yc, "ResourceExhausted desc = The limit on maximum number of instances has exceeded."), "QuotaExceeded"},
		{"yandex", fmt.Sprintf(yc, "ResourceExhausted desc = Quota limit compute.instanceCores.count exceeded"), "QuotaExceeded"},
		{"yandex", fmt.Sprintf(yc, "ResourceExhausted desc = Not enough resources in the zone"), "CapacityExhausted"},
		{"yandex", fmt.Sprintf(yc, "PermissionDenied desc = Permission denied"), "PermissionDenied"},
		{"yandex", fmt.Sprintf(yc, "InvalidArgument desc = Invalid platform"), "InvalidRequest"},
		{"yandex", fmt.Sprintf(yc, "Unavailable desc = connection reset"), "Transient"},
	}
	planes := map[string]*machinetest.Plane{}
	for cloud := range crds {
		planes[cloud] = newPlane(t, cloud, "")
		rendered(t, planes[cloud])
	}
	for _, tc := range cases {
		t.Run(tc.cloud+"/"+tc.class, func(t *testing.T) {
			p := planes[tc.cloud]
			machinetest.Condition(p.Composed["vm"], "LastAsyncOperation", "False", "AsyncCreateFailure", tc.text)
			machinetest.Condition(p.Composed["vm"], "Synced", "False", "ReconcileError", tc.text)
			p.Reconcile()
			if got := status(p, "lastOperation", "errorCode"); got != tc.class {
				t.Errorf("%q is %s, want %s", tc.text, got, tc.class)
			}
		})
	}
}
