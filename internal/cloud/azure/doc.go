// Package azure lists the VMs of an installation of Drover in one subscription of Azure,
// and the network interfaces, public IP addresses and disks that carry its tag.
//
// It asks Azure Resource Graph: one query per 1000 VMs, filtered by the tag, with the
// provisioning state and the power state of each VM. The list calls of the Compute and
// Network APIs take no filter by tag: each of them reads the whole subscription, VMs twice
// (a page has either the tags or the power states), and three more lists are needed for the
// resources beside the VMs. For 500 VMs and what belongs to them these are 4 calls instead of 5 lists
// of many pages each, and a SDK that takes 5 seconds of CPU to compile instead of 72.
//
// Resource Graph has two properties that the package has to guard against:
//
//   - It silently leaves out what the credentials may not read. A role that is narrowed to
//     one of two resource groups would look as if the VMs of the other one were gone. So each
//     list ends with a look at the rights of the credentials at the subscription: if they do
//     not include what was listed, the list is an error.
//   - It follows the state of the subscription with a delay of seconds, sometimes minutes.
//     The inventory concludes nothing from one look, and its looks are minutes apart.
package azure
