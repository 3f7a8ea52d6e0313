// Package v1alpha1 holds the machines of metal-stack, and the configurations with the address of a metal-api.
//
// +kubebuilder:object:generate=true
// +groupName=metalstack.drover.dev
// +versionName=v1alpha1
package v1alpha1
