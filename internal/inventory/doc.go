// Package inventory finds the VMs of an installation of Drover that no managed resource claims.
// The inventories of all clouds share it: a provider implements [Lister], and has in its group a
// kind with the parameters and the status of apis/inventory. The package decides nothing: the
// function decides whether such a VM is an orphan, and whether it is deleted.
//
// The observation of an inventory is the result of one complete look. A look that fails, or that
// gets only a part of the list, changes nothing of it, and makes the resource not Synced. As long
// as the VMs are the same, the observation is the same: a VM causes two writes, when it is first
// seen and when that is confirmed.
package inventory
