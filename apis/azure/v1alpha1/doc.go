// Package v1alpha1 holds the virtual machines of Azure and the configurations with the subscription.
//
// +kubebuilder:object:generate=true
// +groupName=azure.drover.dev
// +versionName=v1alpha1
package v1alpha1
