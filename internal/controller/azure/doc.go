// Package azure implements the VMs of Azure for the package native. Its external name is the UID of its managed resource,
// which the VM and the resources beside it have in the tag drover-vm.
//
// # Why there is no second VM
//
// All names are chosen before the creation: a VM has the name of its Node, and the names of its network interfaces, public
// IP addresses and disks begin with it and have a part of the UID. A VM is created under the condition that none has its
// name (If-None-Match), so that a repeated request neither makes a second VM nor changes another one. If the name exists,
// the VM is used only if its tag is that of the managed resource.
//
// # Order
//
// Public IP addresses are created first, then network interfaces, then the VM with its disks. The deletion has the
// opposite order. Azure deletes these resources with their VM (deleteOption); those that are left are deleted by their tag or name,
// also if the VM never existed or failed.
//
// # Observation
//
// One list of the subscription, which all VMs share, has their tags and provisioning states, and a second one their power
// states: Azure has no list with both. A VM that is not in the list is read by itself before anything is concluded. Resource
// Graph has both in one query, but it may be minutes late: it serves the inventory of the resources beside the VMs alone.
package azure
