// Package v1alpha1 holds the virtual machines of AWS, which are instances of Amazon EC2, and the configurations
// with the account and the region.
//
// +kubebuilder:object:generate=true
// +groupName=aws.drover.dev
// +versionName=v1alpha1
package v1alpha1
