// Package machinetest plays Crossplane, and the providers, for one Machine: it runs
// the pipeline of a real Composition, applies what comes of it, and lets a test be
// the cloud and the target cluster.
package machinetest
