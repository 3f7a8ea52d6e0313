// Package v1alpha1 holds the virtual machines of Proxmox VE, and the configurations with the
// address of a cluster.
//
// +kubebuilder:object:generate=true
// +groupName=proxmox.drover.dev
// +versionName=v1alpha1
package v1alpha1
