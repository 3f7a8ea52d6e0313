// Package v1alpha1 holds virtual machines that are resources of a Terraform provider, and the
// configurations of such providers.
//
// +kubebuilder:object:generate=true
// +groupName=terraform.drover.dev
// +versionName=v1alpha1
package v1alpha1
