// Package move takes the Machines of a namespace from one control cluster to another, without
// touching a VM or a Node.
//
// What Drover makes is moved: NodePools, MachineDeployments, MachineSets, Machines, VM resources and their
// companions. What users write, such as classes and configurations, has to be there before.
//
// A move goes through these steps. Each can be repeated, and finds out itself what is left to
// do, so that a move that was interrupted anywhere is started again with the same arguments:
//
//  1. check: whether the destination has all that the objects refer to;
//  2. pause: the objects in the source, until each of their controllers says that it does nothing;
//  3. copy: the objects, paused, without owners, into the destination;
//  4. let go: of the VM resources in the source, which may only observe from then on, and then of
//     all objects. Nobody deletes a VM, because their finalizers go before them;
//  5. take on: the VM resources become those of the destination's installation, and everything
//     goes on there. Machines take over their VM resources, sets adopt Machines, deployments
//     adopt sets, and pools adopt deployments: see the package internal/controller/machine.
//
// At no time may both clusters delete a VM. The destination may after the source may not any more.
package move
