package providers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/function/machinetest"
	"github.com/drover-dev/drover/internal/gzipb64"
)

const (
	azureGroup   = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/production-nodes/providers/Microsoft.Network/"
	azureCompute = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/production-nodes/providers/Microsoft.Compute/"
)

// companionIsReady sets the status that the provider writes for a companion that it created.
func companionIsReady(t *testing.T, c *unstructured.Unstructured) {
	t.Helper()
	says := map[string]string{
		"PublicIP":                         fmt.Sprintf("{id: %spublicIPAddresses/%s, ipAddress: 203.0.113.7}", azureGroup, c.GetName()),
		"NetworkInterface":                 fmt.Sprintf(`{id: %snetworkInterfaces/%s, privateIpAddresses: [10.0.0.7, "fd00::7"]}`, azureGroup, c.GetName()),
		"ManagedDisk":                      fmt.Sprintf("{id: %sdisks/%s}", azureCompute, c.GetName()),
		"VirtualMachineDataDiskAttachment": fmt.Sprintf("{id: %svirtualMachines/x/dataDisks/%s}", azureCompute, c.GetName()),
		"Disk":                             fmt.Sprintf("{id: projects/my-project/zones/%s/disks/%s}", c.Object["spec"].(map[string]any)["forProvider"].(map[string]any)["zone"], c.GetName()),
		"Port":                             fmt.Sprintf("{id: port-of-%s, allFixedIps: [10.0.0.7]}", c.GetName()),
		"FloatingIP":                       "{id: floatingip-1, address: 203.0.113.11}",
		"EIP":                              "{id: eipalloc-1, allocationId: eipalloc-1, publicIp: 203.0.113.9}",
		"LBTargetGroupAttachment":          "{id: workers-1}",
		"NetworkInterfaceSecurityGroupAssociation": fmt.Sprintf("{id: %snetworkInterfaces/x|%snetworkSecurityGroups/nodes}", azureGroup, azureGroup),
	}[c.GetKind()]
	if says == "" {
		t.Fatalf("nobody knows what is said of a %s", c.GetKind())
	}
	machinetest.Set(c, machinetest.Object(t, says).Object, "status", "atProvider")
	c.SetAnnotations(merged(c.GetAnnotations(), "crossplane.io/external-name", c.GetName()))
	machinetest.Condition(c, "Synced", "True", "ReconcileSuccess", "")
	machinetest.Condition(c, "Ready", "True", "Available", "")
}

func merged(m map[string]string, key, value string) map[string]string {
	out := map[string]string{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// composed returns the kinds of a plane's VM and companions.
func composed(p *machinetest.Plane) string {
	var out []string
	for _, name := range []string{
		"companion-publicip", "companion-nic", "companion-securitygroup", "companion-datadisk", "companion-datadisk2", "companion-datadisk3", machinev1alpha1.ResourceVM,
		"companion-datadiskattachment", "companion-elasticip", "companion-targetgroup",
		"companion-port", "companion-port2", "companion-port3", "companion-floatingip",
	} {
		if p.Composed[name] != nil {
			out = append(out, p.Composed[name].GetKind())
		}
	}
	return strings.Join(out, " ")
}

// refusesClass checks that the class of a Machine is invalid for a reason, and that nothing is composed.
func refusesClass(t *testing.T, p *machinetest.Plane, reason string) {
	t.Helper()
	p.Reconcile()
	p.Reconcile()
	b, _ := json.Marshal(p.Machine.Object["status"])
	if !strings.Contains(string(b), reason) || !strings.Contains(string(b), machinev1alpha1.ReasonForProviderInvalid) || composed(p) != "" {
		t.Errorf("composed %q, status %s", composed(p), b)
	}
}

func TestAVMOfAzureComesAfterWhatItNeeds(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	p.Reconcile()
	p.Reconcile()
	want := []string{"PublicIP", "NetworkInterface", "NetworkInterfaceSecurityGroupAssociation", "ManagedDisk", "LinuxVirtualMachine"}
	for i := range want {
		if got := composed(p); got != strings.Join(want[:i+1], " ") {
			t.Fatalf("step %d: composed %s", i, got)
		}
		for name, c := range p.Composed {
			if machinev1alpha1.IsCompanion(name) {
				companionIsReady(t, c)
			}
		}
		p.Reconcile()
	}
	get := func(resource string, path ...string) string {
		s, _, _ := unstructured.NestedString(p.Composed[resource].Object, append([]string{"spec", "forProvider"}, path...)...)
		return s
	}
	nic := azureGroup + "networkInterfaces/" + p.Composed["vm"].GetName() + "-nic"
	if ids, _, _ := unstructured.NestedStringSlice(p.Composed["vm"].Object, "spec", "forProvider", "networkInterfaceIds"); len(ids) != 1 || ids[0] != nic {
		t.Errorf("network interfaces %v", ids)
	}
	if got := get("companion-securitygroup", "networkInterfaceId"); got != nic {
		t.Errorf("the security group is for %s", got)
	}
}

// vmIsThere sets the status that the provider writes for a VM that runs.
func vmIsThere(t *testing.T, p *machinetest.Plane, cloud string) {
	t.Helper()
	vm := p.Composed[machinev1alpha1.ResourceVM]
	vm.SetAnnotations(merged(vm.GetAnnotations(), "crossplane.io/external-name", vm.GetName()))
	shows(t, p, vm, described[cloud].Observed.text(t))
}

// forProviderOf returns a field of a composed resource as a text.
func forProviderOf(p *machinetest.Plane, resource, field string) string {
	if p.Composed[resource] == nil {
		return "no " + resource
	}
	s, _, _ := unstructured.NestedString(p.Composed[resource].Object, "spec", "forProvider", field)
	return s
}

func TestADataDiskOfAzureIsAttachedToTheVM(t *testing.T) {
	p := newPlane(t, "upjet-azure", "westeurope-2")
	vm := rendered(t, p)
	if zone, want := forProviderOf(p, "companion-datadisk", "zone"), forProviderOf(p, "vm", "zone"); zone != "2" || want != "2" {
		t.Errorf("the disk is in zone %q, the VM in zone %q", zone, want)
	}
	if p.Composed["companion-datadiskattachment"] != nil {
		t.Fatal("the disk is attached before there is a VM")
	}
	vmIsThere(t, p, "upjet-azure")
	p.Reconcile()
	disk := azureCompute + "disks/" + vm.GetName() + "-datadisk"
	id, _, _ := unstructured.NestedString(vm.Object, "status", "atProvider", "id")
	if d, v := forProviderOf(p, "companion-datadiskattachment", "managedDiskId"), forProviderOf(p, "companion-datadiskattachment", "virtualMachineId"); d != disk || v != id || id == "" {
		t.Errorf("disk %q is attached to %q, want %q and %q", d, v, disk, id)
	}
	golden(t, "upjet-azure-companion-datadiskattachment", withoutUserData(p.Composed["companion-datadiskattachment"]))
	if got := status(p, "lastOperation", "description"); !strings.Contains(got, "waiting for VirtualMachineDataDiskAttachment "+vm.GetName()+"-datadiskattachment") {
		t.Errorf("the Machine waits for %q", got)
	}
	companionIsReady(t, p.Composed["companion-datadiskattachment"])
	p.Reconcile()
	if got := status(p, "lastOperation", "description"); strings.Contains(got, "DataDiskAttachment") {
		t.Errorf("when the disk is attached, the Machine waits for %q", got)
	}
}

// TestAClassIsNeededUntilTheDiskIsAttached deletes the class when the VM exists, and again when its disk
// is attached.
func TestAClassIsNeededUntilTheDiskIsAttached(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	rendered(t, p)
	all := p.Others
	p.Others = all[1:] // The class is the first one.
	vmIsThere(t, p, "upjet-azure")
	p.Reconcile()
	if valid := conditionOf(p, "Valid"); valid["reason"] != "ClassNotFound" || p.Composed["companion-datadiskattachment"] != nil || p.Composed["vm"] == nil {
		t.Fatalf("without the class: composed %s, Valid is %v", composed(p), valid)
	}
	p.Others = all
	p.Reconcile()
	attachment := p.Composed["companion-datadiskattachment"]
	if valid := conditionOf(p, "Valid"); attachment == nil || valid["status"] != "True" {
		t.Fatalf("with the class: composed %s, Valid is %v", composed(p), valid)
	}
	companionIsReady(t, attachment)
	p.Others = all[1:]
	p.Reconcile()
	if valid := conditionOf(p, "Valid"); valid["status"] != "True" {
		t.Errorf("when the disk is attached, Valid is %v", valid)
	}
	// A user deletes the attachment of a Machine whose class is there.
	p.Others = all
	delete(p.Composed, "companion-datadiskattachment")
	p.Reconcile()
	if got := forProviderOf(p, "companion-datadiskattachment", "managedDiskId"); !strings.HasSuffix(got, "-datadisk") {
		t.Errorf("it is made again with the disk %q", got)
	}
}

// TestAVMOfAWSGetsItsAddressAndItsPlaceInATargetGroup has a class of the example with both companions.
func TestAVMOfAWSGetsItsAddressAndItsPlaceInATargetGroup(t *testing.T) {
	p := newPlane(t, "upjet-aws", "", func(class *unstructured.Unstructured) {
		machinetest.Set(class, map[string]any{
			"elasticip":   map[string]any{"forProvider": map[string]any{"domain": "vpc", "publicIpv4Pool": "ipv4pool-ec2-1"}},
			"targetgroup": map[string]any{"forProvider": map[string]any{"targetGroupArn": "arn:workers", "port": int64(443)}},
		}, "spec", "companions")
	})
	rendered(t, p)
	if got := composed(p); got != "Instance" {
		t.Fatalf("composed %s before there is a VM", got)
	}
	vmIsThere(t, p, "upjet-aws")
	p.Reconcile()
	if got := composed(p); got != "Instance EIP" {
		t.Fatalf("composed %s", got)
	}
	companionIsReady(t, p.Composed["companion-elasticip"])
	p.Reconcile()
	id, _, _ := unstructured.NestedString(p.Composed["vm"].Object, "status", "atProvider", "id")
	for resource, field := range map[string]string{"companion-elasticip": "instance", "companion-targetgroup": "targetId"} {
		if got := forProviderOf(p, resource, field); got != id || id == "" {
			t.Errorf("%s is of VM %q, want %q", resource, got, id)
		}
		golden(t, "upjet-aws-"+resource, withoutUserData(p.Composed[resource]))
	}
	b, _ := json.Marshal(p.Machine.Object["status"])
	if !strings.Contains(string(b), "203.0.113.9") {
		t.Errorf("the Elastic IP address is not one of the Machine: %s", b)
	}
}

// openStackWith has a plane of OpenStack whose class has companions, and other networks.
func openStackWith(t *testing.T, companions map[string]any, networks ...any) *machinetest.Plane {
	t.Helper()
	return newPlane(t, "openstack", "", func(class *unstructured.Unstructured) {
		machinetest.Set(class, companions, "spec", "companions")
		if networks == nil {
			unstructured.RemoveNestedField(class.Object, "spec", "forProvider", "network")
		} else {
			machinetest.Set(class, networks, "spec", "forProvider", "network")
		}
	})
}

func forProvider(fields map[string]any) map[string]any { return map[string]any{"forProvider": fields} }

// TestOpenStackPortsComeFirst has the class of the example with a second port.
func TestOpenStackPortsComeFirst(t *testing.T) {
	class := readYAML(t, root+"examples/openstack/machineclass-ports.yaml")
	companions, _, _ := unstructured.NestedMap(class.Object, "spec", "companions")
	companions["port2"] = forProvider(map[string]any{"networkId": "33333333-0000-4000-8000-000000000002", "binding": []any{map[string]any{"vnicType": "direct"}}})
	p := openStackWith(t, companions)
	p.Reconcile()
	p.Reconcile()
	for i, want := range []string{"Port", "Port Port", "Port Port FloatingIP", "VirtualMachine Port Port FloatingIP"} {
		if got := composed(p); got != want {
			t.Fatalf("step %d: composed %q, want %q: %v", i, got, want, p.Machine.Object["status"])
		}
		for name, c := range p.Composed {
			if machinev1alpha1.IsCompanion(name) {
				companionIsReady(t, c)
			}
		}
		p.Reconcile()
	}
	vm := p.Composed["vm"]
	networks, _, _ := unstructured.NestedSlice(vm.Object, "spec", "forProvider", "network")
	want := []any{map[string]any{"port": "port-of-" + vm.GetName() + "-port"}, map[string]any{"port": "port-of-" + vm.GetName() + "-port2"}}
	if diff := cmp.Diff(want, networks); diff != "" {
		t.Errorf("networks: -want +got:\n%s", diff)
	}
	if got := forProviderOf(p, "companion-floatingip", "portId"); got != "port-of-"+vm.GetName()+"-port" {
		t.Errorf("the floating IP leads to %q", got)
	}
	for _, name := range []string{"companion-port", "companion-port2", "companion-floatingip"} {
		golden(t, "openstack-"+name, withoutUserData(p.Composed[name]))
		if description := forProviderOf(p, name, "description"); !strings.Contains(description, string(p.Machine.GetUID())) || len(description) > 255 {
			t.Errorf("%s has the description %q", name, description)
		}
	}
	vmIsThere(t, p, "openstack")
	p.Reconcile()
	if b, _ := json.Marshal(p.Machine.Object["status"]); !strings.Contains(string(b), `{"address":"203.0.113.11","type":"ExternalIP"}`) {
		t.Errorf("the floating IP is not one of the Machine's addresses: %s", b)
	}
}

// TestOpenStackPortsAndNetworks has a class with a port of its own as the second interface.
func TestOpenStackPortsAndNetworks(t *testing.T) {
	p := openStackWith(t, map[string]any{"port2": forProvider(map[string]any{"networkId": "33333333-0000-4000-8000-000000000002"})}, map[string]any{"name": "nodes"})
	vm := rendered(t, p)
	networks, _, _ := unstructured.NestedSlice(vm.Object, "spec", "forProvider", "network")
	want := []any{map[string]any{"name": "nodes"}, map[string]any{"port": "port-of-" + vm.GetName() + "-port2"}}
	if diff := cmp.Diff(want, networks); diff != "" {
		t.Errorf("networks: -want +got:\n%s", diff)
	}
}

func TestOpenStackInvalidCompanions(t *testing.T) {
	network := map[string]any{"networkId": "33333333-0000-4000-8000-000000000001"}
	for name, tc := range map[string]struct {
		companions map[string]any
		want       string
	}{
		"UnknownField":              {map[string]any{"port": forProvider(map[string]any{"networkId": "n", "subnet": "x"})}, "companions.port.forProvider.subnet: unknown field"},
		"OtherType":                 {map[string]any{"port": forProvider(map[string]any{"networkId": "n", "portSecurityEnabled": "no"})}, "companions.port.forProvider.portSecurityEnabled: Invalid value"},
		"PortWithoutNetwork":        {map[string]any{"port": forProvider(map[string]any{})}, "companions.port: spec.forProvider.networkId is a required parameter"},
		"FieldOfNova":               {map[string]any{"port": forProvider(map[string]any{"networkId": "n", "deviceId": "x"})}, "companions.port.forProvider.deviceId: unknown field"},
		"FloatingIPWithoutPort":     {map[string]any{"floatingip": forProvider(map[string]any{"pool": "public"})}, "companions.floatingip: spec.forProvider.portId is a required parameter"},
		"FloatingIPWithoutPool":     {map[string]any{"port": forProvider(network), "floatingip": forProvider(map[string]any{})}, "companions.floatingip: spec.forProvider.pool is a required parameter"},
		"CompanionThatDoesNotExist": {map[string]any{"port4": forProvider(network)}, `companions.port4: VMs of provider \"openstack\" have no such companion: they may have port, port2, port3, floatingip`},
		"SecondInterfaceAlone":      {map[string]any{"port2": forProvider(network)}, "network[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := openStackWith(t, tc.companions)
			refusesClass(t, p, tc.want)
		})
	}
}

func TestAClassWithoutPublicAddressHasNone(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	unstructured.RemoveNestedField(p.Others[0].Object, "spec", "companions", "publicip")
	for _, name := range []string{"securitygroup", "datadisk", "datadiskattachment"} {
		unstructured.RemoveNestedField(p.Others[0].Object, "spec", "companions", name)
	}
	rendered(t, p)
	if got := composed(p); got != "NetworkInterface LinuxVirtualMachine" {
		t.Errorf("composed %s", got)
	}
	list, _, _ := unstructured.NestedSlice(p.Composed["companion-nic"].Object, "spec", "forProvider", "ipConfiguration")
	if len(list) != 1 || list[0].(map[string]any)["publicIpAddressId"] != nil {
		t.Errorf("ipConfiguration %v", list)
	}
}

func TestAWrongFieldOfANetworkInterfaceIsRefusedBeforeThereIsAnything(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(companions map[string]any)
		want   string
	}{
		"AnUnknownField": {func(c map[string]any) {
			c["nic"].(map[string]any)["forProvider"].(map[string]any)["subnet"] = "x"
		}, "companions.nic.forProvider.subnet: unknown field"},
		"AnotherType": {func(c map[string]any) {
			c["nic"].(map[string]any)["forProvider"].(map[string]any)["ipConfiguration"].([]any)[0].(map[string]any)["primary"] = "yes"
		}, "companions.nic.forProvider.ipConfiguration[0].primary: Invalid value"},
		"ACompanionThatThereIsNot": {func(c map[string]any) { c["disk"] = map[string]any{} }, `companions.disk: VMs of provider \"upjet-azure\" have no such companion: they may have publicip, nic, securitygroup, datadisk, datadiskattachment`},
		"AnUnknownFieldOfOneAfterTheVM": {func(c map[string]any) {
			c["datadiskattachment"].(map[string]any)["forProvider"].(map[string]any)["slot"] = 1
		}, "companions.datadiskattachment.forProvider.slot: unknown field"},
		"NoneThatIsRequiredOfOneAfterTheVM": {func(c map[string]any) {
			delete(c["datadiskattachment"].(map[string]any)["forProvider"].(map[string]any), "caching")
		}, "companions.datadiskattachment: spec.forProvider.caching is a required parameter"},
		"NoneThatIsRequired": {func(c map[string]any) { delete(c, "nic"); delete(c, "publicip") }, "companions.nic: spec.forProvider.ipConfiguration is a required parameter"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t, "upjet-azure", "")
			tc.change(p.Others[0].Object["spec"].(map[string]any)["companions"].(map[string]any))
			refusesClass(t, p, tc.want)
		})
	}
}

func TestWhatKeepsANetworkInterfaceFromBeingMadeIsSaidOfTheMachine(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	unstructured.RemoveNestedField(p.Others[0].Object, "spec", "companions", "publicip")
	p.Reconcile()
	p.Reconcile()
	if got := status(p, "lastOperation", "description"); status(p, "phase") != "Provisioning" || !strings.Contains(got, "waiting for NetworkInterface workers-x7k2p-crf74-nic") {
		t.Errorf("%s: %s", status(p, "phase"), got)
	}
	nic := p.Composed["companion-nic"]
	nic.SetAnnotations(merged(nic.GetAnnotations(), "crossplane.io/external-name", nic.GetName()))
	for _, tc := range []struct{ message, code string }{
		{`async create failed: failed to create the resource: creating Network Interface: performing CreateOrUpdate: unexpected status 400 (400 Bad Request) with error: SubnetIsFull: Subnet nodes with address prefix 10.0.0.0/24 does not have enough capacity`, "CapacityExhausted"},
		{`async create failed: failed to create the resource: unexpected status 403 (403 Forbidden) with error: AuthorizationFailed: The client does not have authorization`, "PermissionDenied"},
		{`async create failed: unexpected status 404 (404 Not Found) with error: InvalidResourceReference: Resource nodes referenced by nic was not found`, "InvalidRequest"},
		{`async create failed: unexpected status 400 with error: NetworkInterfaceCountLimitReached: Cannot create more than 65536 network interfaces`, "QuotaExceeded"},
		{`async create failed: unexpected status 429 (429 Too Many Requests) with error: TooManyRequests: The request is throttled`, "Throttled"},
	} {
		machinetest.Condition(nic, "LastAsyncOperation", "False", "AsyncCreateFailure", tc.message)
		p.Reconcile()
		begins := "NetworkInterface workers-x7k2p-crf74-nic: async create failed"
		if tc.code == "PermissionDenied" {
			begins = `NetworkInterface workers-x7k2p-crf74-nic: ClusterProviderConfig "default": async create failed`
		}
		if code, text := status(p, "lastOperation", "errorCode"), status(p, "lastOperation", "description"); code != tc.code || !strings.HasPrefix(text, begins) {
			t.Errorf("%s: %s, want %s", code, text, tc.code)
		}
		if composed(p) != "NetworkInterface" {
			t.Errorf("composed %s", composed(p))
		}
	}
	p.Composed["companion-nic"].Object["status"] = map[string]any{}
	companionIsReady(t, nic)
	rendered(t, p)
	if code := status(p, "lastOperation", "errorCode"); code != "" {
		t.Errorf("error code %s of a VM that is being made", code)
	}
}

// TestACompanionThatAStaleWriteForgotIsComposedAgain checks that a companion is composed again if
// the Machine no longer refers to it. Otherwise it would never be deleted.
func TestACompanionThatAStaleWriteForgotIsComposedAgain(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	p.Reconcile()
	p.Reconcile()
	companionIsReady(t, p.Composed["companion-publicip"])
	p.Reconcile()
	forgotten := func(when string) {
		t.Helper()
		p.Forgotten = []string{"companion-nic"}
		r, err := p.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		got := r.Desired.GetResources()["companion-nic"].GetResource().AsMap()
		if name := (&unstructured.Unstructured{Object: got}).GetName(); name != p.Composed["companion-nic"].GetName() {
			t.Errorf("%s: the network interface that is composed is %q", when, name)
		}
		p.Forgotten = nil
	}
	forgotten("before its VM is there")
	vm := rendered(t, p)
	vm.SetAnnotations(merged(vm.GetAnnotations(), "crossplane.io/external-name", vm.GetName()))
	shows(t, p, vm, described["upjet-azure"].Observed.text(t))
	forgotten("when its VM is there")
}

func TestTheUserDataOfAzureIsCompressedBase64InItsSecret(t *testing.T) {
	p := newPlane(t, "upjet-azure", "")
	p.TargetError = "connect failed: timeout"
	p.Reconcile()
	if got := composed(p); got != "" {
		t.Errorf("there is a %s before the user data", got)
	}
	p.TokenIsThere()
	p.Reconcile()
	customData := p.Connection[machinev1alpha1.ResourceUserData]["userData"]
	userData, err := gzipb64.Decode(string(customData))
	if err != nil || !strings.HasPrefix(string(userData), "#cloud-config\n") {
		t.Errorf("%.40q, %v", customData, err)
	}
}
