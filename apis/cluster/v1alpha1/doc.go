// Package v1alpha1 holds the configurations that say how to reach a target cluster, and
// what a Machine and its Node agree on when the Node joins: labels and annotations of Nodes
// and of bootstrap tokens (keys.go), the keys of the Secret with the user data, and the
// placeholders of its template (join.go). A bootstrap token and a Node are no API objects of
// Drover: the controller of the Machine keeps both.
//
// +kubebuilder:object:generate=true
// +groupName=cluster.drover.dev
// +versionName=v1alpha1
package v1alpha1
