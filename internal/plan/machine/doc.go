// Package machine is the planner of the step lifecycle. It decides the desired state of a Machine's
// Node, and the Machine's status.
//
// It derives the phase from the outputs of the earlier steps and from the observed Node. Failed is
// final: a Machine that failed is replaced, not repaired.
//
// The files, bottom to top. Each uses only those below it:
//
//   - observed.go has the input and the output. healthrules.go reads spec.health, and node.go the observed Node.
//   - facts.go has what follows from the observed state alone, and the fields of a decision. derive.go computes the facts once,
//     with preserve.go, devices.go and console.go.
//   - update.go, healthreboot.go, health.go, reboot.go, phase.go and join.go decide, in the order of Plan.
//   - workernode.go has the desired Node. status.go, annotations.go, conditions.go and events.go report.
//   - plan.go makes the decision.
package machine
