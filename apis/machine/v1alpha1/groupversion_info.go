package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group and version of the kinds in this package.
const (
	// Domain of all groups of Drover, and of keys that belong to none of them.
	Domain  = "drover.dev"
	Group   = "machine." + Domain
	Version = "v1alpha1"
)

var (
	// SchemeGroupVersion is the group and version of the kinds in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

	// SchemeBuilder adds the kinds in this package to a scheme.
	SchemeBuilder = &scheme.Builder{GroupVersion: SchemeGroupVersion}

	// AddToScheme adds the kinds in this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds in this package.
var (
	MachineDeploymentGroupVersionKind = SchemeGroupVersion.WithKind("MachineDeployment")
	MachineSetGroupVersionKind        = SchemeGroupVersion.WithKind("MachineSet")
	MachineGroupVersionKind           = SchemeGroupVersion.WithKind("Machine")
	MachineGroupGroupVersionKind      = SchemeGroupVersion.WithKind("MachineGroup")
	MachineClassGroupVersionKind      = SchemeGroupVersion.WithKind("MachineClass")
	OrphanCollectorGroupVersionKind   = SchemeGroupVersion.WithKind("OrphanCollector")
)

func init() {
	SchemeBuilder.Register(
		&MachineDeployment{}, &MachineDeploymentList{},
		&MachineSet{}, &MachineSetList{},
		&Machine{}, &MachineList{},
		&MachineGroup{}, &MachineGroupList{},
		&MachineClass{}, &MachineClassList{},
		&OrphanCollector{}, &OrphanCollectorList{},
	)
}
