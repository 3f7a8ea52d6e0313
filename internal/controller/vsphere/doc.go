// Package vsphere has the controllers of VMs of a vCenter.
//
// A VM is cloned with an instance UUID that is known in advance: the external name of its managed
// resource. A clone whose response is lost is found by this UUID. The name of the VM, which is unique
// in its folder, prevents a second clone.
//
// No reconcile waits for a task of the vCenter. Each one observes the present state, decides on one
// step ([plan]), carries it out and requests the next reconcile.
//
// If the managed object ID of the VM is known, only the vCenter with the VM can prove that the VM is
// gone, and only if it knows neither that ID nor the UUID any more: a search omits objects that the
// account may not see.
package vsphere
