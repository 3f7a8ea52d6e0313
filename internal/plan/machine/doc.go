// Package machine is the planner of the step lifecycle, which sums up a Machine: it decides
// what the Machine's Node shall be like, and the Machine's status.
//
// It decides a Machine's phase from the answers of the steps before it and from what is
// known of the Node. Failed is final: a Machine that failed is replaced, not repaired.
package machine
