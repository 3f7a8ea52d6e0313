package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/stored"
)

// A GroupTemplate is what several Machines of a group have in common.
type GroupTemplate struct {
	// Name of the template: a hash of the rest of it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Metadata of the Machines.
	// +optional
	Metadata GroupMetadata `json:"metadata,omitempty,omitzero"`

	// Spec of the Machines, with what Crossplane has there, and without providerID.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec"`
}

// GroupMetadata is put on each Machine of a GroupTemplate.
type GroupMetadata struct {
	// Labels of the Machines.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Machines.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Finalizers of the Machines.
	// +optional
	// +listType=set
	Finalizers []string `json:"finalizers,omitempty"`
}

// A GroupMember is a Machine that shall exist.
type GroupMember struct {
	// Name of the Machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Template of the Machine, by its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Template string `json:"template"`

	// Create the Machine if it was not created yet. Without it the Machine is one that
	// was already observed: it is kept as in its template while it exists, and never
	// created.
	// +optional
	Create bool `json:"create,omitempty"`
}

// MachineGroupSpec lists the desired Machines. Machines that neither machines nor delete names stay
// unchanged: a stale view must not delete a Machine.
type MachineGroupSpec struct {
	// Templates of the machines.
	// +optional
	// +listType=map
	// +listMapKey=name
	Templates []GroupTemplate `json:"templates,omitempty"`

	// Machines that shall exist, as in their templates.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Machines []GroupMember `json:"machines,omitempty"`

	// NodeMarks are on the Nodes of all of the set's Machines.
	// +optional
	NodeMarks NodeMarks `json:"nodeMarks,omitempty,omitzero"`

	// MatchLabels are those of the set's selector: the set is woken also by Machines that
	// have them and that it does not control.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// Delete names the Machines that shall go.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Delete []string `json:"delete,omitempty"`

	// ResourceRefs name the Machines in machines and delete, where "crossplane resource
	// trace" looks for them. They decide nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20000
	ResourceRefs []ResourceReference `json:"resourceRefs,omitempty"`
}

// A ReleasedMachine is a Machine of the group that is gone.
type ReleasedMachine struct {
	// Name of the Machine.
	Name string `json:"name"`
	// Node that it had.
	Node string `json:"node"`
	// DeletionTime is when the deletion of the Machine was requested.
	DeletionTime metav1.Time `json:"deletionTime"`
	// DrainDuration is the time from the start of the drain until the Node was deleted. It is absent
	// if there was nothing to drain.
	// +optional
	// +kubebuilder:validation:Type=string
	DrainDuration *metav1.Duration `json:"drainDuration,omitempty"`
}

// MachineGroupStatus reports the executed changes.
type MachineGroupStatus struct {
	// ObservedGeneration is the generation of the spec that was carried out last.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Created names the Machines that were created for their create, the latest last:
	// those that still have it, and the last 50 of all other ones. None of them is created
	// again.
	// +optional
	// +listType=atomic
	Created []string `json:"created,omitempty"`

	// Gone names those of created, and of spec.delete, that do not exist any more.
	// +optional
	// +listType=atomic
	Gone []string `json:"gone,omitempty"`

	// Released are the last 50 Machines with a Node that are gone, the latest one last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	Released []ReleasedMachine `json:"released,omitempty"`

	// Digest of all that a MachineSet decides by, of each of the Machines. It changes
	// when a Machine does, in batches, and wakes the MachineSet.
	// +optional
	Digest string `json:"digest,omitempty"`

	// Conditions of the group: Applied is False while something cannot be done.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A MachineGroup is how a MachineSet has its Machines made. The set composes one of
// the same name, which names the Machines and describes them; provider-drover
// creates, changes and deletes only what differs. Crossplane would apply every Machine
// of a set each time that one of them changes.
//
// It decides nothing, and is not meant to be written by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=mg,categories=drover
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=='Applied')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MachineGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   MachineGroupSpec   `json:"spec"`
	Status MachineGroupStatus `json:"status,omitempty"`
}

// A MachineGroupList is a list of MachineGroups.
//
// +kubebuilder:object:root=true
type MachineGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineGroup `json:"items"`
}
