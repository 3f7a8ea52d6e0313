// Package v1alpha1 holds what the inventories of all clouds have in common: what
// is asked of one, and what it says. The kinds themselves are in the group of each
// cloud's provider.
//
// +kubebuilder:object:generate=true
// +groupName=inventory.drover.dev
package v1alpha1
