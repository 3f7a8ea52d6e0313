// Package metrics reports the state of Drover's fleets to Prometheus.
//
// Gauges are computed from caches at each scrape, so that no series of a deleted object is left. Counters and
// histograms count each transition when it is observed: it happens once in the life of a Machine, and is not
// repeated by a restart of the process, or by a new list after a lost watch. They are labeled with the
// MachineDeployment or MachineSet of the Machines, and removed when it is deleted.
//
// Only the elected instance reports series, so that sums over all instances are correct.
package metrics
