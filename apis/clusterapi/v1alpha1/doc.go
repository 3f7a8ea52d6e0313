// Package v1alpha1 holds the VMs that infrastructure providers of Cluster API make, and how to reach their cluster.
//
// +kubebuilder:object:generate=true
// +groupName=clusterapi.drover.dev
// +versionName=v1alpha1
package v1alpha1
