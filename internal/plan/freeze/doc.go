// Package freeze is the planner of the step safety: it decides whether a
// MachineDeployment or a MachineSet may create and replace Machines.
//
// Frozen means that no Machine is created, and none is replaced. Scaling down and all
// deletions go on. It freezes
//
//   - by the label machine.drover.dev/freeze, and by nothing if that is "false",
//   - while the cluster that the Machines join cannot be reached, as its configuration
//     says: whoever cannot see Nodes must not judge them, and nothing can join,
//   - while there are too many Machines (overshoot.go): more exist than the spec allows, or
//     more are being deleted than half of that.
//
// Machines that drain are no overshoot: users delete Machines, remediation and scale-downs
// do, and a drain takes hours. They count only as the trace of a runaway that creates
// Machines as fast as they are deleted. A user who replaces a whole fleet leaves the same
// trace. So such a freeze only slows a runaway down: it lasts five minutes, and then the
// Machines that are being deleted do not count any more. No creation is held for longer by
// drains, and a runaway makes no more than one fleet in that time.
//
// Machines are counted as the steps after this one wrote them into the status last. These
// have the API server refuse a status that was planned from an old view, and with it the
// condition and the events of this step.
package freeze
