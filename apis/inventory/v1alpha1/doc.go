// Package v1alpha1 holds the parameters and the observation that the inventories of all clouds
// share. The kinds themselves are in the group of each cloud's provider.
//
// +kubebuilder:object:generate=true
// +groupName=inventory.drover.dev
package v1alpha1
