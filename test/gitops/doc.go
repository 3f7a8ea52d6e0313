// Package gitops asks Argo CD, Flux and the Crossplane CLI, each built unmodified (clients),
// for their verdicts on live objects.
//
// A watch records every version of every object of a fleet. The verdicts on all of them are
// compared with the truth: the Machines that existed at the same revision of the API server.
package gitops
