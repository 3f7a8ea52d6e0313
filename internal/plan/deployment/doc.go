// Package deployment is the planner of the step rollout, which composes the MachineSets of a
// MachineDeployment: one per template. The newest set grows and the others shrink within the
// bounds of the strategy.
//
// The files, bottom to top:
//
//   - template.go has what of a template starts a rollout, bounds.go the bounds of one.
//   - sets.go has what one MachineSet reports, and what was decided about it before.
//   - fleet.go has the facts: a MachineDeployment and its MachineSets, computed once, which no
//     stage changes. chosen.go has the template that is rolled out.
//   - progress.go has how far a rollout is.
//   - revisions.go, scale.go (with one file per strategy: rolling.go, recreate.go, ondelete.go,
//     inplace.go, spread.go) and remediation.go have the stages. A stage adds to a plan and calls
//     no other.
//   - compose.go has the MachineSets as they are desired.
//   - history.go, status.go, conditions.go and events.go report.
//   - plan.go has the list of the stages, and decides.
//
// Crossplane may show a MachineDeployment or its MachineSets as they were some time
// ago, and each as of another time. So every decision about a number of Machines is
// recorded in the deployment's status first, and carried out when it is read back
// from there:
//
//   - Decisions are one chain: they are all in one object, and the API server takes
//     a status only from a client that saw the one before it, and so carried it out.
//   - A set is created empty, and gets a number once it was seen.
//   - A set gets another number only when it has acted on the last one. What is not
//     certain counts as the worse: Machines that may exist take room, and Machines
//     that may be deleted are not available.
//
// If replicas grows in a rollout, the new set grows (spread.go): a Machine of an old
// template would be replaced as soon as it is there. The capacity must not wait for a
// template that may be bad, though. So all sets grow in proportion to their sizes if none
// of the new set's Machines is available while it has some, if one of them is unhealthy, or
// if one that was up is not ready, and while the rollout is held. A scale-down deletes Machines
// of old templates first, and is spread in proportion in the same cases.
package deployment
