// Package nodeinventory answers NodeInventories: it looks for the Nodes of VMs that have no
// Machine, in the target clusters that they were made for. An OrphanCollector deletes no VM
// whose Node is Ready, and none whose Node nobody could look for.
//
// A Node counts for a VM if it registered as the VM's Machine, has the name that the VM was
// given, or has the VM's providerID. That proves nothing, and need not: it can only keep a VM
// from being deleted.
//
// The answer is as fresh as the last list that the target cluster answered. A change of a Node
// is a reason for a new one, and so is the end of a minute.
package nodeinventory
