// Package move moves the Machines of a namespace from one control cluster to another, without touching a VM or
// a Node.
//
// Objects that Drover creates are moved: NodePools, MachineDeployments, MachineSets, Machines, VM resources and
// their companions. Objects that users write, such as classes and configurations, must exist before.
//
// A move has these steps. Each is idempotent and determines itself what remains, so that an interrupted move is
// restarted with the same arguments:
//
//  1. check: whether the destination has all that the objects refer to;
//  2. pause: the objects in the source, until each of their controllers reports that it is paused;
//  3. copy: the objects, paused, without owners, into the destination;
//  4. let go: of the VM resources in the source, which may only observe from then on, and then of
//     all objects. No VM is deleted, because their finalizers are removed first;
//  5. take over: the VM resources become those of the destination's installation, and are resumed
//     there. Machines take over their VM resources, sets adopt Machines, deployments
//     adopt sets, and pools adopt deployments: see the package internal/controller/machine.
//
// At no time may both clusters delete a VM. The destination may do so only after the source no longer may.
package move
