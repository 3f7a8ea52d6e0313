// Package machinetest is a control plane with one Machine. It runs the pipeline of a real
// Composition, carries out the decision as the Machine's controller does, and lets a test act as the
// provider and as the target cluster.
package machinetest
