// Package terminator keeps a MachineDeployment or MachineSet that is being deleted until the
// last of its MachineSets or Machines is gone. It decides nothing else: how a Machine is
// deleted is in package machine, and the finalizer of the three kinds in package finalizer.
package terminator
