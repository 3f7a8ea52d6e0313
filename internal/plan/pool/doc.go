// Package pool is the planner of the step pool, which composes the MachineDeployments of a
// NodePool: one for each failure domain.
//
// The files, bottom to top. Each uses only those below it:
//
//   - observed.go has the input and the output, and offer.go the part of the platform's offer that a pool requests.
//   - member.go has one failure domain: its MachineDeployment, and the recorded decision about it.
//   - fleet.go has the facts: a NodePool and its members. goal.go has the final number of Machines of each failure domain,
//     compose.go the desired MachineDeployments, and classify.go computes all of that once. No stage changes it.
//   - state.go has the decisions of the stages so far.
//   - size.go and autoscaling.go have the stages about the next number of each failure domain, and turns.go the one that
//     lets one failure domain roll after the other.
//   - status.go, conditions.go and events.go report.
//   - plan.go decides.
//
// Decisions about numbers work as in package deployment: a decision is recorded in the status of
// the pool first, and carried out when it is read back. A number that moves between failure
// domains is first added to one and then subtracted from the other. So the sum of Machines that may
// exist is at most the size plus maxSurge, and available Machines are deleted only down to the size
// minus maxUnavailable.
//
// An exhausted failure domain keeps the Machines that it has, and the remaining failure domains get
// the rest. When its MachineDeployment reports room again, the numbers move back.
//
// In a pool with autoscaling, the cluster-autoscaler decides the replicas. The pool divides the
// bounds. It assigns a part of the maximum to another failure domain only after the autoscaler must
// have read that the first one lost it.
package pool
