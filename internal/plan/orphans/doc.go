// Package orphans is the planner of an OrphanCollector: it decides which VMs are orphans,
// and deletes them if it is told to.
//
// The collector's inventory names the VMs of this installation that no VM resource
// claims, and since when. Such a VM is an orphan when two complete looks at the cloud,
// the grace period apart, saw it so, and when neither the Machine that it was made for
// is there, in whatever phase, nor the VM resource of that Machine, which may be
// creating it. While the inventory fails, nothing is concluded.
//
// At clouds whose tags do not name the Machine, the VM's name identifies it: the VM resource of
// this name, and the Machine that gives its VM this name, which the look for the Node finds.
//
// A VM whose Node is Ready is in use, whatever else is missing of it: it is reported and
// never deleted. While nobody can look at its Node, only a person's confirmation lets it go.
//
// A VM of a former installation is deleted only if the record of installations proves that
// no control plane runs it any more: see the package installations. Of more orphans than a
// fifth of the fleet only those are deleted that a person confirmed.
//
// An orphan is deleted in three passes, each of which finds it to be one anew. First it
// is adopted: a VM resource is composed that may only observe it, so that its provider
// has a last look. Then that resource is given the right to delete. Then it is dropped,
// and deleted by Crossplane: with all that the provider deletes with a VM, such as its
// network interfaces and disks.
package orphans
