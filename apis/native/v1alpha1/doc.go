// Package v1alpha1 holds what the VMs of all native providers have in common: the source of
// their user data, and what is known of each at any cloud. The kinds themselves are in the group
// of each cloud's provider.
//
// +kubebuilder:object:generate=true
// +groupName=native.drover.dev
package v1alpha1
