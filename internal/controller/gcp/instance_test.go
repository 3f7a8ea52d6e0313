package gcp

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/gcp/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakegcp "github.com/drover-dev/drover/test/fakes/gcp"
)

func TestAnInstanceHasThePropertiesOfItsClass(t *testing.T) {
	l := newLab(t, fakegcp.Options{Boot: func(fakegcp.Booted) string { return "10.0.0.7" }})
	vm := newVM("vm-1", map[string]string{"drover-cluster": "team-a/production", labelVM: "of-a-user"})
	p := &vm.Spec.ForProvider
	p.MinCPUPlatform, p.CanIPForward, p.NetworkTags = ptr.To("Intel Ice Lake"), ptr.To(true), []string{"worker"}
	p.BootDisk.KMSKeyName = ptr.To("projects/my-project/locations/europe-west4/keyRings/r/cryptoKeys/k")
	p.BootDisk.ResourcePolicies, p.BootDisk.GuestOSFeatures = []string{"daily"}, []string{"GVNIC"}
	p.Description, p.ResourceManagerTags = ptr.To("a worker"), map[string]string{"tagKeys/1": "tagValues/2"}
	data := v1alpha1.Disk{DeviceName: ptr.To("data"), Keep: ptr.To(true)}
	data.SizeGB, data.Type, data.IOPS, data.ThroughputMiB = ptr.To(int32(100)), ptr.To("hyperdisk-balanced"), ptr.To(int32(6000)), ptr.To(int32(250))
	scratch := v1alpha1.Disk{Interface: ptr.To("NVME")}
	scratch.Type = ptr.To(localSSD)
	p.Disks = []v1alpha1.Disk{data, scratch}
	p.NetworkInterfaces = []v1alpha1.NetworkInterface{
		{
			Subnetwork: ptr.To("nodes"), ExternalAddress: &v1alpha1.ExternalAddress{NetworkTier: ptr.To("PREMIUM")}, StackType: ptr.To("IPV4_IPV6"), ExternalIPv6: ptr.To(true),
			AliasRanges: []v1alpha1.AliasRange{{CIDR: "/24", SubnetworkRange: ptr.To("pods")}}, NICType: ptr.To("GVNIC"), QueueCount: ptr.To(int32(4)),
		},
		{Network: ptr.To("storage"), Subnetwork: ptr.To("projects/other/regions/europe-west4/subnetworks/other"), Address: ptr.To("10.9.0.9")},
	}
	p.ServiceAccount = &v1alpha1.ServiceAccount{Email: "nodes@my-project.iam.gserviceaccount.com"}
	p.Spot = &v1alpha1.Spot{TerminationAction: ptr.To("DELETE")}
	p.Scheduling = &v1alpha1.Scheduling{MinNodeCPUs: ptr.To(int32(2)), NodeAffinities: []v1alpha1.NodeAffinity{{Key: "compute.googleapis.com/node-group-name", Operator: "IN", Values: []string{"g"}}}}
	p.Reservation = &v1alpha1.Reservation{Type: "SPECIFIC_RESERVATION", Name: ptr.To("r")}
	p.Accelerators = []v1alpha1.Accelerator{{Type: "nvidia-tesla-t4", Count: 1}}
	p.Shielded, p.ConfidentialType = &v1alpha1.Shielded{SecureBoot: ptr.To(true), IntegrityMonitoring: ptr.To(false)}, ptr.To("SEV")
	p.ThreadsPerCore, p.NestedVirtualization = ptr.To(int32(1)), ptr.To(true)
	p.ResourcePolicies = []string{"spread"}
	p.Metadata = map[string]string{"ssh-keys": "operator:ssh-ed25519 AAAA"}
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		return slices.ContainsFunc(vm.Status.AtProvider.Addresses, func(a nativev1alpha1.Address) bool { return a.Address == "10.0.0.7" })
	}, func(vm *v1alpha1.VirtualMachine) {
		all := l.Instances()
		if len(all) != 1 {
			t.Fatalf("instances %+v", all)
		}
		labels := `{"drover-cluster": "team-a-production", "drover-vm": "` + string(vm.UID) + `"}`
		var want map[string]any
		if err := json.Unmarshal([]byte(`{
			"name": "vm-1", "description": "a worker", "params": {"resourceManagerTags": {"tagKeys/1": "tagValues/2"}}, "machineType": "zones/europe-west4-a/machineTypes/n2-standard-4", "minCpuPlatform": "Intel Ice Lake", "canIpForward": true,
			"deletionProtection": false, "tags": {"items": ["worker"]}, "labels": `+labels+`,
			"metadata": {"items": [{"key": "ssh-keys", "value": "operator:ssh-ed25519 AAAA"}, {"key": "user-data", "value": "#cloud-config\ntoken: abcdef.0123456789abcdef"}]},
			"scheduling": {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE", "automaticRestart": false, "onHostMaintenance": "TERMINATE", "minNodeCpus": 2,
				"nodeAffinities": [{"key": "compute.googleapis.com/node-group-name", "operator": "IN", "values": ["g"]}]},
			"disks": [
				{"boot": true, "autoDelete": true, "guestOsFeatures": [{"type": "GVNIC"}], "diskEncryptionKey": {"kmsKeyName": "projects/my-project/locations/europe-west4/keyRings/r/cryptoKeys/k"}, "initializeParams": {
					"sourceImage": "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64", "diskSizeGb": "50", "diskType": "zones/europe-west4-a/diskTypes/pd-balanced",
					"labels": `+labels+`, "resourcePolicies": ["projects/my-project/regions/europe-west4/resourcePolicies/daily"]}},
				{"autoDelete": false, "deviceName": "data", "initializeParams": {"diskSizeGb": "100", "diskType": "zones/europe-west4-a/diskTypes/hyperdisk-balanced",
					"provisionedIops": "6000", "provisionedThroughput": "250", "labels": `+labels+`}},
				{"autoDelete": true, "type": "SCRATCH", "interface": "NVME", "initializeParams": {"diskType": "zones/europe-west4-a/diskTypes/local-ssd"}}],
			"networkInterfaces": [
				{"subnetwork": "projects/my-project/regions/europe-west4/subnetworks/nodes", "stackType": "IPV4_IPV6", "nicType": "GVNIC", "queueCount": 4,
					"accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT", "networkTier": "PREMIUM"}],
					"ipv6AccessConfigs": [{"type": "DIRECT_IPV6", "name": "external-ipv6", "networkTier": "PREMIUM"}],
					"aliasIpRanges": [{"ipCidrRange": "/24", "subnetworkRangeName": "pods"}]},
				{"network": "projects/my-project/global/networks/storage", "subnetwork": "projects/other/regions/europe-west4/subnetworks/other", "networkIP": "10.9.0.9"}],
			"serviceAccounts": [{"email": "nodes@my-project.iam.gserviceaccount.com", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}],
			"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION", "key": "compute.googleapis.com/reservation-name", "values": ["r"]},
			"guestAccelerators": [{"acceleratorType": "zones/europe-west4-a/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}],
			"shieldedInstanceConfig": {"enableSecureBoot": true, "enableVtpm": true, "enableIntegrityMonitoring": false},
			"confidentialInstanceConfig": {"enableConfidentialCompute": true, "confidentialInstanceType": "SEV"},
			"advancedMachineFeatures": {"threadsPerCore": 1, "enableNestedVirtualization": true},
			"resourcePolicies": ["projects/my-project/regions/europe-west4/resourcePolicies/spread"]}`), &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, all[0].Body); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "gce://my-project/europe-west4-a/vm-1" || at.Place != "project my-project" || at.Zone != zone || at.InstanceID != all[0].ID ||
			at.MachineType != "n2-standard-4" || !at.Spot {
			t.Errorf("observed %+v", at)
		}
		var kinds []string
		for _, a := range at.Addresses {
			kinds = append(kinds, a.Type)
		}
		if want := []string{"InternalIP", "ExternalIP", "ExternalIP"}; !slices.Equal(kinds, want) {
			t.Errorf("addresses %v, want the types %v", at.Addresses, want)
		}
	})
}

// TestAPlainInstanceHasNoOptions holds what is not sent for a class without options: Google's defaults count.
func TestAPlainInstanceHasNoOptions(t *testing.T) {
	vm := newVM("vm-1", nil)
	i := instanceOf("my-project", vm.Spec.ForProvider, "uid", "")
	b, err := i.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"deletionProtection":false,"disks":[{"autoDelete":true,"boot":true,"initializeParams":{"diskSizeGb":"50","diskType":"zones/europe-west4-a/diskTypes/pd-balanced",` +
		`"labels":{"drover-vm":"uid"},"sourceImage":"projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"}}],"labels":{"drover-vm":"uid"},` +
		`"machineType":"zones/europe-west4-a/machineTypes/n2-standard-4","metadata":{},"name":"vm-1",` +
		`"networkInterfaces":[{"subnetwork":"projects/my-project/regions/europe-west4/subnetworks/nodes"}]}`
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestErrorsNameTheirCause(t *testing.T) {
	refuse := func(status int, reason, message string) func(*lab) {
		return func(l *lab) {
			l.Break(fakegcp.Fault{Call: "compute.instances.insert", Status: status, Code: reason, Message: message})
		}
	}
	fail := func(code, message string) func(*lab) {
		return func(l *lab) { l.Fail(fakegcp.Failure{Code: code, Message: message}) }
	}
	type parameters = v1alpha1.VirtualMachineParameters
	cases := map[string]struct {
		lab    func(*lab)
		change func(*parameters)
		want   []string
	}{
		"AnImageThatDoesNotExist":      {nil, func(p *parameters) { p.BootDisk.Image = "global/images/x" }, []string{`InvalidRequest: forProvider.bootDisk.image: "global/images/x": project my-project has no such image`}},
		"AFamilyThatDoesNotExist":      {nil, func(p *parameters) { p.BootDisk.Image = "projects/p/global/images/family/x" }, []string{"InvalidRequest: forProvider.bootDisk.image", "project p has no such image"}},
		"AnImageThatIsNotReady":        {nil, func(p *parameters) { p.BootDisk.Image = "global/images/unfinished" }, []string{"InvalidRequest: forProvider.bootDisk.image", "the status of image unfinished is PENDING"}},
		"AnImageThatIsObsolete":        {nil, func(p *parameters) { p.BootDisk.Image = "global/images/old" }, []string{"InvalidRequest: forProvider.bootDisk.image", "image old is OBSOLETE"}},
		"AnImageOfAnotherArchitecture": {nil, func(p *parameters) { p.MachineType = ptr.To("t2a-standard-4") }, []string{"InvalidRequest: forProvider.bootDisk.image", "the image is for X86_64, and machine type t2a-standard-4 is ARM64"}},
		"AMachineTypeThatDoesNotExist": {nil, func(p *parameters) { p.MachineType = ptr.To("n9-mega-1") }, []string{`InvalidRequest: forProvider.machineType: "n9-mega-1": zone europe-west4-a has no such machine type`}},
		"AZoneThatDoesNotExist":        {nil, func(p *parameters) { p.Zone = ptr.To("moon-1-a") }, []string{`InvalidRequest: forProvider.machineType`, "or there is no such zone"}},
		"ADiskThatIsTooSmall":          {nil, func(p *parameters) { p.BootDisk.SizeGB = ptr.To(int32(5)) }, []string{"InvalidRequest: forProvider.bootDisk.sizeGB: invalid value 5: must be at least 10"}},
		"ASubnetworkOfAnotherRegion": {nil, func(p *parameters) {
			p.NetworkInterfaces[0].Subnetwork = ptr.To("projects/p/regions/us-east1/subnetworks/s")
		}, []string{"InvalidRequest: forProvider.networkInterfaces[0].subnetwork", "must be in region europe-west4"}},
		"ASubnetworkThatDoesNotExist":   {nil, func(p *parameters) { p.NetworkInterfaces[0].Subnetwork = ptr.To("x") }, []string{"InvalidRequest: cannot create the instance", "The referenced subnetwork resource cannot be found. (invalid, status 400)"}},
		"ALabelInUpperCase":             {nil, func(p *parameters) { p.Labels["Team"] = "x" }, []string{`InvalidRequest: forProvider.labels: invalid key "Team"`}},
		"ALabelWithASlash":              {nil, func(p *parameters) { p.Labels["team"] = "a/b" }, []string{"InvalidRequest: forProvider.labels: invalid value of team"}},
		"UserDataInTheMetadata":         {nil, func(p *parameters) { p.Metadata = map[string]string{"user-data": "x"} }, []string{`InvalidRequest: forProvider.metadata: invalid key "user-data"`}},
		"ANameOfAnotherInstance":        {func(l *lab) { l.Create("vm-1", zone, nil) }, nil, []string{`InvalidRequest: forProvider.name: "vm-1": zone europe-west4-a has an instance of this name that was not created for this VM`}},
		"NoCapacityInTheOperation":      {fail("ZONE_RESOURCE_POOL_EXHAUSTED", "The zone 'projects/my-project/zones/europe-west4-a' does not have enough resources available to fulfill the request."), nil, []string{"CapacityExhausted: the task insert failed: ZONE_RESOURCE_POOL_EXHAUSTED: The zone"}},
		"NoCapacityWithDetails":         {fail("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "The zone does not have enough resources available: (resource type:compute)."), nil, []string{"CapacityExhausted: "}},
		"NoAddressesInTheOperation":     {fail("IP_SPACE_EXHAUSTED", "IP space of 'projects/my-project/regions/europe-west4/subnetworks/nodes' is exhausted."), nil, []string{"CapacityExhausted: "}},
		"AQuotaInTheOperation":          {fail("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.  Limit: 24.0 in region europe-west4."), nil, []string{"QuotaExceeded: the task insert failed: QUOTA_EXCEEDED: Quota 'CPUS' exceeded."}},
		"AnInternalErrorInTheOperation": {fail("INTERNAL_ERROR", "Internal error. Please try again or contact Google Support."), nil, []string{"Transient: the task insert failed: INTERNAL_ERROR"}},
		"ARateInTheOperation":           {fail("RESOURCE_OPERATION_RATE_EXCEEDED", "Operation rate exceeded for resource."), nil, []string{"Throttled: the task insert failed"}},
		"AQuota":                        {refuse(403, "quotaExceeded", "Quota 'INSTANCES' exceeded. Limit: 72.0"), nil, []string{"QuotaExceeded: cannot create the instance: Quota 'INSTANCES' exceeded. Limit: 72.0 (quotaExceeded, status 403)"}},
		"APolicyOfTheOrganization":      {refuse(412, "conditionNotMet", "Constraint constraints/compute.vmExternalIpAccess violated for project 1."), nil, []string{"InvalidRequest: cannot create the instance", "conditionNotMet"}},
		"AnAPIThatIsOff":                {refuse(403, "accessNotConfigured", "Compute Engine API has not been used in project 1 before or it is disabled."), nil, []string{"PermissionDenied: cannot create the instance"}},
		"AnAccountWithoutTheRight":      {func(l *lab) { l.deny("compute.instances.create") }, nil, []string{"PermissionDenied: cannot create the instance", "Required 'compute.instances.create' permission"}},
		"AnAccountThatMayNotListVMs":    {func(l *lab) { l.deny("compute.instances.list") }, nil, []string{"PermissionDenied: cannot list the instances", "compute.instances.list"}},
		"AnAccountThatMayNotReadImages": {func(l *lab) { l.deny("compute.images.getFromFamily") }, nil, []string{"PermissionDenied: cannot read image"}},
		"AServerThatFails":              {refuse(500, "backendError", "Internal Error"), nil, []string{"Transient: cannot create the instance"}},
		"AServerThatIsOverloaded":       {refuse(503, "backendError", "The service is currently unavailable."), nil, []string{"Transient: cannot create the instance"}},
		"ACallTooMany":                  {refuse(403, "rateLimitExceeded", "Rate Limit Exceeded"), nil, []string{"Throttled: "}},
		"AKeyThatIsDeleted":             {func(l *lab) { l.DeleteKey(fakegcp.Account, l.keyID) }, nil, []string{"PermissionDenied: ", "cannot get a token", "invalid_grant"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakegcp.Options{})
			before := 0
			if tc.lab != nil {
				tc.lab(l)
				before = len(l.Instances())
			}
			vm := newVM("vm-1", nil)
			if tc.change != nil {
				tc.change(&vm.Spec.ForProvider)
			}
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				text := vm.GetCondition(xpv2.TypeSynced).Message
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(text, part) })
			}, nil)
			if n := len(l.Instances()) - before; n > 0 {
				t.Errorf("%d instances were created", n)
			}
		})
	}
}

// TestAFailedAllocationIsKnownWithinAMinute lets Compute Engine accept a creation for which it then has no capacity.
func TestAFailedAllocationIsKnownWithinAMinute(t *testing.T) {
	l := newLab(t, fakegcp.Options{Step: 20 * time.Second, ListedAfter: 3 * time.Second})
	l.Fail(fakegcp.Failure{Code: "ZONE_RESOURCE_POOL_EXHAUSTED", Message: "does not have enough resources available", Times: 1})
	var began, reported time.Time
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if began.IsZero() {
			began = time.Now()
		}
		if reported.IsZero() && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "CapacityExhausted: ") {
			reported = time.Now()
		}
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		if took := reported.Sub(began); reported.IsZero() || took > time.Minute {
			t.Errorf("reported after %s", took)
		}
		if calls, _ := l.Calls(); calls["compute.instances.insert"] != 2 || len(l.Instances()) != 1 {
			t.Errorf("calls %v, instances %+v, want a second creation under another request ID", calls, l.Instances())
		}
	})
}

func TestASpotVMThatIsTakenBackFails(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(*lab)
		want native.State
		text string
	}{
		"ByComputeEngine": {func(l *lab) { l.Preempt("vm-1") }, native.StateFailed, "Compute Engine took the spot VM back"},
		"ByAUser":         {func(l *lab) { l.PowerOff("vm-1") }, native.StateStopped, "TERMINATED"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, fakegcp.Options{Step: 5 * time.Second})
			vm := newVM("vm-1", nil)
			vm.Spec.ForProvider.Spot = &v1alpha1.Spot{}
			ended := false
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				if vm.Status.AtProvider.ProviderID != "" && !ended {
					ended = true
					tc.end(l)
				}
				return vm.Status.AtProvider.State == string(tc.want) && strings.Contains(vm.Status.AtProvider.StateText, tc.text)
			}, func(*v1alpha1.VirtualMachine) {
				before, _ := l.Calls()
				time.Sleep(10 * time.Minute)
				if after, _ := l.Calls(); tc.want == native.StateFailed && after["compute.zoneOperations.list"] != before["compute.zoneOperations.list"] {
					t.Errorf("the operations of a VM that is known to be taken back are listed again: %v", after)
				}
			})
		})
	}
}

// TestAnInstanceWhoseLabelWasRemovedIsNotLost removes the label by which the list shows the instance.
func TestAnInstanceWhoseLabelWasRemovedIsNotLost(t *testing.T) {
	l := newLab(t, fakegcp.Options{})
	removed := false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !removed {
			removed = true
			l.Unlabel("vm-1", labelVM)
		}
		return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, `instance vm-1 in zone europe-west4-a exists, and its label drover-vm is "": set it to "`+string(vm.UID))
	}, func(vm *v1alpha1.VirtualMachine) {
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "True" {
			t.Errorf("condition %+v", c)
		}
	})
}

// TestNothingIsConcludedFromAListThatLacksAZone loses a VM while its zone does not answer.
func TestNothingIsConcludedFromAListThatLacksAZone(t *testing.T) {
	l := newLab(t, fakegcp.Options{})
	vm := newVM("orphan", nil)
	vm.SetAnnotations(map[string]string{"crossplane.io/external-name": "0b0e7d2c-6a52-4a0b-9b53-00000000000f"})
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionObserve}
	l.Silence("zones/" + zone)
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		return strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "the list of instances is incomplete, because a zone did not answer")
	}, nil)
}

// TestAnInstanceThatStopsBeforeItRanIsStarted stops an instance while it is created.
func TestAnInstanceThatStopsBeforeItRanIsStarted(t *testing.T) {
	l := newLab(t, fakegcp.Options{Step: 10 * time.Second})
	stopped := false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.InstanceID != "" && !stopped {
			stopped = true
			l.PowerOff("vm-1")
		}
		return vm.Status.AtProvider.ProviderID != ""
	}, nil)
}

// TestAnInstanceThatIsRemovedBeforeItRanIsReported removes an instance while it is created.
func TestAnInstanceThatIsRemovedBeforeItRanIsReported(t *testing.T) {
	l := newLab(t, fakegcp.Options{Step: 10 * time.Second})
	removed, reported := "", false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if at := vm.Status.AtProvider; removed == "" && at.InstanceID != "" {
			removed = at.InstanceID
			l.Lose("vm-1")
		}
		reported = reported || strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "instance vm-1 was removed before it ran")
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		if all := l.Instances(); !reported || len(all) != 1 || all[0].ID == removed {
			t.Errorf("reported %t, instances %+v, want another one than %s", reported, all, removed)
		}
	})
}

func TestTheConsoleIsReadOnRequest(t *testing.T) {
	l := newLab(t, fakegcp.Options{})
	vm := newVM("vm-1", nil)
	vm.SetAnnotations(map[string]string{machinev1alpha1.AnnotationReadConsole: "true"})
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.InstanceID != "" {
			l.SetConsole("vm-1", strings.Repeat("noise\n", 10000)+"boot\njoin token: abcdef.0123456789abcdef\n")
		}
		return strings.Contains(vm.Status.AtProvider.Console, "boot\n")
	}, func(vm *v1alpha1.VirtualMachine) {
		if strings.Contains(vm.Status.AtProvider.Console, "abcdef.0123456789abcdef") {
			t.Errorf("the console has the token: %s", vm.Status.AtProvider.Console)
		}
	})
}

// TestDisksThatWereLeftAreListed lists a disk that no instance uses, with the labels of its VM.
func TestDisksThatWereLeftAreListed(t *testing.T) {
	l := newLab(t, fakegcp.Options{})
	l.AddDisk("left", zone, map[string]string{machinev1alpha1.TagInstallation: "i", labelVM: "x"})
	l.AddDisk("foreign", zone, map[string]string{machinev1alpha1.TagInstallation: "other"})
	c := cloudOf(l)
	opened, err := c.Provider.Open(c.Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	found, complete, err := opened.(*account).ListResources(t.Context(), "i")
	if err != nil || !complete || len(found) != 1 || found[0].ID != "projects/my-project/zones/europe-west4-a/disks/left" || found[0].Tags[labelVM] != "" {
		t.Errorf("found %+v, complete %t, %v", found, complete, err)
	}
}

// TestARepeatedCreationHasTheSameRequestID loses the responses to two creations.
func TestARepeatedCreationHasTheSameRequestID(t *testing.T) {
	l := newLab(t, fakegcp.Options{})
	l.Break(fakegcp.Fault{Call: "compute.instances.insert", Times: 2, Refused: true})
	ids := map[string]bool{}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if id := vm.GetAnnotations()[v1alpha1.AnnotationRequestID]; id != "" {
			ids[id] = true
		}
		return vm.Status.AtProvider.ProviderID != ""
	}, func(*v1alpha1.VirtualMachine) {
		if len(ids) != 1 {
			t.Errorf("request IDs %v, want one", ids)
		}
	})
}

// TestTheRoleHasThePermissionsOfTheProvider compares the role of the example with the calls that the provider makes.
func TestTheRoleHasThePermissionsOfTheProvider(t *testing.T) {
	b, err := os.ReadFile("../../../examples/gcp/role.json")
	if err != nil {
		t.Fatal(err)
	}
	var role struct {
		IncludedPermissions []string `json:"includedPermissions"`
	}
	if err := json.Unmarshal(b, &role); err != nil {
		t.Fatal(err)
	}
	for _, p := range fakegcp.Permissions {
		if !slices.Contains(role.IncludedPermissions, p) {
			t.Errorf("the role lacks %s", p)
		}
	}
}
