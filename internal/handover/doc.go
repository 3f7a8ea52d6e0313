// Package handover hands the Machines of a MachineDeployment of another system over to a MachineDeployment of Drover, and gives
// them back, without touching a VM or a Node. The other side is a System: Cluster API, or gardener's machine-controller-manager.
//
// # What changes hands
//
// A VM resource and a Machine of Drover are created beside the objects of the other side, as docs/recovery.md imports a VM. Those
// objects stay, so that they can be given back:
//
//   - Of Cluster API, the InfraMachine is the VM. It gets the label by which provider-clusterapi finds the VM of a VirtualMachine. The
//     Machine of cluster.x-k8s.io is the object that the provider of the InfraMachine wants as its owner: it is paused for Cluster API,
//     belongs to no MachineSet, and is kept by a finalizer until the InfraMachine is gone.
//   - Of machine-controller-manager, a Machine keeps its providerID, by which its collector of orphans leaves the VM alone. It belongs to
//     no MachineSet and has no Node. The external name of the VM is in the providerID of the Node.
//
// # Why it is safe
//
//   - check reads everything before the first write, and names each obstacle.
//   - A phase begins when all objects of the one before have reported it. Only the last phase of a handover lets a MachineSet
//     go on: before that nothing creates, replaces or deletes a Machine.
//   - A Machine of Drover is created after its VM resource reported the providerID: a VM that the provider cannot find would
//     be lost, and its Node drained.
//   - The former owners, labels, pause and replicas of an object are an annotation, written by the same patch as its first change.
//   - Cluster API's controllers are paused for the objects, and may run. Those of machine-controller-manager know no pause, and must be
//     stopped; the order of the steps holds although they start again.
//
// # Files
//
// plan.go, record.go, objects.go, check.go, take.go and giveback.go are of all systems, and the files capi*.go and mcm*.go of one. All
// are pure: they get objects, and return steps. Each plan is made from the objects alone, so that a command that was killed is run
// again. Only read.go, mcm_read.go, run.go and the end of capi.go call the API servers.
package handover
