package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineSetSpec says how many Machines of one template there shall be.
//
// +kubebuilder:validation:XValidation:rule="self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="selector.matchLabels must match template.metadata.labels"
type MachineSetSpec struct {
	// Replicas is the number of Machines wanted.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas"`

	// Selector of the set's Machines. It cannot change.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable"
	Selector Selector `json:"selector"`

	// Template of the Machines. A change of what a VM is made from (classRef,
	// version, clusterRef, failureDomain) reaches only Machines that are created
	// after it; the rest reaches all.
	Template MachineTemplate `json:"template"`

	// MinReadySeconds is for how long a Machine's Node must have been Ready, in
	// seconds, until the Machine counts as available.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`
}

// MachineSetStatus counts the Machines of a set.
type MachineSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selector in the form that the scale subresource wants.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of Machines with a Ready Node.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is the number of Machines whose Node is Ready for at
	// least minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas"`

	// TerminatingReplicas is the number of Machines that are being deleted: their
	// VMs may still be there.
	TerminatingReplicas int32 `json:"terminatingReplicas"`

	// Created counts the Machines that this set ever created; the names of the
	// next ones come from it.
	// +optional
	Created int64 `json:"created,omitempty"`

	// Dropping names the Machines that the set gives up. A decision is written
	// here first and carried out when it is read back, so that a view that lags
	// behind cannot choose others in addition.
	// +optional
	// +listType=atomic
	Dropping []string `json:"dropping,omitempty"`

	// Conditions of the set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A MachineSet keeps a number of Machines of one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=ms,categories=drover
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready-Replicas",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,priority=1
// +kubebuilder:printcolumn:name="Terminating",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.template.spec.version`
type MachineSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSetSpec   `json:"spec"`
	Status MachineSetStatus `json:"status,omitempty"`
}

// A MachineSetList is a list of MachineSets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}
