package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and version of the kinds in this package.
const (
	// Domain of all groups of Drover, and of keys that belong to none of them.
	Domain  = "drover.dev"
	Group   = "machine." + Domain
	Version = "v1alpha1"
)

// SchemeGroupVersion is the group and version of the kinds in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// Kinds in this package.
var (
	MachineDeploymentGroupVersionKind = SchemeGroupVersion.WithKind("MachineDeployment")
	MachineSetGroupVersionKind        = SchemeGroupVersion.WithKind("MachineSet")
	MachineGroupVersionKind           = SchemeGroupVersion.WithKind("Machine")
	MachineGroupGroupVersionKind      = SchemeGroupVersion.WithKind("MachineGroup")
	MachineClassGroupVersionKind      = SchemeGroupVersion.WithKind("MachineClass")
	OrphanCollectorGroupVersionKind   = SchemeGroupVersion.WithKind("OrphanCollector")

	NodePoolGroupVersionKind               = SchemeGroupVersion.WithKind("NodePool")
	ClusterMachineClassGroupVersionKind    = SchemeGroupVersion.WithKind("ClusterMachineClass")
	NodeTemplateGroupVersionKind           = SchemeGroupVersion.WithKind("NodeTemplate")
	OperatingSystemProfileGroupVersionKind = SchemeGroupVersion.WithKind("OperatingSystemProfile")
	HealthProfileGroupVersionKind          = SchemeGroupVersion.WithKind("HealthProfile")
	RolloutAnalysisGroupVersionKind        = SchemeGroupVersion.WithKind("RolloutAnalysis")
	RolloutAnalysisRunGroupVersionKind     = SchemeGroupVersion.WithKind("RolloutAnalysisRun")
	RolloutPolicyGroupVersionKind          = SchemeGroupVersion.WithKind("RolloutPolicy")
	RolloutTurnGroupVersionKind            = SchemeGroupVersion.WithKind("RolloutTurn")
)

// AddToScheme adds the kinds in this package to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion,
		&NodePool{}, &NodePoolList{},
		&MachineDeployment{}, &MachineDeploymentList{},
		&MachineSet{}, &MachineSetList{},
		&Machine{}, &MachineList{},
		&MachineGroup{}, &MachineGroupList{},
		&MachineClass{}, &MachineClassList{},
		&ClusterMachineClass{}, &ClusterMachineClassList{},
		&NodeTemplate{}, &NodeTemplateList{},
		&OrphanCollector{}, &OrphanCollectorList{},
		&OperatingSystemProfile{}, &OperatingSystemProfileList{},
		&HealthProfile{}, &HealthProfileList{},
		&RolloutAnalysis{}, &RolloutAnalysisList{},
		&RolloutAnalysisRun{}, &RolloutAnalysisRunList{},
		&RolloutPolicy{}, &RolloutPolicyList{},
		&RolloutTurn{}, &RolloutTurnList{},
	)
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
