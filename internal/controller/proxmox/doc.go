// Package proxmox implements the VMs of Proxmox VE for the package native.
//
// A VM is identified by a UUID: the external name of its managed resource, which is also the UUID in its
// SMBIOS. A VMID does not identify a VM, because Proxmox VE assigns the lowest free VMID to the next VM.
// The provider therefore changes and deletes a VM only if the configuration of the VM has the UUID, in the
// SMBIOS or in the notes. A clone has the notes as soon as its disks are copied.
//
// The VMID is chosen and recorded before the clone starts. While the result of a clone is unknown, the
// provider requests the same VMID again: Proxmox VE refuses the second of two clones with one VMID. While
// the disks of a clone are copied, its configuration has a lock and nothing else. Only the recorded VMID
// identifies the clone during this time.
//
// The user data is on a CD image that is uploaded by the API. Proxmox VE does not delete the image with the
// VM, so the provider deletes it after the VM.
package proxmox
