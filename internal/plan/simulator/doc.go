// Package simulator runs the planners of MachineDeployments and MachineSets on a cluster in memory.
// It has the worst behavior that Crossplane and the API server allow: each cache lags
// independently, reconciles happen in any order and number and abort halfway, Machines boot and
// fail, and their deletion takes time. It is for tests.
//
// A World adds a clock and the planner of Machines: reconciles, VMs, Nodes and drains take time.
// Its stories, in testdata/stories, are scripts with the trace of the decisions, their times and
// their reasons. "make stories" writes new traces: read the diff.
package simulator
