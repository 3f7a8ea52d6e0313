// Package v1alpha1 holds the virtual machines of VMware Cloud Director, and the configurations with the
// address of a Cloud Director.
//
// +kubebuilder:object:generate=true
// +groupName=vcd.drover.dev
// +versionName=v1alpha1
package v1alpha1
