// Package terminator keeps a MachineDeployment or MachineSet that is being deleted until the
// last of its MachineSets or Machines is gone, and writes its status meanwhile, which
// Crossplane does not. What it reports is decided in internal/plan/deletion; how a Machine is
// deleted is in package machine, and the finalizer of the three kinds in package finalizer.
package terminator
