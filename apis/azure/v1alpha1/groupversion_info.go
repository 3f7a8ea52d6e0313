package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// Group and version of the kinds in this package.
const (
	Group   = "azure.drover.dev"
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

// VirtualMachineGroupVersionKind is the kind of VMs.
var VirtualMachineGroupVersionKind = SchemeGroupVersion.WithKind("VirtualMachine")

func init() {
	SchemeBuilder.Register(&VirtualMachine{}, &VirtualMachineList{})
}
