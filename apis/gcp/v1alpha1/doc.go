// Package v1alpha1 holds the virtual machines of Google Cloud, which are instances of Compute Engine, and the
// configurations with the project.
//
// +kubebuilder:object:generate=true
// +groupName=gcp.drover.dev
// +versionName=v1alpha1
package v1alpha1
