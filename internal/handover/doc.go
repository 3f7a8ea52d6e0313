// Package handover hands the Machines of a MachineDeployment of Cluster API over to a MachineDeployment of Drover, and gives
// them back, without touching a VM or a Node.
//
// # What changes hands
//
// The InfraMachine is the VM, and it stays: it gets the label by which provider-clusterapi finds the VM of a VirtualMachine.
// The Machine of cluster.x-k8s.io stays too, as the object that the provider of the InfraMachine wants as its owner: it is
// paused for Cluster API, belongs to no MachineSet, and is kept by a finalizer until the InfraMachine is gone. A VirtualMachine
// and a Machine of Drover are created beside them, as docs/recovery.md imports a VM.
//
// # Why it is safe
//
//   - check reads everything before the first write, and names each obstacle.
//   - A phase begins when all objects of the one before have reported it. Only the last phase of a handover lets a MachineSet
//     go on: before that nothing creates, replaces or deletes a Machine.
//   - A Machine of Drover is created after its VirtualMachine reported the providerID: a VM that the provider cannot find would
//     be lost, and its Node drained.
//   - The former owners, labels and pause of an object are an annotation, written by the same patch as its first change.
//
// # Files
//
// objects.go, record.go, check.go, take.go, giveback.go and plan.go are pure: they get objects, and return steps. Each plan is
// made from the objects alone, so that a command that was killed is run again. read.go and run.go call the API servers.
package handover
