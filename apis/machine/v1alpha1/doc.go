// Package v1alpha1 holds the kinds that users of Drover write: MachineDeployment,
// MachineSet, Machine and MachineClass.
//
// The first three are composite resources: their XRDs are generated from these
// types. The shape of their specs and statuses, and the labels and annotations in
// keys.go, are what the cluster-autoscaler's clusterapi provider reads when its
// CAPI_GROUP is set to this group.
//
// +kubebuilder:object:generate=true
// +groupName=machine.drover.dev
// +versionName=v1alpha1
package v1alpha1
