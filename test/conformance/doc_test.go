// Package conformance holds each provider's Composition against what Drover promises of
// every provider, on a local control plane with Drover installed from its packages.
//
// What a provider must do are the cases, in cases_test.go. What the suite must know of a
// provider is a Cloud: of a provider that exists elsewhere it is a file in clouds, which
// package simulator plays, and of one of Drover's own some Go that has the real provider
// talk to a fake of its cloud. docs/adding-a-provider.md tells how to add one.
package conformance
