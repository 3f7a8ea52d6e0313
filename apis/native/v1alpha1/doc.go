// Package v1alpha1 holds the fields that the VMs of all native providers have: the source of
// their user data, and their observed state. The kinds themselves are in the group
// of each cloud's provider.
//
// +kubebuilder:object:generate=true
// +groupName=native.drover.dev
package v1alpha1
