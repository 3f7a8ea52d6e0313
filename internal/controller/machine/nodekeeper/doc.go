// Package nodekeeper finds the Node of a Machine, keeps what Drover wants of it, drains it, and deletes it with its Machine.
//
// A Keeper works on the Node of one Machine during one reconcile, in the target cluster. The controller of Machines
// (internal/controller/machine) calls Observe, Keep, and for a Machine that is being deleted Remove.
//
// The files, bottom to top. Each uses only those below it:
//
//   - keeper.go has what a reconcile knows of a Node, and the clients.
//   - claim.go finds the Nodes that are the Machine's, and proves it.
//   - permitted.go and marks.go know which labels, annotations and taints the configuration allows, and which those of the
//     MachineSet are. Which of them a Node gets, keeps and loses is decided in internal/nodekeys.
//   - report.go and join.go observe the Node and its join.
//   - drain.go does a pass of the drain (package drain). empty.go drains a Node that stays, hooks.go and delete.go one that is
//     deleted.
//   - keep.go observes a Node and keeps it.
//
// limits.go bounds how often changes of one Node cause reconciles.
package nodekeeper
