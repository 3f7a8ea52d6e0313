// Package terminator gives every deletion of a MachineDeployment, MachineSet or
// Machine its order: the WorkerNode first, which drains the Node, then the VM, then
// the VM's companions, then the Machine, then its set, then its deployment. It works
// without the class, the Composition, the target cluster and Crossplane, and decides
// nothing else.
//
// The order lives in finalizers:
//
//   - Each of the three kinds carries FinalizerTerminator, until nothing that it
//     waits for is left. Who made an object without it gets it added.
//   - Only an owner that is gone, or that is deleted in the foreground, has its
//     dependents deleted by the garbage collector. So any deletion is made a
//     foreground one by repeating the DELETE, and again whenever somebody repeats
//     theirs: the namespace controller does, in the background.
//   - The VM carries FinalizerDrain. crossplane-runtime does not delete the external
//     resource of what has a finalizer beside its own. It is taken off when the
//     Machine is being deleted and no WorkerNode of it is left, together with a
//     change of AnnotationReleased: a change of finalizers alone wakes nobody.
//   - The companions of the VM carry it too, each until no VM is left, and no companion
//     that was made after it: what is in use is not deleted.
package terminator
