// Package set is the planner of the step replicas. It decides on the Machines of a MachineSet: it
// creates missing Machines, deletes excess ones, replaces failed ones, and updates in place those
// that are not of the current template.
//
// The files, bottom to top. Each uses only those below it:
//
//   - observed.go has the input and the output, machines.go predicates of one Machine, and messages.go the words of events.
//   - fleet.go has the facts: a set and its Machines. template.go compares the Machines with the template, preserved.go says
//     which are kept for analysis, age.go which are due by their age, and classify.go computes all of that once. No stage changes it.
//   - state.go has what the stages decided so far. trial.go says how many Machines may be created at once, and budget.go how
//     many may be replaced or rebooted.
//   - adopt.go, preserve.go, scale.go (with order.go: which Machine is deleted first), backoff.go (when nothing is created),
//     replace.go (with replaced.go: what the history keeps), aged.go, reboot.go, create.go, exhausted.go (when there is no room) and
//     inplace.go have the stages. A stage adds to a plan and calls no other.
//   - desired.go has the desired Machines.
//   - status.go, conditions.go and kstatus.go report, and wake.go says when to plan again.
//   - plan.go has the list of the stages, and decides. foresee.go is for tools that predict.
//   - group.go composes the decision as one MachineGroup.
//
// Crossplane may show a stale MachineSet or stale Machines. That does no harm:
//
//   - The names of new Machines come from a counter in the set's status, so that a repeated
//     decision creates the same Machine again and not a second one. The status lists these
//     names until the Machines are observed, and the Machines count until then.
//   - The Machines to delete, to update and to adopt are named in the status first, and the
//     decision is carried out when it is read back. The API server rejects a status that was
//     computed from an older one. So no stale plan chooses further Machines, and everything
//     that comes with a decision, such as an event or a counted failure, happens once.
//   - Machines that were observed once are never created again, and Machines without a name in
//     the status are left alone: a stale view can neither restore a Machine nor delete one.
package set
