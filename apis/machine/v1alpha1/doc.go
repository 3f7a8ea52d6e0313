// Package v1alpha1 holds the kinds that users of Drover write: MachineDeployment,
// MachineSet, Machine, MachineClass and OrphanCollector; and MachineGroup, which only
// MachineSets write.
//
// MachineDeployment, MachineSet and OrphanCollector are composite resources of Crossplane:
// their XRDs are generated from these types. Machine, MachineClass and MachineGroup are
// CRDs of provider-drover. The cluster-autoscaler's clusterapi provider reads these specs and
// statuses, and the labels and annotations in keys.go, if its CAPI_GROUP is set to this group.
// Their shape follows that provider.
//
// +kubebuilder:object:generate=true
// +groupName=machine.drover.dev
// +versionName=v1alpha1
package v1alpha1
