// Package freeze is the planner of the step safety: it decides whether a
// MachineDeployment or a MachineSet may create and replace Machines.
//
// While an object is frozen, no Machine is created or replaced. Scale-downs and all deletions
// continue. An object is frozen
//
//   - by the label machine.drover.dev/freeze; the value "false" overrides every other reason,
//   - while the configuration of the target cluster reports the cluster as unreachable: the health
//     of its Nodes is unknown, and no new Node can join,
//   - while there are too many Machines (overshoot.go): more exist than the spec allows, or
//     more than half of that number are being deleted.
//
// Draining Machines alone are no overshoot: users, remediation and scale-downs delete Machines,
// and a drain takes hours. They count only because a runaway that replaces Machines at the
// rate of their deletion leaves the same trace as a user who replaces a whole fleet. So such a
// freeze only slows a runaway down. It lasts five minutes, and then the Machines that
// are being deleted no longer count. Drains hold no creation for longer than that, and a
// runaway creates at most one fleet in that time.
//
// The counts are those that the later steps of this pipeline last wrote into the status. If these
// steps planned from a stale view, the API server refuses their status, and with it the
// condition and the events of this step.
package freeze
