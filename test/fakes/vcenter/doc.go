// Package vcenter is a vCenter for tests: govmomi's simulator, with the inventory that the
// example's class of vSphere names. Accounts have passwords, clones can be refused, and a
// hook stands for the hosts: it is told which VMs run, and tells the addresses that the
// tools of their guests report.
package vcenter
