// Package providers tests the Compositions of clouds against the schemas of the VMs that
// they compose: what the class of the examples becomes, that an API server takes it, and
// what is read of a VM that its provider observed.
//
// It has no tests of its own of what all clouds share; see internal/function.
package providers
