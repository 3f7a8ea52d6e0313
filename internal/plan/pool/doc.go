// Package pool is the planner of the step pool, which composes the MachineDeployments of a
// NodePool: one for each failure domain.
//
// The files, bottom to top:
//
//   - offer.go has what the platform offers, and what a pool takes of it.
//   - member.go has one failure domain: its MachineDeployment, and what was decided about it.
//   - fleet.go has the facts: a NodePool and its members, computed once, which no stage changes.
//   - goal.go has how many Machines each failure domain shall have in the end.
//   - size.go and autoscaling.go have the stages: the next number of each failure domain.
//   - compose.go has the MachineDeployments as they are desired.
//   - status.go, conditions.go and events.go report.
//   - plan.go decides.
//
// Numbers are decided as package deployment does: a decision is recorded in the status of the pool
// first, and carried out when it is read back from there. A number that moves from one failure
// domain to another is made first and taken then: the sum of what may exist is never above
// the size and maxSurge, and what is available is not deleted below the size without maxUnavailable.
//
// Where a failure domain is exhausted, what the cloud gave there stays, and the others get
// the rest. When its MachineDeployment reports room again, the numbers move back.
//
// In a pool with autoscaling, the cluster-autoscaler decides on replicas. The pool divides the
// bounds, and hands a part of the maximum to another failure domain only after the autoscaler must
// have seen that the first one lost it.
package pool
