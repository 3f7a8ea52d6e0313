package azure

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Prepare validates the spec, and that no other VM has the name.
func (a *account) Prepare(ctx context.Context, vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	if err := validate(p); err != nil {
		return err
	}
	// A VM that cannot be listed could be created, and never observed.
	all, err := a.listed(ctx, time.Time{}, restingFor)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.name().is(plannedVM(vm)) && tagOf(other.Tags) != meta.GetExternalName(vm) {
			return foreign(vm)
		}
	}
	return nil
}

// foreign returns the error for a VM of the name that was not created for the managed resource.
func foreign(vm *v1alpha1.VirtualMachine) error {
	p := vm.Spec.ForProvider
	return native.Invalid("name", "%q: resource group %s has a VM of this name that was not created for this VM: delete it, or choose another name",
		ptr.Deref(p.Name, ""), ptr.Deref(p.ResourceGroup, ""))
}

const (
	maxTagKey, maxTagValue = 512, 256
	maxLUN                 = 64
)

var (
	notOfTagKey = regexp.MustCompile(`[<>%&\\?/]`)
	// ofAzure are the prefixes of names of tags that Azure keeps for itself.
	ofAzure = regexp.MustCompile(`(?i)^(microsoft|azure|windows)`)
)

// validate validates everything that needs no call and that the schema cannot validate.
func validate(p v1alpha1.VirtualMachineParameters) error {
	if err := validateIDs(p); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(p.Tags)) {
		switch {
		case strings.EqualFold(k, tagVM):
			return native.Invalid("tags", "invalid key %q: the provider sets this tag", k)
		case k == "" || len(k) > maxTagKey || notOfTagKey.MatchString(k):
			return native.Invalid("tags", `invalid key %q: must have 1 to %d characters, and none of <>%%&\?/`, k, maxTagKey)
		case ofAzure.MatchString(k):
			return native.Invalid("tags", "invalid key %q: must not begin with microsoft, azure or windows", k)
		case len(p.Tags[k]) > maxTagValue:
			return native.Invalid("tags", "the value of %s has %d characters: at most %d are allowed", k, len(p.Tags[k]), maxTagValue)
		}
	}
	luns := map[int32]int{}
	for n, d := range p.DataDisks {
		lun := lunOf(n, d)
		if other, ok := luns[lun]; ok {
			return native.Invalid(fmt.Sprintf("dataDisks[%d].lun", n), "invalid value %d: dataDisks[%d] has it", lun, other)
		}
		luns[lun] = n
	}
	return nil
}

// lunOf returns the logical unit number of a data disk.
func lunOf(n int, d v1alpha1.DataDisk) int32 {
	return ptr.Deref(d.LUN, int32(n%maxLUN))
}

// An id is the value of a field with the ID of a resource, and the types that it may have.
type id struct {
	field, value string
	types        []string
}

// validateIDs checks that each ID is of a resource of the right type.
func validateIDs(p v1alpha1.VirtualMachineParameters) error {
	for _, i := range idsOf(p) {
		parsed, err := arm.ParseResourceID(i.value)
		if err != nil || !slices.ContainsFunc(i.types, func(t string) bool { return strings.EqualFold(t, parsed.ResourceType.String()) }) {
			return native.Invalid(i.field, "%q: must be the ID of a resource of the type %s", i.value, strings.Join(i.types, " or "))
		}
	}
	return nil
}

// idsOf returns the IDs of a spec.
func idsOf(p v1alpha1.VirtualMachineParameters) []id {
	var out []id
	add := func(field string, value *string, types ...string) {
		if value != nil {
			out = append(out, id{field, *value, types})
		}
	}
	list := func(field string, values []string, types ...string) {
		for n := range values {
			add(fmt.Sprintf("%s[%d]", field, n), &values[n], types...)
		}
	}
	const encryptionSets = "Microsoft.Compute/diskEncryptionSets"
	if p.Image != nil {
		add("image.id", p.Image.ID, "Microsoft.Compute/images", "Microsoft.Compute/galleries/images", "Microsoft.Compute/galleries/images/versions")
	}
	if p.OSDisk != nil {
		add("osDisk.diskEncryptionSetID", p.OSDisk.DiskEncryptionSetID, encryptionSets)
	}
	for n, d := range p.DataDisks {
		at := fmt.Sprintf("dataDisks[%d].", n)
		add(at+"diskEncryptionSetID", d.DiskEncryptionSetID, encryptionSets)
		add(at+"sourceID", d.SourceID, "Microsoft.Compute/snapshots", "Microsoft.Compute/disks", "Microsoft.Compute/restorePointCollections/restorePoints/diskRestorePoints")
	}
	for n, i := range p.NetworkInterfaces {
		at := fmt.Sprintf("networkInterfaces[%d].", n)
		add(at+"subnetID", &p.NetworkInterfaces[n].SubnetID, "Microsoft.Network/virtualNetworks/subnets")
		add(at+"securityGroupID", i.SecurityGroupID, "Microsoft.Network/networkSecurityGroups")
		list(at+"applicationSecurityGroupIDs", i.ApplicationSecurityGroupIDs, "Microsoft.Network/applicationSecurityGroups")
		list(at+"loadBalancerBackendPoolIDs", i.LoadBalancerBackendPoolIDs, "Microsoft.Network/loadBalancers/backendAddressPools")
		list(at+"applicationGatewayBackendPoolIDs", i.ApplicationGatewayBackendPoolIDs, "Microsoft.Network/applicationGateways/backendAddressPools")
		if i.PublicIP != nil {
			add(at+"publicIP.prefixID", i.PublicIP.PrefixID, "Microsoft.Network/publicIPPrefixes")
		}
	}
	if p.Identities != nil {
		list("identities.userAssignedIDs", p.Identities.UserAssignedIDs, "Microsoft.ManagedIdentity/userAssignedIdentities")
	}
	add("proximityPlacementGroupID", p.ProximityPlacementGroupID, "Microsoft.Compute/proximityPlacementGroups")
	add("availabilitySetID", p.AvailabilitySetID, "Microsoft.Compute/availabilitySets")
	add("scaleSetID", p.ScaleSetID, "Microsoft.Compute/virtualMachineScaleSets")
	add("capacityReservationGroupID", p.CapacityReservationGroupID, "Microsoft.Compute/capacityReservationGroups")
	add("hostID", p.HostID, "Microsoft.Compute/hostGroups/hosts")
	add("hostGroupID", p.HostGroupID, "Microsoft.Compute/hostGroups")
	return out
}
