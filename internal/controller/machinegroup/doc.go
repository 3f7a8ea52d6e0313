// Package machinegroup carries out MachineGroups: it creates, changes and deletes the Machines of a
// MachineSet, and notifies the set of their changes.
//
// The actions follow from the group alone (internal/plan/group); nothing is decided here. A group
// avoids two costs of composing the Machines themselves: whenever one composed resource changes,
// Crossplane reconciles the XR and applies all of its resources. Here a Machine is written only if it
// differs, and the set is enqueued in batches, by the digest in the group's status.
//
// The observed group may be stale. So Machines that it does not name are left alone. A Machine is
// created only if the group requests it, and at most once. Only the object that was observed under a
// name is deleted.
package machinegroup
