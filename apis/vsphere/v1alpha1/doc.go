// Package v1alpha1 holds the virtual machines of a vCenter, and the configurations of how to reach
// one.
//
// +kubebuilder:object:generate=true
// +groupName=vsphere.drover.dev
// +versionName=v1alpha1
package v1alpha1
