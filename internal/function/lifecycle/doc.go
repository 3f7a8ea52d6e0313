// Package lifecycle is the step that sums up a Machine: it composes the WorkerNode,
// keeps the VM from being deleted before its Node is drained, and writes the
// Machine's status.
//
// It decides a Machine's phase from what the steps before it say and what the
// WorkerNode reports. Failed is final: a Machine that failed is replaced, not
// repaired.
package lifecycle
