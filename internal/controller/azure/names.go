package azure

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/azure/v1alpha1"
	cloudazure "github.com/drover-dev/drover/internal/cloud/azure"
)

// A name names a resource in a resource group.
type name struct{ group, name string }

// is reports whether two names are the same. Azure distinguishes no upper and lower case.
func (n name) is(other name) bool {
	return strings.EqualFold(n.group, other.group) && strings.EqualFold(n.name, other.name)
}

// parts of an ID in Azure Resource Manager:
// /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/NAMESPACE/TYPE/NAME.
const partsOfID = 9

// nameOf returns the group and the name of an ID, and the zero value if it is none.
func nameOf(id string) name {
	p := strings.Split(id, "/")
	if len(p) < partsOfID {
		return name{}
	}
	return name{group: p[4], name: p[partsOfID-1]}
}

// idOf returns the ID of a resource of a type, such as Microsoft.Network/networkInterfaces.
func (a *account) idOf(typ string, n name) string {
	return "/subscriptions/" + a.api.subscription.ID + "/resourceGroups/" + n.group + "/providers/" + typ + "/" + n.name
}

// knownVM returns the name of the VM of a managed resource: the observed one, else that of the spec if the provider has started
// to create it. It is the zero value if none is known, as of an orphan that is adopted.
func knownVM(vm *v1alpha1.VirtualMachine) name {
	if id := vm.Status.AtProvider.ID; id != "" {
		return nameOf(id)
	}
	if meta.GetExternalCreatePending(vm).IsZero() {
		return name{}
	}
	return plannedVM(vm)
}

// plannedVM returns the name of the VM that the spec has. It is the zero value if the spec has none.
func plannedVM(vm *v1alpha1.VirtualMachine) name {
	p := vm.Spec.ForProvider
	if p.Name == nil || p.ResourceGroup == nil {
		return name{}
	}
	return name{group: *p.ResourceGroup, name: *p.Name}
}

// providerID returns the providerID that the cloud-controller-manager of Azure writes.
func (a *account) providerID(vm name) string {
	return cloudazure.ProviderID(a.api.subscription.ID, vm.group, vm.name)
}

// A kind of resources beside a VM.
type kind string

const (
	kindInterface kind = "network interface"
	kindAddress   kind = "public IP address"
	kindDisk      kind = "disk"
)

// A part is a resource beside a VM.
type part struct {
	kind kind
	name
	// state is the provisioning state in lower case, or stateAccepted.
	state string
}

// stateAccepted is the state of a resource whose creation was accepted a moment ago, and that no list has yet.
const stateAccepted = "accepted"

// key identifies a resource among those of one account.
func (p part) key() string {
	return strings.ToLower(string(p.kind) + "/" + p.group + "/" + p.name.name)
}

// lengthOfUID is how much of the UID the names of parts have: another VM of the same name has other parts.
const lengthOfUID = 8

// beside returns the name of a resource beside a VM, of at most 63 + 1 + 8 + 1 + 7 characters: Azure allows 80.
func beside(vm name, externalName, suffix string) name {
	uid := externalName[:min(lengthOfUID, len(externalName))]
	return name{group: vm.group, name: vm.name + "-" + uid + "-" + suffix}
}

func interfaceName(vm name, externalName string, n int) name {
	return beside(vm, externalName, fmt.Sprintf("nic%d", n))
}

func addressName(vm name, externalName string, n int) name {
	return beside(vm, externalName, fmt.Sprintf("ip%d", n))
}

func osDiskName(vm name, externalName string) name { return beside(vm, externalName, "os") }

func dataDiskName(vm name, externalName string, n int) name {
	return beside(vm, externalName, fmt.Sprintf("data%d", n))
}

// plannedParts returns the resources beside a VM that are deleted with it, by their names. It is empty if the spec does
// not have them, as that of an orphan.
func plannedParts(p v1alpha1.VirtualMachineParameters, vm name, externalName string) []part {
	var out []part
	for n, i := range p.NetworkInterfaces {
		out = append(out, part{kind: kindInterface, name: interfaceName(vm, externalName, n)})
		if i.PublicIP != nil {
			out = append(out, part{kind: kindAddress, name: addressName(vm, externalName, n)})
		}
	}
	if p.Image != nil && (p.OSDisk == nil || p.OSDisk.EphemeralPlacement == nil && !ptr.Deref(p.OSDisk.Keep, false)) {
		out = append(out, part{kind: kindDisk, name: osDiskName(vm, externalName)})
	}
	for n, d := range p.DataDisks {
		if !ptr.Deref(d.Keep, false) {
			out = append(out, part{kind: kindDisk, name: dataDiskName(vm, externalName, n)})
		}
	}
	return out
}
