// Package analysis carries out RolloutAnalyses: it measures, and writes verdicts with their numbers to
// RolloutAnalysisRuns. It decides nothing about a rollout: the planner of MachineDeployments reads the verdicts.
//
//   - verdict.go makes a verdict of measurements. It is pure.
//   - nodes.go counts what is wrong on the Nodes of the new template and of the old ones.
//   - prometheus.go queries a server.
//   - reconciler.go looks for the analyses, and measures when it is time.
//
// A verdict belongs to one step of one rollout, and to the time since which all Machines of the step are available. A
// measurement that cannot be made is inconclusive, and is tried again. Only measurements that count are written, so that a
// server that cannot be reached for hours causes no writes.
package analysis
