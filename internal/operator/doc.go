// Package operator is what the provider binaries have in common: their flags,
// and the controller manager that the flags describe.
package operator
