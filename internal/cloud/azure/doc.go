// Package azure lists the VMs of an installation of Drover in one subscription of Azure,
// and the network interfaces, public IP addresses and disks that carry its tag.
//
// It queries Azure Resource Graph: one query per 1000 VMs, filtered by the tag, with the
// provisioning state and the power state of each VM. The list calls of the Compute and
// Network APIs take no filter by tag: each of them reads the whole subscription, VMs twice
// (a page has either the tags or the power states), and three more lists are needed for the
// resources beside the VMs. For 500 VMs and their resources these are 4 calls instead of 5 lists
// of many pages each, and a SDK that takes 5 seconds of CPU to compile instead of 72.
//
// Resource Graph has two properties that the package has to guard against:
//
//   - It silently leaves out resources that the credentials may not read. If a role were narrowed
//     to one of two resource groups, the VMs of the other one would seem to be gone. So each list
//     ends with a check of the rights that the credentials have at the subscription itself: if
//     they do not include the listed types, the list is an error.
//   - It follows the state of the subscription with a delay of seconds, sometimes minutes.
//     The inventory concludes nothing from one look, and its looks are minutes apart.
package azure
