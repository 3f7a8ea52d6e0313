// Package set is the planner of the step replicas. It decides on the Machines of a MachineSet: it
// creates those that are missing, gives up those that are too many, replaces those
// that failed, and updates those in place that are not what the template says.
//
// The files, bottom to top:
//
//   - machines.go has what one Machine says of itself.
//   - fleet.go has the facts: a set and its Machines, computed once, which no stage changes.
//   - adopt.go, preserve.go, scale.go (with order.go: which Machine is deleted first), replace.go,
//     create.go (how fast Machines are created), backoff.go (when not at all), exhausted.go (when
//     there is no room) and inplace.go have the stages. A stage adds to a plan and calls no other.
//   - desired.go has the Machines as they are desired.
//   - status.go, conditions.go, kstatus.go and events.go report.
//   - plan.go has the list of the stages, and decides.
//   - group.go composes the decision as one MachineGroup.
//
// Crossplane may show a MachineSet or its Machines as they were some time ago.
// That does no harm:
//
//   - The names of new Machines come from a counter in the set's status, so that the
//     same Machine is created twice and not two Machines. They stay named there until
//     they were seen, and count until then.
//   - The Machines to give up, to update and to adopt are named in the status first,
//     and the decision is carried out when it is read back. The API server takes a
//     status only from whoever saw the one before it, so that nobody chooses others in
//     addition, and what goes with a decision, an event or a failure that counts, is
//     there once.
//   - Machines that were seen once are never created again, and those that are not
//     named are left alone: neither can an old view bring one back nor delete one.
package set
