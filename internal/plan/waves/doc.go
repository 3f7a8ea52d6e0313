// Package waves decides when RolloutPolicies let the rollout of a MachineDeployment begin.
//
//   - members.go has the MachineDeployments, the state of each, and the wave that selects it.
//   - status.go has the state of the waves of a policy.
//   - turn.go answers a RolloutTurn.
//   - events.go reports.
//   - plan.go decides all of that.
//
// A rollout of a wave may begin when all earlier waves are complete and have soaked. The answer counts for one template, and
// stays when an earlier wave begins another rollout, because a later wave would otherwise never end if the first one changes
// often. A failed rollout in an earlier wave withdraws it.
//
// The work of a policy grows with the number of its members, and that of an answer with the number of waves: no answer looks
// at a member of another wave. An answer has no number and no name of a member, so that it changes only with the state of a
// wave, and names no object of another team.
package waves
