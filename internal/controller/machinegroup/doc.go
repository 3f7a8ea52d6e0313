// Package machinegroup carries out MachineGroups: it creates, changes and deletes the
// Machines of a MachineSet, and tells the set when they change.
//
// What to do follows from the group alone (internal/plan/group); nothing is decided here. It makes
// up for two costs of composing the Machines themselves: Crossplane applies all that an
// XR composes each time that one of them changes, and looks at the XR at each of these
// changes. Here a Machine is written when it differs, and the set is woken in batches,
// by the digest in the group's status.
//
// A group may be seen as it was some time ago. So what it does not name is left alone,
// a Machine is created only when the group says so and at most once, and only that
// object is deleted that was seen under its name.
package machinegroup
