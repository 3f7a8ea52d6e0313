// Package v1alpha1 holds the configurations of how to reach a target cluster, and the contract
// between a Machine and its Node for the join: labels and annotations of Nodes and of bootstrap
// tokens (keys.go), the keys of the Secret with the user data, and the placeholders of its template
// (join.go). Bootstrap tokens and Nodes are not API objects of Drover: the Machine controller
// manages both.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.drover.dev
// +versionName=v1alpha1
package v1alpha1
