// Package inventory looks for the VMs of an installation of Drover that no managed
// resource claims. It is what the inventories of all clouds share: a provider fills a
// [Lister], and has in its group a kind with the parameters and the status of
// apis/inventory. It decides nothing: whether such a VM is an orphan, and what becomes
// of it, is up to the function.
//
// What an inventory says is what one complete look saw. A look that fails, or tells
// only a part, changes nothing of it, and makes the resource not Synced. It says the
// same as long as the VMs are the same: a VM costs two writes, when it is first seen
// and when that is confirmed.
package inventory
