// Package replicas is the step that composes the Machines of a MachineSet: it
// creates those that are missing, gives up those that are too many, and replaces
// those that failed.
//
// Crossplane may show a MachineSet or its Machines as they were some time ago.
// That does no harm:
//
//   - The names of new Machines come from a counter in the set's status, so that the
//     same Machine is created twice and not two Machines.
//   - The Machines to give up are named in the status first, and given up when they
//     are read back from it. The API server takes a status only from whoever saw
//     the one before it, so that nobody chooses others in addition.
//   - Machines that are given up are not composed again, whatever is seen of them:
//     that could bring back one that is gone.
package replicas
