// Package simulator runs the planners of MachineDeployments and MachineSets on a
// cluster in memory that behaves as Crossplane and the API server do at their
// worst: caches lag behind, each on its own; reconciles happen in any order, any
// number of times, and break off in the middle; Machines boot, fail and take their
// time to go. It is for tests.
//
// A World adds a clock and the planner of Machines: reconciles, VMs, Nodes and drains take
// their time. Its stories, in testdata/stories, are scripts with the trace of what was decided,
// when, and why. "make stories" writes the traces anew: read the diff.
package simulator
