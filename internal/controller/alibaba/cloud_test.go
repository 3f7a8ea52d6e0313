package alibaba

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	"github.com/drover-dev/drover/internal/native/nativetest"
	"github.com/drover-dev/drover/test/fakes"
	fakealibaba "github.com/drover-dev/drover/test/fakes/alibaba"
)

const (
	accountID = "1234567890123456"
	keyID     = "LTAI5tDroverExample0001"
	roleARN   = "acs:ram::6543210987654321:role/drover"
)

// A lab is a fake cloud with one AccessKey pair.
type lab struct {
	*fakealibaba.Cloud
	mu     sync.Mutex
	secret string
	n      int
	denied []string
}

func newLab(o fakealibaba.Options) *lab {
	l := &lab{Cloud: fakealibaba.New(o)}
	l.rotate()
	return l
}

func (l *lab) rotate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	l.secret = fmt.Sprintf("5ec4e7AccessKeySecret%012d", l.n)
	l.SetKey(keyID, fakealibaba.Key{Secret: l.secret, Account: accountID, Denied: l.denied, Roles: []string{roleARN}})
}

// deny removes the right to call actions.
func (l *lab) deny(actions ...string) {
	l.denied = actions
	l.rotate()
}

func (l *lab) credentials() credentials {
	l.mu.Lock()
	defer l.mu.Unlock()
	return credentials{AccessKeyID: keyID, AccessKeySecret: l.secret}
}

// id returns the ID of the instance with a name.
func (l *lab) id(name string) string {
	for _, i := range l.Instances() {
		if i.Name == name {
			return i.ID
		}
	}
	return ""
}

// reboots returns the reboots of the instance with a name.
func (l *lab) reboots(name string) (out []string) {
	for _, i := range l.Instances() {
		if i.Name == name {
			out = i.Reboots
		}
	}
	return out
}

func newVM(name string, attributes map[string]string) *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p := &vm.Spec.ForProvider
	p.Name, p.InstanceType, p.ImageID = ptr.To(name), ptr.To("ecs.g7.xlarge"), ptr.To("ubuntu_24_04_x64_20G_alibase_20250722.vhd")
	p.VSwitchID, p.SecurityGroupIDs = ptr.To("vsw-h"), []string{"sg-nodes"}
	p.SystemDisk = &v1alpha1.SystemDisk{Category: "cloud_essd", SizeGiB: ptr.To(int32(40))}
	p.Tags = attributes
	return vm
}

// cloudOf returns a lab for the cases that every cloud must pass.
func cloudOf(l *lab) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
	pc := &v1alpha1.ClusterProviderConfig{}
	pc.Spec.Region = "cn-hangzhou"
	return nativetest.Cloud[*v1alpha1.VirtualMachine, credentials]{
		Provider:    provider(fakes.InMemory(l)),
		AddToScheme: v1alpha1.AddToScheme,
		Config:      pc,
		Credentials: l.credentials,
		Rotate:      l.rotate,
		Secrets:     func() []string { return []string{l.credentials().AccessKeySecret} },
		VM:          newVM,
		Invalid: func(vm *v1alpha1.VirtualMachine) string {
			vm.Spec.ForProvider.SystemDisk = &v1alpha1.SystemDisk{SizeGiB: ptr.To(int32(10))}
			return "systemDisk.sizeGiB"
		},
		VMs: func() []nativetest.Existing {
			var out []nativetest.Existing
			for _, i := range l.Instances() {
				out = append(out, nativetest.Existing{Name: i.Name, UserData: i.UserData})
			}
			return out
		},
		// A disk of an instance that is being removed counts as the instance: it costs nothing more.
		Leftovers: func() []string {
			if len(l.Instances()) > 0 {
				return nil
			}
			return l.Disks()
		},
		Lose:    func(name string) { l.Lose(l.id(name)) },
		Stop:    func(name string) { l.PowerOff(l.id(name)) },
		Reboots: l.reboots,
		Fake:    l, CreateCall: "RunInstances",
		MostCalls: 8, MostDeletionCalls: 6, CreationTakes: 10 * time.Minute,
	}
}

func TestEveryCase(t *testing.T) {
	nativetest.Run(t, func(t *testing.T) nativetest.Cloud[*v1alpha1.VirtualMachine, credentials] {
		return cloudOf(newLab(fakealibaba.Options{
			ListedAfter: 5 * time.Second, Step: 4 * time.Second, RateLimit: 30, Refill: 100 * time.Millisecond,
		}))
	})
}

func TestAnInstanceHasThePropertiesOfItsClass(t *testing.T) {
	var booted fakealibaba.Booted
	l := newLab(fakealibaba.Options{Boot: func(b fakealibaba.Booted) string { booted = b; return "10.0.0.7" }})
	vm := newVM("vm-1", map[string]string{"drover-cluster": "team-a/production", "drover-vm": "of-a-user"})
	p := &vm.Spec.ForProvider
	p.ZoneID, p.VSwitches = ptr.To("cn-hangzhou-i"), []v1alpha1.ZoneVSwitch{{ZoneID: "cn-hangzhou-i", VSwitchID: "vsw-i"}}
	p.SecurityGroupIDs = []string{"sg-nodes", "sg-other"}
	p.SystemDisk.PerformanceLevel, p.SystemDisk.Encrypted = "PL1", ptr.To(true)
	p.DataDisks = []v1alpha1.DataDisk{{Category: "cloud_auto", SizeGiB: ptr.To(int32(100)), DeleteWithInstance: ptr.To(true), Name: ptr.To("data")}}
	p.InternetMaxBandwidthOut, p.InternetChargeType, p.IPv6AddressCount = ptr.To(int32(5)), ptr.To("PayByTraffic"), ptr.To(int32(1))
	p.SpotStrategy, p.SpotPriceLimit = v1alpha1.SpotWithPriceLimit, ptr.To("0.97")
	p.KeyPairName, p.RAMRoleName, p.HTTPTokens, p.IOOptimized = ptr.To("ops"), ptr.To("nodes"), ptr.To("required"), ptr.To("optimized")
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		return slices.ContainsFunc(vm.Status.AtProvider.Addresses, func(a nativev1alpha1.Address) bool { return a.Address == "10.0.0.7" })
	}, func(vm *v1alpha1.VirtualMachine) {
		all := l.Instances()
		if len(all) != 1 {
			t.Fatalf("instances %+v", all)
		}
		got := all[0]
		for k, want := range map[string]string{
			"InstanceName": "vm-1", "HostName": "vm-1", "InstanceType": "ecs.g7.xlarge", "ImageId": "ubuntu_24_04_x64_20G_alibase_20250722.vhd",
			"ZoneId": "cn-hangzhou-i", "VSwitchId": "vsw-i", "SecurityGroupIds.1": "sg-nodes", "SecurityGroupIds.2": "sg-other",
			"SystemDisk.Category": "cloud_essd", "SystemDisk.Size": "40", "SystemDisk.PerformanceLevel": "PL1", "SystemDisk.Encrypted": "true",
			"DataDisk.1.Category": "cloud_auto", "DataDisk.1.Size": "100", "DataDisk.1.DeleteWithInstance": "true", "DataDisk.1.DiskName": "data",
			"InternetMaxBandwidthOut": "5", "InternetChargeType": "PayByTraffic", "Ipv6AddressCount": "1", "SpotStrategy": "SpotWithPriceLimit",
			"SpotPriceLimit": "0.97", "KeyPairName": "ops", "RamRoleName": "nodes", "HttpTokens": "required", "IoOptimized": "optimized",
			"ClientToken": vm.GetAnnotations()[v1alpha1.AnnotationClientToken],
		} {
			if got.Params[k] != want {
				t.Errorf("%s is %q, want %q", k, got.Params[k], want)
			}
		}
		if got.Tags["drover-vm"] != string(vm.UID) || got.Tags["drover-cluster"] != "team-a/production" || len(got.Tags) != 2 {
			t.Errorf("tags %v", got.Tags)
		}
		if booted.UserData != nativetest.UserData || booted.Zone != "cn-hangzhou-i" {
			t.Errorf("booted with %+v", booted)
		}
		at := vm.Status.AtProvider
		if at.ProviderID != "cn-hangzhou."+got.ID || at.Place != "account "+accountID+", region cn-hangzhou" || at.ZoneID != "cn-hangzhou-i" {
			t.Errorf("observed %+v", at)
		}
		var kinds []string
		for _, a := range at.Addresses {
			kinds = append(kinds, a.Type)
		}
		if want := []string{"InternalIP", "InternalIP", "ExternalIP"}; !slices.Equal(kinds, want) {
			t.Errorf("addresses %v, want the types %v", at.Addresses, want)
		}
	})
}

func TestErrorsNameTheirCause(t *testing.T) {
	refuse := func(status int, code, message string) func(*lab) {
		return func(l *lab) {
			l.Break(fakealibaba.Fault{Call: "RunInstances", Status: status, Code: code, Message: message})
		}
	}
	type parameters = v1alpha1.VirtualMachineParameters
	cases := map[string]struct {
		lab    func(*lab)
		change func(*parameters)
		want   []string
	}{
		"AnImageThatDoesNotExist":      {nil, func(p *parameters) { p.ImageID = ptr.To("m-x") }, []string{`InvalidRequest: forProvider.imageID: "m-x"`}},
		"AnImageFamilyThatIsEmpty":     {nil, func(p *parameters) { p.ImageID, p.ImageFamily = nil, ptr.To("acs:x") }, []string{`InvalidRequest: forProvider.imageFamily: "acs:x"`}},
		"AnImageWithoutCloudInit":      {nil, func(p *parameters) { p.ImageID = ptr.To("m-without-cloud-init") }, []string{"InvalidRequest: forProvider.imageID", "does not support cloud-init"}},
		"AnImageOfAnotherArchitecture": {nil, func(p *parameters) { p.InstanceType = ptr.To("ecs.g8y.xlarge") }, []string{"InvalidRequest: forProvider.imageID", "the image is for x86, and instance type ecs.g8y.xlarge is Arm"}},
		"ATypeThatDoesNotExist":        {nil, func(p *parameters) { p.InstanceType = ptr.To("ecs.x.large") }, []string{`InvalidRequest: forProvider.instanceType: "ecs.x.large"`}},
		"ADiskThatIsTooSmall":          {nil, func(p *parameters) { p.SystemDisk.SizeGiB = ptr.To(int32(10)) }, []string{"InvalidRequest: forProvider.systemDisk.sizeGiB: invalid value 10: must be at least 20"}},
		"AZoneWithoutAVSwitch": {nil, func(p *parameters) {
			p.VSwitchID, p.ZoneID, p.VSwitches = nil, ptr.To("cn-hangzhou-k"), []v1alpha1.ZoneVSwitch{{ZoneID: "cn-hangzhou-h", VSwitchID: "vsw-h"}}
		}, []string{`InvalidRequest: forProvider.zoneID: "cn-hangzhou-k"`, `only ["cn-hangzhou-h"]`}},
		"ATagOfTheCloud":           {nil, func(p *parameters) { p.Tags = map[string]string{"acs:x": "y"} }, []string{"InvalidRequest: forProvider.tags", `"acs:x"`}},
		"ATagWithAnAddress":        {nil, func(p *parameters) { p.Tags = map[string]string{"x": "http://y"} }, []string{"InvalidRequest: forProvider.tags: invalid value of x"}},
		"AVSwitchThatDoesNotExist": {nil, func(p *parameters) { p.VSwitchID = ptr.To("vsw-x") }, []string{"InvalidRequest: cannot create the instance", "(InvalidVSwitchId.NotFound, status 404)"}},
		"AKeyPairThatDoesNotExist": {nil, func(p *parameters) { p.KeyPairName = ptr.To("nobody") }, []string{"InvalidRequest: cannot create the instance", "InvalidKeyPairName.NotFound"}},
		"NoStock":                  {refuse(403, "OperationDenied.NoStock", "Sales of this resource are temporarily suspended in the specified zone."), nil, []string{"CapacityExhausted: cannot create the instance", "OperationDenied.NoStock"}},
		"NoAddresses":              {refuse(403, "InvalidVSwitchId.IpNotEnough", "The specified VSwitch has not enough IpAddress."), nil, []string{"CapacityExhausted: "}},
		"APriceAboveTheLimit":      {refuse(400, "InvalidSpotPriceLimit.LowerThanPublicPrice", "The specified spotPriceLimit can't be lower than current public price."), nil, []string{"CapacityExhausted: "}},
		"AQuota":                   {refuse(400, "QuotaExceed.ElasticQuota", "The number of the specified ECS instances has exceeded the quota of the specified instance type."), nil, []string{"QuotaExceeded: "}},
		"AnAccountWithoutMoney":    {refuse(403, "InvalidAccountStatus.NotEnoughBalance", "Your account does not have enough balance."), nil, []string{"QuotaExceeded: "}},
		"AUserWithoutTheRight":     {func(l *lab) { l.deny("RunInstances") }, nil, []string{"PermissionDenied: cannot create the instance", "Forbidden.RAM"}},
		"AUserWhoMayNotReadImages": {func(l *lab) { l.deny("DescribeImages") }, nil, []string{"PermissionDenied: cannot read image", "Forbidden.RAM"}},
		"AServerThatFails":         {refuse(500, "InternalError", "The request processing has failed due to some unknown error."), nil, []string{"Transient: cannot create the instance"}},
		"AServerThatIsOverloaded":  {refuse(503, "ServiceUnavailable", "The request has failed due to a temporary failure of the server."), nil, []string{"Transient: cannot create the instance"}},
		"ACallTooMany":             {refuse(400, "Throttling.Api", "Request was denied due to api flow control."), nil, []string{"Throttled: cannot create the instance", "(Throttling.Api, status 400)"}},
		"ATokenInUse":              {refuse(400, "IdempotentParameterMismatch", "The specified parameter has changed while using an already used clientToken."), nil, []string{"Transient: cannot create the instance"}},
		"ASecretThatIsWrong": {func(l *lab) {
			l.SetKey(keyID, fakealibaba.Key{Secret: "another", Account: accountID})
		}, nil, []string{"PermissionDenied: cannot read the ID of the account", "SignatureDoesNotMatch"}},
		"AKeyThatIsDeleted": {func(l *lab) { l.RemoveKey(keyID) }, nil, []string{"PermissionDenied: ", "InvalidAccessKeyId.NotFound"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLab(fakealibaba.Options{})
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

// TestASpotInstanceThatIsTakenBackFails locks a spot instance, as ECS does it five minutes before it is removed.
func TestASpotInstanceThatIsTakenBackFails(t *testing.T) {
	l := newLab(fakealibaba.Options{})
	vm := newVM("vm-1", nil)
	vm.Spec.ForProvider.SpotStrategy = v1alpha1.SpotAsPriceGo
	locked := false
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if vm.Status.AtProvider.ProviderID != "" && !locked {
			locked = true
			l.Lock(l.id("vm-1"), "Recycling")
		}
		return vm.Status.AtProvider.State == "Failed"
	}, func(vm *v1alpha1.VirtualMachine) {
		if at := vm.Status.AtProvider; at.StateText != "Running, locked: Recycling" || !slices.Equal(at.LockReasons, []string{"Recycling"}) {
			t.Errorf("observed %+v", at)
		}
		if c := vm.GetCondition(xpv2.TypeReady); c.Status != "False" {
			t.Errorf("condition %+v", c)
		}
	})
}

// TestAnInstanceThatIsRemovedBeforeItRanIsReported removes an instance while it is created, as ECS does it if the
// creation fails after it was accepted.
func TestAnInstanceThatIsRemovedBeforeItRanIsReported(t *testing.T) {
	l := newLab(fakealibaba.Options{Step: 10 * time.Second})
	removed, reported := "", false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if at := vm.Status.AtProvider; removed == "" && at.InstanceID != "" {
			removed = at.InstanceID
			l.Lose(removed)
		}
		reported = reported || removed != "" && strings.Contains(vm.GetCondition(xpv2.TypeSynced).Message, "instance "+removed+" was removed before it ran")
		return vm.Status.AtProvider.ProviderID != ""
	}, func(vm *v1alpha1.VirtualMachine) {
		if !reported {
			t.Error("the removal was not reported")
		}
		if all := l.Instances(); len(all) != 1 || all[0].ID == removed {
			t.Errorf("instances %+v, want another one than %s", all, removed)
		}
	})
}

// TestALostResponseToTheSecondCreationLeavesNothingBehind removes the first instance, and loses the response to the
// creation of the second one.
func TestALostResponseToTheSecondCreationLeavesNothingBehind(t *testing.T) {
	l := newLab(fakealibaba.Options{Step: 10 * time.Second})
	removed := false
	nativetest.Until(t, cloudOf(l), newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if at := vm.Status.AtProvider; !removed && at.InstanceID != "" {
			removed = true
			l.Lose(at.InstanceID)
			l.Break(fakealibaba.Fault{Call: "RunInstances", Times: 1, Lost: true})
		}
		return vm.Status.AtProvider.ProviderID != ""
	}, func(vm *v1alpha1.VirtualMachine) {
		if calls, _ := l.Calls(); calls["RunInstances"] != 2 {
			t.Errorf("calls %v, want 2 RunInstances", calls)
		}
		if n := len(l.Instances()); n != 1 {
			t.Errorf("%d instances, want 1", n)
		}
	})
}

func TestARoleIsAssumedOnceAnHour(t *testing.T) {
	l := newLab(fakealibaba.Options{})
	c := cloudOf(l)
	c.Config.(*v1alpha1.ClusterProviderConfig).Spec.RoleARN = roleARN
	began := time.Time{}
	nativetest.Until(t, c, newVM("vm-1", nil), func(vm *v1alpha1.VirtualMachine) bool {
		if began.IsZero() {
			began = time.Now()
		}
		return vm.Status.AtProvider.ProviderID != "" && time.Since(began) > 20*time.Minute
	}, func(vm *v1alpha1.VirtualMachine) {
		if place := vm.Status.AtProvider.Place; place != "account 6543210987654321, region cn-hangzhou" {
			t.Errorf("the place is %q, want the account of the role", place)
		}
		if calls, _ := l.Calls(); calls["AssumeRole"] != 1 {
			t.Errorf("calls %v, want 1 AssumeRole", calls)
		}
	})
}

func TestTheConsoleIsReadOnRequest(t *testing.T) {
	l := newLab(fakealibaba.Options{})
	vm := newVM("vm-1", nil)
	vm.SetAnnotations(map[string]string{machinev1alpha1.AnnotationReadConsole: "true"})
	nativetest.Until(t, cloudOf(l), vm, func(vm *v1alpha1.VirtualMachine) bool {
		if id := vm.Status.AtProvider.InstanceID; id != "" {
			l.SetConsole(id, "boot\njoin token: abcdef.0123456789abcdef\n")
		}
		return strings.HasPrefix(vm.Status.AtProvider.Console, "boot\n")
	}, nil)
}
