// Package v1alpha1 holds the virtual machines of Nutanix AHV, and the configurations with the
// address of a Prism Central.
//
// +kubebuilder:object:generate=true
// +groupName=nutanix.drover.dev
// +versionName=v1alpha1
package v1alpha1
