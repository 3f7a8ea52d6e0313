// Package v1alpha1 holds the managed resources whose external resource lies in a
// target cluster (the Node, the bootstrap token), and the configurations that say
// how to reach one.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.drover.dev
// +versionName=v1alpha1
package v1alpha1
