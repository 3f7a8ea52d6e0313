// Package providers tests the Compositions of clouds against the schemas of their VMs: it renders
// the classes of the examples, creates the result on an API server, and reads the status of a VM
// that its provider observed.
//
// internal/function has the tests of behavior that all clouds share.
package providers
