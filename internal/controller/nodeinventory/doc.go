// Package nodeinventory answers NodeInventories: it looks for the Nodes of VMs that have no Machine,
// in the target clusters that they were made for. An OrphanCollector deletes no VM whose Node is
// Ready, and none whose Node could not be looked for.
//
// A Node counts for a VM if it registered as the VM's Machine, has the name that the VM was given, or
// has the VM's providerID. That is no proof, and need not be one: it can only prevent the deletion of
// a VM.
//
// The answer is as fresh as the last list that the target cluster returned. It is renewed after a
// change of a Node, and after a minute.
package nodeinventory
