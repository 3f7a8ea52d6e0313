// Package machinetest is a control plane with one Machine: it runs the pipeline of a real
// Composition, does what the Machine's controller does with the decision, and lets a test be
// the provider and the target cluster.
package machinetest
