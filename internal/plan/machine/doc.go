// Package machine is the planner of the step lifecycle. It decides the desired state of a Machine's
// Node, and the Machine's status.
//
// It derives the phase from the outputs of the earlier steps and from the observed Node. Failed is
// final: a Machine that failed is replaced, not repaired.
package machine
