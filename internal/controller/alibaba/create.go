package alibaba

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/alibaba/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// maxUserData is the maximum size of user data in bytes, before base64.
const maxUserData = 32 << 10

// Create creates and starts the instance.
func (a *account) Create(ctx context.Context, vm *v1alpha1.VirtualMachine, userData native.UserData) error {
	token := vm.GetAnnotations()[v1alpha1.AnnotationClientToken]
	if token == "" {
		return &native.Error{Class: fn.ErrorTransient, Err: fmt.Errorf("the annotation %s must have the ClientToken", v1alpha1.AnnotationClientToken), Refused: true}
	}
	data, err := userData(ctx)
	if err != nil {
		return err
	}
	encoded, err := native.EncodeUserData(data, maxUserData)
	if err != nil {
		return err
	}
	params := parametersOf(vm.Spec.ForProvider, string(vm.GetUID()))
	params["ClientToken"] = token
	if encoded != "" {
		params["UserData"] = encoded
	}
	var out struct {
		InstanceIdSets struct{ InstanceIdSet []string }
	}
	if err := a.callRegion(ctx, "RunInstances", params, &out); err != nil {
		return classify("cannot create the instance", err)
	}
	if len(out.InstanceIdSets.InstanceIdSet) == 0 {
		return errNoInstance
	}
	meta.SetExternalName(vm, out.InstanceIdSets.InstanceIdSet[0])
	return nil
}

// vSwitchOf returns the ID of the vSwitch, or "" if the spec has none for its zone.
func vSwitchOf(p v1alpha1.VirtualMachineParameters) string {
	for _, s := range p.VSwitches {
		if p.ZoneID != nil && s.ZoneID == *p.ZoneID {
			return s.VSwitchID
		}
	}
	return ptr.Deref(p.VSwitchID, "")
}

// instanceName returns the name in the console. It must begin with a letter, and a name of Kubernetes may begin
// with a digit.
func instanceName(name string) string {
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		return "vm-" + name
	}
	return name
}

// parametersOf returns the parameters of RunInstances, except the token and the user data. The order of disks,
// security groups and tags is always the same: a repeated request must equal the first one.
func parametersOf(p v1alpha1.VirtualMachineParameters, uid string) map[string]string {
	out := map[string]string{"Amount": "1", "InstanceName": instanceName(ptr.Deref(p.Name, "")), "VSwitchId": vSwitchOf(p)}
	set := func(key string, value *string) {
		if value != nil && *value != "" {
			out[key] = *value
		}
	}
	number := func(key string, value *int32) {
		if value != nil {
			out[key] = strconv.Itoa(int(*value))
		}
	}
	flag := func(key string, value *bool) {
		if value != nil {
			out[key] = strconv.FormatBool(*value)
		}
	}
	set("HostName", p.Name)
	set("ZoneId", p.ZoneID)
	set("InstanceType", p.InstanceType)
	set("ImageId", p.ImageID)
	set("ImageFamily", p.ImageFamily)
	set("PrivateIpAddress", p.PrivateIPAddress)
	number("Ipv6AddressCount", p.IPv6AddressCount)
	number("InternetMaxBandwidthOut", p.InternetMaxBandwidthOut)
	number("InternetMaxBandwidthIn", p.InternetMaxBandwidthIn)
	set("InternetChargeType", p.InternetChargeType)
	set("SpotStrategy", ptr.To(string(p.SpotStrategy)))
	set("SpotPriceLimit", p.SpotPriceLimit)
	number("SpotDuration", p.SpotDurationHours)
	set("CreditSpecification", p.CreditSpecification)
	set("IoOptimized", p.IOOptimized)
	set("KeyPairName", p.KeyPairName)
	set("RamRoleName", p.RAMRoleName)
	set("HttpTokens", p.HTTPTokens)
	set("SecurityEnhancementStrategy", p.SecurityEnhancementStrategy)
	set("DeploymentSetId", p.DeploymentSetID)
	set("DedicatedHostId", p.DedicatedHostID)
	set("ResourceGroupId", p.ResourceGroupID)
	for n, id := range p.SecurityGroupIDs {
		out[fmt.Sprintf("SecurityGroupIds.%d", n+1)] = id
	}
	if d := p.SystemDisk; d != nil {
		set("SystemDisk.Category", ptr.To(string(d.Category)))
		number("SystemDisk.Size", d.SizeGiB)
		set("SystemDisk.PerformanceLevel", ptr.To(string(d.PerformanceLevel)))
		flag("SystemDisk.Encrypted", d.Encrypted)
		set("SystemDisk.KMSKeyId", d.KMSKeyID)
	}
	for n, d := range p.DataDisks {
		key := fmt.Sprintf("DataDisk.%d.", n+1)
		set(key+"DiskName", d.Name)
		set(key+"Description", d.Description)
		set(key+"Category", ptr.To(string(d.Category)))
		number(key+"Size", d.SizeGiB)
		set(key+"PerformanceLevel", ptr.To(string(d.PerformanceLevel)))
		set(key+"SnapshotId", d.SnapshotID)
		flag(key+"Encrypted", d.Encrypted)
		set(key+"KMSKeyId", d.KMSKeyID)
		flag(key+"DeleteWithInstance", d.DeleteWithInstance)
	}
	tags := map[string]string{tagVM: uid}
	for k, v := range p.Tags {
		if k != tagVM {
			tags[k] = v
		}
	}
	for n, k := range slices.Sorted(maps.Keys(tags)) {
		out[fmt.Sprintf("Tag.%d.Key", n+1)], out[fmt.Sprintf("Tag.%d.Value", n+1)] = k, tags[k]
	}
	return out
}

// validateTags validates the names and values of tags. The schema limits their number.
func validateTags(tags map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		v := tags[k]
		switch lower := strings.ToLower(k); {
		case k == "" || len([]rune(k)) > 128:
			return native.Invalid("tags", "invalid name %q: must have 1 to 128 characters", k)
		case strings.HasPrefix(lower, "aliyun") || strings.HasPrefix(lower, "acs:"):
			return native.Invalid("tags", "invalid name %q: must not begin with \"aliyun\" or \"acs:\"", k)
		case hasURL(k):
			return native.Invalid("tags", "invalid name %q: must not contain \"http://\" or \"https://\"", k)
		case len([]rune(v)) > 128:
			return native.Invalid("tags", "invalid value of %s: must have at most 128 characters", k)
		case hasURL(v):
			return native.Invalid("tags", "invalid value of %s: must not contain \"http://\" or \"https://\"", k)
		}
	}
	return nil
}

func hasURL(s string) bool { return strings.Contains(s, "http://") || strings.Contains(s, "https://") }
