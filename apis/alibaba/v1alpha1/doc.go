// Package v1alpha1 holds the virtual machines of Alibaba Cloud, which are instances of its Elastic Compute
// Service (ECS), and the configurations with the account and the region.
//
// +kubebuilder:object:generate=true
// +groupName=alibaba.drover.dev
// +versionName=v1alpha1
package v1alpha1
