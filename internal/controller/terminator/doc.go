// Package terminator keeps a NodePool, MachineDeployment or MachineSet that is being deleted until the
// last of what it composed is gone, and writes its status meanwhile, which
// Crossplane does not. What it reports is decided in internal/plan/deletion; how a Machine is
// deleted is in package machine, and the finalizer of these kinds in package finalizer.
package terminator
