package azure

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v7"
	"k8s.io/utils/ptr"

	nativev1alpha1 "github.com/drover-dev/drover/apis/native/v1alpha1"
	cloudazure "github.com/drover-dev/drover/internal/cloud/azure"
	"github.com/drover-dev/drover/internal/native"
)

// tagVM is the tag of a VM, and of the resources beside it, with the UID of its managed resource.
const tagVM = "drover-vm"

// Provisioning states, in lower case.
const (
	provisioningCreating  = "creating"
	provisioningSucceeded = "succeeded"
	provisioningFailed    = "failed"
	provisioningDeleting  = "deleting"
)

// Power states: https://learn.microsoft.com/azure/virtual-machines/states-billing.
const (
	powerStarting = "starting"
	powerRunning  = "running"
)

const powerPrefix = "PowerState/"

// tagOf returns the value of the tag by which the provider finds a resource. Azure distinguishes no upper and lower case
// in the names of tags.
func tagOf(tags map[string]*string) string {
	for k, v := range tags {
		if strings.EqualFold(k, tagVM) {
			return ptr.Deref(v, "")
		}
	}
	return ""
}

// textsOf returns tags without the one of the provider.
func textsOf(tags map[string]*string) map[string]string {
	out := map[string]string{}
	for k, v := range tags {
		if !strings.EqualFold(k, tagVM) {
			out[k] = ptr.Deref(v, "")
		}
	}
	return out
}

// tagsWith returns the tags of a class with that of the provider.
func tagsWith(tags map[string]string, externalName string) map[string]*string {
	out := map[string]*string{tagVM: &externalName}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out[k] = ptr.To(tags[k])
	}
	return out
}

// powerOf returns the power state of a VM, without its prefix.
func powerOf(v *armcompute.VirtualMachine) string {
	if v.Properties == nil || v.Properties.InstanceView == nil {
		return ""
	}
	for _, s := range v.Properties.InstanceView.Statuses {
		if s == nil {
			continue
		}
		if rest, ok := strings.CutPrefix(ptr.Deref(s.Code, ""), powerPrefix); ok {
			return strings.ToLower(rest)
		}
	}
	return ""
}

// withPower returns a VM that was read with its instance view.
func withPower(v *armcompute.VirtualMachine) *machine {
	return &machine{VirtualMachine: v, power: powerOf(v)}
}

func (m machine) provisioning() string {
	if m.Properties == nil {
		return ""
	}
	return strings.ToLower(ptr.Deref(m.Properties.ProvisioningState, ""))
}

func (m machine) vmID() string {
	if m.Properties == nil {
		return ""
	}
	return ptr.Deref(m.Properties.VMID, "")
}

func (m machine) name() name { return nameOf(ptr.Deref(m.ID, "")) }

func (m machine) isSpot() bool {
	return m.Properties != nil && ptr.Deref(m.Properties.Priority, "") == armcompute.VirtualMachinePriorityTypesSpot
}

// isEphemeral reports whether the OS disk of a VM is on its host.
func (m machine) isEphemeral() bool {
	return m.Properties != nil && m.Properties.StorageProfile != nil && m.Properties.StorageProfile.OSDisk != nil && m.Properties.StorageProfile.OSDisk.DiffDiskSettings != nil
}

// textOf returns the state of a VM in the words of Azure.
func textOf(m machine) string {
	_, text := cloudazure.StateOf(m.provisioning(), m.power)
	if isEvicted(m) {
		text += ": Azure took the spot VM back"
	}
	return text
}

// hasFailed reports whether the creation of a VM failed: it is in the provisioning state Failed, and was never allocated.
// A VM that runs has this state if a change of it failed, such as an extension.
func hasFailed(m machine, finished bool) bool {
	return !finished && m.provisioning() == provisioningFailed && m.power != powerRunning && m.power != powerStarting
}

// stateOf returns the state of a VM. Azure starts a VM that this provider created: one that failed or stopped before it ran
// is incomplete.
func stateOf(m machine, created, finished bool) native.State {
	switch {
	case m.provisioning() == provisioningDeleting:
		return native.StateDeleting
	case m.power == powerRunning:
		return native.StateRunning
	case m.power == powerStarting:
		return native.StateCreating
	case hasFailed(m, finished) && created:
		return native.StateIncomplete
	case hasFailed(m, finished):
		return native.StateFailed
	case finished && isEvicted(m):
		return native.StateFailed
	case m.power == "" || !finished && m.provisioning() == provisioningCreating:
		return native.StateCreating
	case isStopped(m.power) && created && !finished:
		return native.StateIncomplete
	}
	return native.StateStopped
}

// isEvicted reports whether Azure took a spot VM back and deallocated it. Azure does not distinguish it from one that a user
// deallocated; one that was shut down is stopped.
func isEvicted(m machine) bool {
	return m.isSpot() && (m.power == "deallocating" || m.power == "deallocated")
}

// isStopped reports whether a VM with the power state can be started.
func isStopped(power string) bool {
	return power == "stopped" || power == "deallocated" || power == "hibernated"
}

// addressesOf returns the addresses that Azure assigned to a VM, in the order of its network interfaces.
func addressesOf(m machine, interfaces []*armnetwork.Interface, public []*armnetwork.PublicIPAddress) []nativev1alpha1.Address {
	var out []nativev1alpha1.Address
	add := func(kind, text string) {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		address := nativev1alpha1.Address{Type: kind, Address: ip.String()}
		if !slices.Contains(out, address) {
			out = append(out, address)
		}
	}
	configurations := configurationsOf(m, interfaces)
	for _, c := range configurations {
		add(nativev1alpha1.AddressInternal, ptr.Deref(c.PrivateIPAddress, ""))
	}
	for _, c := range configurations {
		if c.PublicIPAddress == nil {
			continue
		}
		for _, p := range public {
			if p != nil && p.Properties != nil && strings.EqualFold(ptr.Deref(p.ID, ""), ptr.Deref(c.PublicIPAddress.ID, "")) {
				add(nativev1alpha1.AddressExternal, ptr.Deref(p.Properties.IPAddress, ""))
			}
		}
	}
	return out
}

// configurationsOf returns the IP configurations of the network interfaces of a VM.
func configurationsOf(m machine, interfaces []*armnetwork.Interface) []*armnetwork.InterfaceIPConfigurationPropertiesFormat {
	var out []*armnetwork.InterfaceIPConfigurationPropertiesFormat
	for _, id := range interfaceIDs(m) {
		for _, i := range interfaces {
			if i == nil || i.Properties == nil || !strings.EqualFold(ptr.Deref(i.ID, ""), id) {
				continue
			}
			for _, c := range i.Properties.IPConfigurations {
				if c != nil && c.Properties != nil {
					out = append(out, c.Properties)
				}
			}
		}
	}
	return out
}

// interfaceIDs returns the IDs of the network interfaces of a VM.
func interfaceIDs(m machine) []string {
	if m.Properties == nil || m.Properties.NetworkProfile == nil {
		return nil
	}
	var out []string
	for _, r := range m.Properties.NetworkProfile.NetworkInterfaces {
		if r != nil && r.ID != nil {
			out = append(out, *r.ID)
		}
	}
	return out
}

// hasPublicAddress reports whether a network interface of a VM has a public IP address.
func hasPublicAddress(m machine, interfaces []*armnetwork.Interface) bool {
	return slices.ContainsFunc(configurationsOf(m, interfaces), func(c *armnetwork.InterfaceIPConfigurationPropertiesFormat) bool {
		return c.PublicIPAddress != nil
	})
}
