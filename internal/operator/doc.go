// Package operator has the common parts of the provider binaries: their flags, and the controller manager that
// the flags configure.
package operator
