// Package deployment is the planner of the step rollout, which composes the MachineSets of a
// MachineDeployment: one a template, of which the newest grows and the others
// shrink within the bounds of the strategy.
//
// Crossplane may show a MachineDeployment or its MachineSets as they were some time
// ago, and each as of another time. So every decision about a number of Machines is
// written to the deployment's status first, and carried out when it is read back
// from there:
//
//   - Decisions are one chain: they are all in one object, and the API server takes
//     a status only from whoever saw the one before it, and so carried it out.
//   - A set is created empty, and told a number once it was seen.
//   - A set is told a new number only when it has acted on the last one. What is not
//     certain counts as the worse: Machines that may exist take room, and Machines
//     that may go are not available.
//
// If replicas grows in a rollout, the new set grows (spread.go): a Machine of an old
// template would be replaced as soon as it is there. The capacity must not wait for a
// template that may be bad, though. So all sets grow in proportion to their sizes if none
// of the new set's Machines is available while it has some, if one of them is unhealthy, or
// if one that was up is not ready, and while the rollout is held.
package deployment
