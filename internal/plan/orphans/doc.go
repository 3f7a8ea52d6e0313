// Package orphans is the planner of an OrphanCollector: it decides which VMs are orphans, and
// deletes them if the policy is Delete.
//
// The collector's inventory names the VMs of this installation that no VM resource claims, and
// since when. Such a VM is an orphan if two complete reads of the cloud, the grace period apart,
// found it unclaimed. In addition, neither its Machine may exist, in any phase, nor the VM resource
// of that Machine, which may be creating it. While the inventory fails, nothing is decided.
//
// At clouds whose tags do not name the Machine, the name of the VM identifies it. It is compared
// with the VM resource of this name, and with the Machine whose VM has this name, which the search
// for the Node finds.
//
// A VM whose Node is Ready is in use even if its Machine is missing: it is reported and never
// deleted. While the Node cannot be observed, the VM is deleted only if a user confirms it.
//
// A VM of a former installation is deleted only if the record of installations proves that no
// control plane runs it any more: see the package installations. If more than a fifth of the fleet
// are orphans, only those are deleted that a user confirmed.
//
// An orphan is deleted in three passes, each of which checks again that it is an orphan. First it
// is adopted: a VM resource is composed that may only observe it, so that its provider confirms
// that it exists. Then that resource gets the right to delete. Then it is no longer composed, so
// that Crossplane deletes it, with everything that the provider deletes with a VM, such as its
// network interfaces and disks.
package orphans
