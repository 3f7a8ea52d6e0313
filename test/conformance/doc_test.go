// Package conformance tests each provider's Composition for the promises that Drover makes for
// every provider, on a local control plane with Drover installed from its packages.
//
// The promises are the cases, in cases_test.go. The suite knows a provider by a Cloud. For a
// provider of another project, the Cloud is a file in the folder clouds, which package simulator
// plays. For one of Drover's own, it is Go code that connects the real provider to a fake of its
// cloud. docs/adding-a-provider.md describes how to add one.
package conformance
