// Package v1alpha1 holds the fields that the VM resources of all native providers have: the source
// of the user data, and the observed state. The kinds are in the groups of the providers.
//
// +kubebuilder:object:generate=true
// +groupName=native.drover.dev
package v1alpha1
