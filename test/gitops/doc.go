// Package gitops gets the verdicts of Argo CD, Flux and the Crossplane CLI on live objects. Each
// client is built unmodified (see clients).
//
// A watch records every version of every object of a fleet. All verdicts are compared with the
// Machines that existed at the same revision of the API server.
package gitops
