// Package vsphere has the controllers of VMs of a vCenter.
//
// A VM is cloned under an instance UUID that is known before: the external name of its
// managed resource. A clone whose answer is lost is found again by it, and the name of
// the VM, which can be there once in a folder, keeps a second one from being made.
//
// No reconcile waits for a task of the vCenter. Each looks at what there is, decides on
// one step ([plan]), takes it and says when to look again.
//
// Where the VM is known by its managed object ID, only the vCenter that it was made in
// can say that it is gone, and only by not knowing that ID and UUID any more: a search
// leaves out what an account may not see.
package vsphere
