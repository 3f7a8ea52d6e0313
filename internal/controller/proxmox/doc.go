// Package proxmox has the VMs of Proxmox VE, for the frame of the package native.
//
// A VM is known by a UUID: the external name of its managed resource, which its SMBIOS shows to the
// guest. A VMID is no identity, because Proxmox VE gives the lowest free one to the next VM. So no VM is
// changed or deleted whose configuration does not show the UUID: in its SMBIOS, or in the notes that a
// clone has from its first moment.
//
// The VMID is chosen and recorded before the clone begins. While the result of a clone is unknown, the
// same is asked for again: Proxmox VE refuses the second of two clones with one VMID. Until the disks of
// a clone are copied, its configuration has a lock and nothing else, and it is ours only because of the
// VMID that was recorded.
//
// The user data is on a CD image that is uploaded by the API. Nothing deletes it with the VM, so the
// deletion of a VM ends with that of its image.
package proxmox
