package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A StrategyType says how Machines of an old template are replaced.
// +kubebuilder:validation:Enum=RollingUpdate
type StrategyType string

// RollingUpdate replaces Machines a few at a time.
const RollingUpdate StrategyType = "RollingUpdate"

// Strategy says how Machines of an old template are replaced.
type Strategy struct {
	// Type of the strategy.
	// +kubebuilder:default=RollingUpdate
	Type StrategyType `json:"type,omitempty"`

	// RollingUpdate bounds a rolling update.
	// +kubebuilder:default={maxSurge: 1, maxUnavailable: 0}
	RollingUpdate RollingUpdateBounds `json:"rollingUpdate,omitempty,omitzero"`
}

// RollingUpdateBounds bounds a rolling update.
//
// +kubebuilder:validation:XValidation:rule="!((self.maxSurge == 0 || self.maxSurge == '0%') && (self.maxUnavailable == 0 || self.maxUnavailable == '0%'))",message="maxSurge and maxUnavailable cannot both be 0: no Machine could ever be replaced"
type RollingUpdateBounds struct {
	// MaxSurge is how many Machines there may be above replicas, terminating ones
	// included: a number, or a percentage of replicas, rounded up.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// MaxUnavailable is how many Machines may be missing from replicas: a number,
	// or a percentage of replicas, rounded down. When it rounds to 0 while maxSurge
	// is 0, it counts as 1.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// MachineDeploymentSpec says how many Machines of a template there shall be, and
// how they are replaced when it changes.
//
// +kubebuilder:validation:XValidation:rule="self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="selector.matchLabels must match template.metadata.labels"
type MachineDeploymentSpec struct {
	// Replicas is the number of Machines wanted.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas"`

	// Selector of the deployment's Machines. It cannot change.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable"
	Selector Selector `json:"selector"`

	// Template of the Machines.
	Template MachineTemplate `json:"template"`

	// Strategy of replacement when the template changes.
	// +kubebuilder:default={}
	Strategy Strategy `json:"strategy,omitempty,omitzero"`

	// MinReadySeconds is for how long a Machine's Node must have been Ready, in
	// seconds, until the Machine counts as available.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// RevisionHistoryLimit is how many old, empty MachineSets are kept.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit int32 `json:"revisionHistoryLimit,omitempty"`
}

// MachineSetReplicas is how many Machines a MachineSet shall have.
type MachineSetReplicas struct {
	// Name of the MachineSet.
	Name string `json:"name"`
	// Replicas is the number of Machines that it shall have.
	Replicas int32 `json:"replicas"`
}

// MachineDeploymentStatus counts the Machines of a deployment.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selector in the form that the scale subresource wants.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`

	// UpdatedReplicas is the number of Machines of the current template.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// ReadyReplicas is the number of Machines with a Ready Node.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is the number of Machines whose Node is Ready for at
	// least minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas"`

	// UnavailableReplicas is how many available Machines are missing from replicas.
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// TerminatingReplicas is the number of Machines that are being deleted: their
	// VMs may still be there.
	TerminatingReplicas int32 `json:"terminatingReplicas"`

	// Revision of the current template.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// MachineSets and how many Machines each shall have. A decision is written
	// here first and carried out when it is read back, so that a view that lags
	// behind can neither repeat nor contradict what was carried out.
	// +optional
	// +listType=atomic
	MachineSets []MachineSetReplicas `json:"machineSets,omitempty"`

	// Conditions of the deployment.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A MachineDeployment keeps a number of Machines, and rolls them over when their
// template changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=md,categories=drover
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,priority=1
// +kubebuilder:printcolumn:name="Terminating",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.template.spec.version`
type MachineDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineDeploymentSpec   `json:"spec"`
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// A MachineDeploymentList is a list of MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}
