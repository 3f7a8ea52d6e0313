// Package native is the frame of the providers that call a cloud by the cloud's own SDK. A cloud
// implements [Account]: it finds, creates, continues and deletes one VM, and lists all VMs. The
// package does the rest: configurations and credentials, the order of steps, the record of
// creations, classes of errors, delays, polls, conditions, and inventories.
//
// # Steps
//
// No reconcile waits for a task of a cloud. Each one observes the VM, plans one step from the facts
// (plan), carries it out, and requests the next reconcile. The facts are in the cloud and in the
// managed resource, never in memory: after a restart at any point the next reconcile plans from the
// same facts.
//
//	absent ──Create──> Creating ──> Incomplete ──Continue──> ... ──> Running ──> Stopped
//	  ^                                                                │
//	  └── only if it never ran                                deleted: Delete, Wait, ..., Gone
//
// A VM that ran once is never created again under the same identity: it is Lost.
//
// # Why there is no second VM
//
// If the response of a creation is lost, or the provider is killed during it, a VM may exist. The VM
// is found by its external name, which is chosen before the creation and written with the annotation
// external-create-pending. If the cloud chooses names, [Account].FindLost finds it. Until the cloud
// certainly shows the VM (Provider.Settle), nothing is created, unless the cloud itself creates one VM
// per token (Provider.Repeatable). Then [Account].Prepare chooses the
// same ID again, so that the cloud refuses the second of two creations that overtake each other.
//
// # Tests
//
// The package nativetest runs the reconciler of any cloud against the fake of this cloud. A cloud
// for which nativetest.Run passes behaves as described here.
package native
