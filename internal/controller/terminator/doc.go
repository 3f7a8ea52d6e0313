// Package terminator keeps a NodePool, MachineDeployment or MachineSet that is being deleted until
// its last composed object is gone. Meanwhile it writes the status, because Crossplane does not. The
// report is computed in internal/plan/deletion. Package machine deletes Machines, and package
// finalizer has the finalizer of these kinds.
package terminator
