// Package simulator plays the provider of any managed resource whose CRD is installed,
// and the cloud behind it, by a description of a page: what the cloud calls a VM, where
// it finds the user data, what it tells of a VM, and how it words its errors.
//
// The provider's half is real: it is crossplane-runtime's reconciler of managed
// resources, so that finalizers, annotations, conditions and management policies are what
// they are in life, and around it, for providers that upjet makes, the order of events
// of upjet's asynchronous operations. The cloud's half are guests: see package guest.
package simulator
