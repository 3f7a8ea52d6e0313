// Package simulator plays the provider of any managed resource whose CRD is installed, and the
// cloud behind it. A short description has the differences between clouds: the names of VMs, the
// field with the user data, the status of a VM, and the texts of errors.
//
// The provider's half is real: it is crossplane-runtime's reconciler of managed resources. So
// finalizers, annotations, conditions and management policies are the real ones. For providers that
// upjet generates, it adds the order of events of upjet's asynchronous operations. In the cloud's
// half, VMs are guests: see package guest.
package simulator
