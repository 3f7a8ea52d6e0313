// Package machine reconciles a Machine from its creation to its deletion, in one controller.
//
// A reconcile of a Machine that is not being deleted has these stages:
//
//  1. selection: the CompositionRevision that the Machine follows (selection.go);
//  2. observation: the VM, its companions and the Node (observe.go, registration.go, and the package nodekeeper);
//  3. the pipeline of the revision, which decides everything (run.go);
//  4. bootstrap: the join token and the Secret with the user data (bootstrap.go);
//  5. sync: labels, taints and a drain of the Node (registration.go, and the packages nodekeeper and drain);
//  6. status: one write, and only of a change; events follow an accepted status (status.go);
//  7. launch: the VM and its companions are applied where they differ (launch.go).
//
// Stages 4 and 5 change facts that the pipeline decides by. The pipeline then runs once
// more, so that the status has all of it in one write. The status comes before the launch:
// it records which resources exist before the first of them is created. It also comes before
// the Node gets a key that is not recorded yet.
//
// The deletion of a Machine (terminate.go, and the package deletion for its order) needs neither Composition, class nor target
// cluster: the Node is drained and deleted first, then the companions that depend on the VM, then
// the VM, then the other companions. Every
// wait has a timeout. The order is kept by FinalizerDrain on the VM and its companions:
// crossplane-runtime does not delete the external resource of an object that has a
// finalizer beside its own.
//
// The files use each other in one direction. At the bottom are kinds.go, overlay.go and watches.go. facts.go has what a
// reconcile knows of a Machine. The stages follow, and controller.go and
// setup.go are at the top.
//
// # Identity
//
// The status is never proof. The VM of a Machine is the resource that the Machine controls. A Node is the
// Machine's only if it registered with the join token of this Machine and has the Machine's Node name. If the
// cloud names Nodes, the first Node needs the providerID of the VM instead: see nodekeeper/claim.go. Annotations and other
// fields of a Node, which its kubelet may write, do not prove what Drover did to it: see internal/nodekeys.
//
// # Process-local memory
//
// Everything that the process remembers is bounded by the number of Machines, and no decision depends on it
// alone:
//
//	memory                        a restart loses
//	objects written, not cached   nothing: the cache starts with them
//	parameters of Nodes           nothing: the first reconcile computes them again
//	changes of Nodes              some reconciles that come at once
//	attempts of evictions         the count of refusals by budgets, and since when pods are terminating
//	VolumeAttachments, for 2 s    nothing: they are listed again
//	state of join tokens          one read of the Secret per Machine
//	required resources            nothing: the first reconcile requires them again
package machine
