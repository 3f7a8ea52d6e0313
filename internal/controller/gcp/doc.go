// Package gcp implements the VMs of Google Cloud for the package native. A VM is an instance of Compute Engine. Its
// external name is the UID of its managed resource, which the instance has in the label drover-vm.
//
// # Why there is no second VM
//
// Before each creation the provider chooses a request ID and records it in an annotation. While the result of a creation
// is unknown, it uses the same ID again: Compute Engine then returns the operation of the first request. The name of an
// instance is unique in its zone, so that a second creation under another request ID fails with alreadyExists. The
// instance is used then, if its label is that of the managed resource.
//
// # Observation
//
// One list of the project, which all VMs share, has the instances with the label in all zones. An instance that is not in the list is
// read by itself before anything is concluded: the operation of its creation, in which a creation without capacity fails
// after it was accepted, and the instance by its number. All further calls name an instance by its number: another
// instance of the same name is never changed or deleted.
package gcp
