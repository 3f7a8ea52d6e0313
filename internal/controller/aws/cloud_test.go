package aws

import (
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/aws/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	fakeaws "github.com/drover-dev/drover/test/fakes/aws"
	"github.com/drover-dev/drover/test/fakes/awsmodel"
)

func runs(vm *v1alpha1.VirtualMachine) bool { return vm.Status.AtProvider.ProviderID != "" }

func TestAnInstanceHasThePropertiesOfItsClass(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	vm := newVM("vm-1", map[string]string{"drover-cluster": "team-a/production", "drover-vm": "of-a-user"})
	p := &vm.Spec.ForProvider
	p.AvailabilityZone, p.Subnets = ptr.To("eu-west-1b"), []v1alpha1.ZoneSubnet{{AvailabilityZone: "eu-west-1b", SubnetID: "subnet-b"}}
	p.SecurityGroupIDs = []string{"sg-nodes", "sg-other"}
	p.RootVolume = &v1alpha1.VolumeParameters{SizeGiB: ptr.To(int32(50)), Type: "gp3", IOPS: ptr.To(int32(4000)), Throughput: ptr.To(int32(250)), Encrypted: ptr.To(true), KMSKeyID: ptr.To("alias/nodes")}
	p.Volumes = []v1alpha1.Volume{{DeviceName: "/dev/sdf", VolumeParameters: v1alpha1.VolumeParameters{SizeGiB: ptr.To(int32(100)), Type: "io2", IOPS: ptr.To(int32(5000)), DeleteOnTermination: ptr.To(false)}}}
	p.AssociatePublicIPAddress, p.IPv6AddressCount, p.SecondaryPrivateIPAddressCount = ptr.To(true), ptr.To(int32(1)), ptr.To(int32(1))
	p.SourceDestCheck = ptr.To(false)
	p.Spot = &v1alpha1.Spot{MaxPrice: ptr.To("0.097")}
	p.Placement = &v1alpha1.Placement{GroupName: ptr.To("spread"), PartitionNumber: ptr.To(int32(2)), Tenancy: ptr.To("dedicated")}
	p.CapacityReservation = &v1alpha1.CapacityReservation{Preference: ptr.To("none")}
	p.MetadataOptions = &v1alpha1.MetadataOptions{HTTPTokens: "optional", HTTPPutResponseHopLimit: ptr.To(int32(2))}
	p.KeyName, p.IAMInstanceProfile, p.CPUCredits = ptr.To("ops"), ptr.To("nodes"), ptr.To("unlimited")
	p.CoreCount, p.ThreadsPerCore, p.DetailedMonitoring, p.EBSOptimized, p.Enclave = ptr.To(int32(1)), ptr.To(int32(1)), ptr.To(true), ptr.To(true), ptr.To(false)
	p.PrimaryIPv6, p.IPv6PrefixCount, p.PrivateDNSHostnameType, p.AMDSEVSNP = ptr.To(true), ptr.To(int32(1)), ptr.To("resource-name"), ptr.To("enabled")
	p.VolumeTags, p.NetworkInterfaceTags = map[string]string{"backup": "no"}, map[string]string{"net": "pods"}
	nativetest.Until(t, cloudOf(l), vm, runs, func(vm *v1alpha1.VirtualMachine) {
		all := l.Instances()
		if len(all) != 1 {
			t.Fatalf("instances %+v", all)
		}
		got := all[0]
		for k, want := range map[string]string{
			"InstanceType": "m7i.large", "ImageId": "ami-ubuntu", "Placement.AvailabilityZone": "eu-west-1b", "NetworkInterface.1.SubnetId": "subnet-b",
			"NetworkInterface.1.SecurityGroupId.1": "sg-nodes", "NetworkInterface.1.SecurityGroupId.2": "sg-other", "NetworkInterface.1.AssociatePublicIpAddress": "true",
			"NetworkInterface.1.DeleteOnTermination": "true", "NetworkInterface.1.Ipv6AddressCount": "1", "NetworkInterface.1.SecondaryPrivateIpAddressCount": "1",
			"BlockDeviceMapping.1.DeviceName": "/dev/sda1", "BlockDeviceMapping.1.Ebs.VolumeSize": "50", "BlockDeviceMapping.1.Ebs.Throughput": "250",
			"BlockDeviceMapping.1.Ebs.KmsKeyId": "alias/nodes", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
			"BlockDeviceMapping.2.Ebs.Iops": "5000", "BlockDeviceMapping.2.Ebs.DeleteOnTermination": "false",
			"InstanceMarketOptions.SpotOptions.MaxPrice": "0.097", "InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time",
			"Placement.GroupName": "spread", "Placement.PartitionNumber": "2", "Placement.Tenancy": "dedicated",
			"CapacityReservationSpecification.CapacityReservationPreference": "none",
			"MetadataOptions.HttpTokens":                                     "optional", "MetadataOptions.HttpPutResponseHopLimit": "2",
			"KeyName": "ops", "IamInstanceProfile.Name": "nodes", "CreditSpecification.CpuCredits": "unlimited", "CpuOptions.ThreadsPerCore": "1",
			"Monitoring.Enabled": "true", "EbsOptimized": "true", "EnclaveOptions.Enabled": "false",
			"NetworkInterface.1.PrimaryIpv6": "true", "NetworkInterface.1.Ipv6PrefixCount": "1", "PrivateDnsNameOptions.HostnameType": "resource-name", "CpuOptions.AmdSevSnp": "enabled",
			"ClientToken": string(vm.UID) + "-1",
		} {
			if got.Form.Get(k) != want {
				t.Errorf("%s is %q, want %q", k, got.Form.Get(k), want)
			}
		}
		if got.Tags["drover-vm"] != string(vm.UID) || got.Tags["drover-cluster"] != "team-a/production" || got.Tags["Name"] != "vm-1" || len(got.Tags) != 3 {
			t.Errorf("tags %v", got.Tags)
		}
		for _, r := range l.Resources() {
			if r.Tags["drover-cluster"] == "" || (r.Tags["backup"] == "no") != strings.HasPrefix(r.ID, "vol-") || (r.Tags["net"] == "pods") != strings.HasPrefix(r.ID, "eni-") {
				t.Errorf("%s has the tags %v", r.ID, r.Tags)
			}
		}
		if string(got.UserData) != nativetest.UserData || !got.Unchecked {
			t.Errorf("user data %q, without source/destination check: %t", got.UserData, got.Unchecked)
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "aws:///eu-west-1b/"+got.ID || at.Place != "account "+accountID+", region eu-west-1" || at.AvailabilityZone != "eu-west-1b" || at.Lifecycle != "spot" {
			t.Errorf("observed %+v", at)
		}
		var kinds []string
		for _, a := range at.Addresses {
			kinds = append(kinds, a.Type)
		}
		if want := []string{"InternalIP", "InternalIP", "InternalIP", "ExternalIP"}; !slices.Equal(kinds, want) {
			t.Errorf("addresses %v, want the types %v", at.Addresses, want)
		}
	})
}

func TestFurtherNetworkInterfacesHaveTheDefaultsOfTheInstance(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	vm := newVM("vm-1", nil)
	vm.Spec.ForProvider.NetworkInterfaces = []v1alpha1.NetworkInterface{{}, {SecurityGroupIDs: []string{"sg-other"}, Type: ptr.To("efa"), NetworkCardIndex: ptr.To(int32(1))}}
	nativetest.Until(t, cloudOf(l), vm, runs, func(vm *v1alpha1.VirtualMachine) {
		form := l.Instances()[0].Form
		for k, want := range map[string]string{
			"NetworkInterface.2.DeviceIndex": "1", "NetworkInterface.2.SubnetId": "subnet-a", "NetworkInterface.2.SecurityGroupId.1": "sg-nodes",
			"NetworkInterface.3.SecurityGroupId.1": "sg-other", "NetworkInterface.3.InterfaceType": "efa", "NetworkInterface.3.NetworkCardIndex": "1",
			"MetadataOptions.HttpTokens": "required", "MetadataOptions.HttpPutResponseHopLimit": "1",
		} {
			if form.Get(k) != want {
				t.Errorf("%s is %q, want %q", k, form.Get(k), want)
			}
		}
		if n := len(vm.Status.AtProvider.Addresses); n != 3 {
			t.Errorf("addresses %v, want one per interface", vm.Status.AtProvider.Addresses)
		}
	})
}

func TestErrorsNameTheirCause(t *testing.T) {
	refuse := func(status int, code, message string) func(*lab) {
		return func(l *lab) {
			l.Break(fakeaws.Fault{Call: "RunInstances", Status: status, Code: code, Message: message})
		}
	}
	type parameters = v1alpha1.VirtualMachineParameters
	cases := map[string]struct {
		lab    func(*lab)
		change func(*parameters)
		want   []string
	}{
		"AnImageThatDoesNotExist":      {nil, func(p *parameters) { p.ImageID = ptr.To("ami-x") }, []string{`InvalidRequest: forProvider.imageID: "ami-x"`}},
		"AnImageThatIsNotAvailable":    {nil, func(p *parameters) { p.ImageID = ptr.To("ami-pending") }, []string{`InvalidRequest: forProvider.imageID: "ami-pending": the image is pending`}},
		"AnImageOfAnotherArchitecture": {nil, func(p *parameters) { p.InstanceType = ptr.To("m7g.large") }, []string{"InvalidRequest: cannot create the instance: The architecture 'arm64' of the specified instance type"}},
		"AVolumeThatIsTooSmall":        {nil, func(p *parameters) { p.RootVolume.SizeGiB = ptr.To(int32(4)) }, []string{"InvalidRequest: forProvider.rootVolume.sizeGiB: invalid value 4: must be at least 8"}},
		"AZoneWithoutASubnet": {nil, func(p *parameters) {
			p.SubnetID, p.AvailabilityZone, p.Subnets = nil, ptr.To("eu-west-1c"), []v1alpha1.ZoneSubnet{{AvailabilityZone: "eu-west-1a", SubnetID: "subnet-a"}}
		}, []string{`InvalidRequest: forProvider.availabilityZone: "eu-west-1c"`, `only ["eu-west-1a"]`}},
		"ASubnetOfAnotherZone":        {nil, func(p *parameters) { p.AvailabilityZone = ptr.To("eu-west-1b") }, []string{"InvalidRequest: cannot create the instance", "is not in the Availability Zone"}},
		"ATagOfTheCloud":              {nil, func(p *parameters) { p.VolumeTags = map[string]string{"aws:x": "y"} }, []string{"InvalidRequest: forProvider.volumeTags", `"aws:x"`}},
		"ATagThatIsTooLong":           {nil, func(p *parameters) { p.Tags = map[string]string{"x": strings.Repeat("y", 257)} }, []string{"InvalidRequest: forProvider.tags: invalid value of x"}},
		"ASubnetThatDoesNotExist":     {nil, func(p *parameters) { p.SubnetID = ptr.To("subnet-x") }, []string{"InvalidRequest: cannot create the instance", "(InvalidSubnetID.NotFound, status 400)"}},
		"AKeyPairThatDoesNotExist":    {nil, func(p *parameters) { p.KeyName = ptr.To("nobody") }, []string{"InvalidRequest: ", "InvalidKeyPair.NotFound"}},
		"ATypeThatTheZoneDoesNotHave": {refuse(400, "Unsupported", "Your requested instance type (m7i.large) is not supported in your requested Availability Zone (eu-west-1a)."), nil, []string{"InvalidRequest: cannot create the instance", "Unsupported, status 400"}},
		"AReservationThatIsFull": {nil, func(p *parameters) {
			p.CapacityReservation = &v1alpha1.CapacityReservation{ID: ptr.To("cr-full")}
		}, []string{"CapacityExhausted: cannot create the instance", "ReservationCapacityExceeded"}},
		"NoCapacity":               {refuse(500, "InsufficientInstanceCapacity", "We currently do not have sufficient m7i.large capacity in the Availability Zone you requested (eu-west-1a)."), nil, []string{"CapacityExhausted: cannot create the instance", "InsufficientInstanceCapacity"}},
		"NoAddresses":              {refuse(400, "InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet 'subnet-a' to satisfy the requested number of instances."), nil, []string{"CapacityExhausted: "}},
		"APriceAboveTheLimit":      {refuse(400, "SpotMaxPriceTooLow", "Your Spot request price of 0.01 is lower than the minimum required Spot request fulfillment price of 0.03."), nil, []string{"CapacityExhausted: "}},
		"AQuota":                   {refuse(400, "VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of 32 allows for the instance bucket that the specified instance type belongs to."), nil, []string{"QuotaExceeded: "}},
		"AQuotaOfSpotInstances":    {refuse(400, "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"), nil, []string{"QuotaExceeded: "}},
		"AUserWithoutTheRight":     {func(l *lab) { l.deny("RunInstances") }, nil, []string{"PermissionDenied: cannot create the instance: You are not authorized to perform this operation", "UnauthorizedOperation, status 403"}},
		"AUserWhoMayNotReadImages": {func(l *lab) { l.deny("DescribeImages") }, nil, []string{"PermissionDenied: cannot read image", "UnauthorizedOperation"}},
		"AServerThatFails":         {refuse(500, "InternalError", "An internal error has occurred"), nil, []string{"Transient: cannot create the instance"}},
		"AServerThatIsOverloaded":  {refuse(503, "Unavailable", "The server is overloaded and can't handle the request."), nil, []string{"Transient: cannot create the instance"}},
		"ACallTooMany":             {refuse(503, "RequestLimitExceeded", "Request limit exceeded."), nil, []string{"Throttled: cannot create the instance"}},
		"ASecretThatIsWrong": {func(l *lab) {
			l.SetKey(keyID, fakeaws.Key{Secret: "another", Account: accountID})
		}, nil, []string{"PermissionDenied: cannot read the ID of the account", "SignatureDoesNotMatch"}},
		"AKeyThatIsDeleted": {func(l *lab) { l.RemoveKey(keyID) }, nil, []string{"PermissionDenied: ", "InvalidClientTokenId, status 403"}},
	}
	m := awsmodel.Load(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, m, fakeaws.Options{})
			if tc.lab != nil {
				tc.lab(l)
			}
			vm := newVM("vm-1", nil)
			if tc.change != nil {
				tc.change(&vm.Spec.ForProvider)
			}
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				text := vm.GetCondition(xpv2.TypeSynced).Message
				return !slices.ContainsFunc(tc.want, func(part string) bool { return !strings.Contains(text, part) })
			}, nil)
			if n := len(l.Instances()); n > 0 {
				t.Errorf("%d instances exist", n)
			}
		})
	}
}

// TestAnAllocationThatFailsIsReportedWithItsClass terminates the instance before it runs, as EC2 does it if it accepted a
// creation that it cannot carry out. The next instance has another token.
func TestAnAllocationThatFailsIsReportedWithItsClass(t *testing.T) {
	m := awsmodel.Load(t)
	for code, class := range map[string]string{
		"Server.InsufficientInstanceCapacity": "CapacityExhausted", "Client.VolumeLimitExceeded": "QuotaExceeded", "Client.InternalError": "PermissionDenied",
		"Client.InvalidSnapshot.NotFound": "InvalidRequest", "Server.InternalError": "Transient",
	} {
		t.Run(code, func(t *testing.T) {
			if !m.EC2.Documents(code) {
				t.Errorf("Amazon's documentation has no reason %s", code)
			}
			l := newLab(t, m, fakeaws.Options{ShownAfter: 5 * time.Second, Step: 10 * time.Second})
			l.FailNext(code, "as EC2 words it")
			reported, began := time.Duration(0), time.Time{}
			nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
				if began.IsZero() {
					began = time.Now()
				}
				text := vm.GetCondition(xpv2.TypeSynced).Message
				if reported == 0 && strings.Contains(text, class+": EC2 terminated instance i-") && strings.Contains(text, code+": as EC2 words it") {
					reported = time.Since(began)
				}
				return runs(vm)
			}, func(vm *v1alpha1.VirtualMachine) {
				if reported == 0 || reported > time.Minute {
					t.Errorf("the failed allocation is reported after %s, want within a minute", reported)
				}
				if all := l.Instances(); len(all) != 1 || all[0].Form.Get("ClientToken") != string(vm.UID)+"-2" {
					t.Errorf("instances %+v, want one of the second attempt", all)
				}
			})
		})
	}
}

// TestAnInstanceOfTheTokenWithOtherParametersIsUsed loses the response to a creation, and changes the user data before the
// creation is repeated, as a new join token does it.
func TestAnInstanceOfTheTokenWithOtherParametersIsUsed(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{ShownAfter: 20 * time.Second})
	vm := newVM("vm-1", nil)
	changed := false
	l.Break(fakeaws.Fault{Call: "RunInstances", Times: 1, Lost: true})
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if calls, _ := l.Calls(); calls["RunInstances"] == 1 && !changed {
			changed = true
			l.ChangeToken(string(vm.UID) + "-1")
		}
		return runs(vm)
	}, func(*v1alpha1.VirtualMachine) {
		if _, codes := l.judge.Judged(); codes["IdempotentParameterMismatch"] == 0 {
			t.Errorf("codes %v, want IdempotentParameterMismatch", codes)
		}
		if n := len(l.Instances()); n != 1 {
			t.Errorf("%d instances, want 1", n)
		}
	})
}

// TestATokenWhoseInstanceIsGoneIsNotUsedForEver loses the response to a creation whose instance then ends, and has the
// parameters change.
func TestATokenWhoseInstanceIsGoneIsNotUsedForEver(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	vm := newVM("vm-1", nil)
	l.Break(fakeaws.Fault{Call: "RunInstances", Times: 1, Lost: true, Then: func() {
		i := l.Instances()[0]
		l.Vanish(i.ID)
		l.ChangeToken(i.Form.Get("ClientToken"))
	}})
	nativetest.Until(t, cloudOf(l), vm, runs, func(vm *v1alpha1.VirtualMachine) {
		if all := l.Instances(); len(all) != 1 || all[0].Form.Get("ClientToken") != string(vm.UID)+"-2" {
			t.Errorf("instances %+v, want one of the second attempt", all)
		}
	})
}

// TestAForgottenTokenCreatesNoSecondInstance has EC2 forget the token while the response to the creation is lost and the provider
// does not run for a day: the instance is found by its tag.
func TestAForgottenTokenCreatesNoSecondInstance(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	l.Break(fakeaws.Fault{Call: "RunInstances", Times: 1, Lost: true, Then: l.ForgetTokens})
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), runs, func(*v1alpha1.VirtualMachine) {
		if calls, _ := l.Calls(); calls["RunInstances"] != 1 {
			t.Errorf("calls %v, want 1 RunInstances", calls)
		}
	})
}

func TestASpotInstanceThatIsTakenBackFails(t *testing.T) {
	m := awsmodel.Load(t)
	for name, tc := range map[string]struct {
		take func(*lab, string)
		want string
	}{
		"WithANotice":    {func(l *lab, id string) { l.Mark(id) }, "running, spot request marked-for-termination"},
		"WithoutANotice": {func(l *lab, id string) { l.Interrupt(id) }, "terminated: Server.SpotInstanceTermination: Spot instance termination"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, m, fakeaws.Options{})
			vm := newVM("vm-1", nil)
			vm.Spec.ForProvider.Spot = &v1alpha1.Spot{}
			taken := false
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				if runs(vm) && !taken {
					taken = true
					tc.take(l, l.ID("vm-1"))
				}
				return vm.Status.AtProvider.State == "Failed"
			}, func(vm *v1alpha1.VirtualMachine) {
				if at := vm.Status.AtProvider; at.StateText != tc.want {
					t.Errorf("state %q, want %q", at.StateText, tc.want)
				}
				if c := vm.GetCondition(xpv2.TypeReady); c.Status != "False" {
					t.Errorf("condition %+v", c)
				}
			})
		})
	}
}

// TestAnInstanceThatEC2DoesNotShowForAMomentIsNotLost hides a new instance from lists after it was shown.
func TestAnInstanceThatEC2DoesNotShowForAMomentIsNotLost(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	hidden := time.Time{}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if runs(vm) && hidden.IsZero() {
			hidden = time.Now()
			l.Hide(2 * time.Minute)
		}
		if vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing {
			t.Fatal("the VM counts as lost")
		}
		return !hidden.IsZero() && time.Since(hidden) > 4*time.Minute && vm.GetCondition(xpv2.TypeSynced).Status == "True"
	}, nil)
}

func TestAnInstanceWithoutTagsIsFoundByItsID(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	untagged := time.Time{}
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if runs(vm) && untagged.IsZero() {
			untagged = time.Now()
			l.Untag(l.ID("vm-1"))
		}
		if vm.GetCondition(xpv2.TypeReady).Reason == machinev1alpha1.ReasonMissing {
			t.Fatal("the VM counts as lost")
		}
		return !untagged.IsZero() && time.Since(untagged) > 20*time.Minute
	}, nil)
}

func TestARoleIsAssumedOnceAnHour(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	c := cloudOf(l)
	spec := &c.Config.(*v1alpha1.ClusterProviderConfig).Spec
	spec.RoleARN, spec.ExternalID = roleARN, "tenant-1"
	began := time.Time{}
	nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if began.IsZero() {
			began = time.Now()
		}
		return runs(vm) && time.Since(began) > 20*time.Minute
	}, func(vm *v1alpha1.VirtualMachine) {
		if place := vm.Status.AtProvider.Place; place != "account 210987654321, region eu-west-1" {
			t.Errorf("the place is %q, want the account of the role", place)
		}
		if calls, _ := l.Calls(); calls["AssumeRole"] != 1 {
			t.Errorf("calls %v, want 1 AssumeRole", calls)
		}
	})
}

func TestARoleThatMayNotBeAssumedIsReported(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	c := cloudOf(l)
	c.Config.(*v1alpha1.ClusterProviderConfig).Spec.RoleARN = roleARN // Without the external ID.
	nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		text := vm.GetCondition(xpv2.TypeSynced).Message
		return strings.Contains(text, "PermissionDenied: cannot read the ID of the account") && strings.Contains(text, "AccessDenied")
	}, nil)
}

func TestTheConsoleIsReadOnRequest(t *testing.T) {
	m := awsmodel.Load(t)
	for name, kind := range map[string]string{"OfANitroInstance": "m7i.large", "OfAnOlderInstance": "m4.large"} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, m, fakeaws.Options{})
			vm := newVM("vm-1", nil)
			vm.Spec.ForProvider.InstanceType = ptr.To(kind)
			vm.SetAnnotations(map[string]string{machinev1alpha1.AnnotationReadConsole: "true"})
			nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
				if id := vm.Status.AtProvider.InstanceID; id != "" {
					l.SetConsole(id, "boot\njoin token: abcdef.0123456789abcdef\n")
				}
				return strings.HasPrefix(vm.Status.AtProvider.Console, "boot\n")
			}, nil)
		})
	}
}

// TestAnAdoptedInstanceIsNotChanged observes an instance with the source/destination check.
func TestAnAdoptedInstanceIsNotChanged(t *testing.T) {
	l := newLab(t, awsmodel.Load(t), fakeaws.Options{})
	vm := newVM("vm-1", nil)
	vm.Spec.ForProvider.SourceDestCheck = ptr.To(false)
	vm.SetAnnotations(map[string]string{"crossplane.io/external-name": l.CreateAt(accountID, "vm-1", nil, time.Unix(0, 0))})
	nativetest.Until(t, cloudOf(l), vm, runs, func(vm *v1alpha1.VirtualMachine) {
		if calls, _ := l.Calls(); calls["ModifyNetworkInterfaceAttribute"] != 0 || calls["RunInstances"] != 0 {
			t.Errorf("calls %v", calls)
		}
		if !slices.ContainsFunc(vm.Status.AtProvider.Addresses, func(a nativev1alpha1.Address) bool { return a.Type == "InternalIP" }) {
			t.Errorf("addresses %v", vm.Status.AtProvider.Addresses)
		}
	})
}

// TestEveryErrorOfTheFakeIsDocumented has the fake refuse requests, and compares its codes with Amazon's documentation.
func TestEveryErrorOfTheFakeIsDocumented(t *testing.T) {
	m := awsmodel.Load(t)
	l := newLab(t, m, fakeaws.Options{Limited: true})
	account, err := open(rewriting{l.judge, nil}, time.Now)(cloudOf(l).Config, l.credentials())
	if err != nil {
		t.Fatal(err)
	}
	vm := newVM("vm-1", nil)
	vm.SetAnnotations(map[string]string{"crossplane.io/external-name": "i-00000000000000000"})
	if err := account.Delete(t.Context(), vm); err != nil {
		t.Error(err)
	}
	l.RemoveKey(keyID)
	_, _ = account.Place(t.Context())
	_, _, _ = account.List(t.Context(), "any")
	l.rotate()
	l.SetKey(keyID, fakeaws.Key{Secret: "another", Account: accountID})
	_, _, _ = account.List(t.Context(), "any")
	_, codes := l.judge.Judged()
	if len(codes) < 4 {
		t.Errorf("codes %v, want at least 4", codes)
	}
	for code := range codes {
		if !documented(m, code) {
			t.Errorf("code %s is not documented", code)
		}
	}
}
