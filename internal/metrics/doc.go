// Package metrics tells Prometheus how Drover's fleets are.
//
// Gauges are computed from caches when they are asked for, so that nothing is left of an
// object that is gone. Counters and histograms are fed by transitions that are seen live:
// each happens once in the life of a Machine, and a restart of the process or a new list
// after a lost watch does not repeat it. They are by the MachineDeployment or MachineSet
// that Machines are of, and dropped when that is gone.
//
// Only the elected instance tells anything: sums over all of them are right then.
package metrics
