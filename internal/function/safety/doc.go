// Package safety is the step that decides whether a MachineDeployment or a
// MachineSet may create and replace Machines. It tells the steps after it.
package safety
