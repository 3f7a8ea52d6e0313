// Package deployment is the planner of the step rollout, which composes the MachineSets of a
// MachineDeployment: one per template. The newest set grows and the old sets shrink within the
// bounds of the strategy.
//
// The files, bottom to top. Each uses only those below it:
//
//   - observed.go has the input and the output, template.go the part of a template that starts a rollout, rejected.go the
//     templates that were complete or rejected, chosen.go the one that is rolled out, and bounds.go the bounds of a rollout.
//   - sets.go has the status of one MachineSet, and the recorded decision about it.
//   - fleet.go has the facts: a MachineDeployment and its MachineSets. gates.go has what a rollout may not do now: its steps
//     with their analyses, windows and holds, and the rejection of its template. fallback.go has which template cannot be reached
//     in place, turn.go the turn among the waves of RolloutPolicies, and classify.go computes all of that once. No stage changes it.
//   - state.go has what the stages decided so far, progress.go the progress of the rollout, replicas.go the numbers of Machines.
//   - revisions.go, scale.go (with one file per strategy: rolling.go, recreate.go, ondelete.go,
//     inplace.go, spread.go) and remediation.go have the stages. A stage adds to a plan and calls
//     no other stage.
//   - compose.go has the desired MachineSets, and what is to be analyzed.
//   - history.go, status.go, conditions.go and events.go report.
//   - plan.go has the list of the stages, and decides.
//
// Crossplane may show stale versions of a MachineDeployment and its MachineSets, each from another
// time. So every decision about a number of Machines is recorded in the deployment's status first,
// and carried out when it is read back:
//
//   - Decisions are one chain. They are all in one object, and the API server accepts a status
//     only from a client that read the previous one, and so carried it out.
//   - A set is created with 0 replicas, and gets its number after it was observed.
//   - The number of a set changes only after the set has acted on its last number. Uncertainty counts
//     as the worse case: Machines that may exist take room, and Machines that may be deleted are not
//     available.
//
// If replicas grows during a rollout, the new set grows (spread.go): a Machine of an old template
// would be replaced as soon as it runs. But the additional capacity must not wait for a template
// that may be bad. So the growth is on trial as long as no Machine of the new template is available.
// If the trial fails, or if the rollout is held, all sets grow in proportion to their sizes. A
// scale-down deletes Machines of old templates first. It is spread in proportion if the new template
// is not proven, or the rollout is held.
//
// Once a Machine of the new template is available, old sets create no Machine (compose.go): the new
// set replaces the ones that they lose. Machines whose deletion makes nothing unavailable do not
// wait for the bounds (costless, in rolling.go).
package deployment
