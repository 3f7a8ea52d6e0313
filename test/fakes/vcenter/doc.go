// Package vcenter is a vCenter for tests: govmomi's simulator, with the inventory that the
// example class for vSphere names. Accounts have passwords, and clones can be refused. A hook
// simulates the hosts: it gets the VMs that run, and returns the addresses that the tools of
// their guests report.
package vcenter
