// Package native is what every provider of a cloud's VMs does that is written on the cloud's own
// SDK. A cloud is an [Account]: how one VM is found, created, continued and deleted, and how all
// are listed. The package does the rest: configurations and credentials, the order of steps, the
// record of creations, classes of errors, waiting, polls, conditions, and inventories.
//
// # Steps
//
// No reconcile waits for a task of a cloud. Each observes the VM, plans one step from the facts
// (plan), takes it, and asks to be called again. After a restart at any point the next reconcile
// plans from the same facts, which are at the cloud and in the managed resource, never in memory.
//
//	absent ──Create──> Creating ──> Incomplete ──Continue──> ... ──> Running ──> Stopped
//	  ^                                                                │
//	  └── only if it never ran                                deleted: Delete, Wait, ..., Gone
//
// A VM that ran once is never created again under the same identity: it is Lost.
//
// # Why there is no second VM
//
// A creation whose answer was lost, or whose provider was killed, may have made a VM. The VM is
// found again by its external name, which is chosen before the creation and written with the
// annotation external-create-pending; or, if the cloud chooses names, by [Account].FindLost. Until
// the cloud certainly shows it (Provider.Settle), nothing is created. Then [Account].Prepare chooses
// the same ID again, so that the cloud refuses the second of two creations that overtake each
// other.
//
// # Tests
//
// The package nativetest runs the reconciler of any cloud against its fake: all of this holds for
// a cloud when nativetest.Run passes.
package native
