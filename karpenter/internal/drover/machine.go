package drover

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Reference to a class or to the configuration of a cluster.
type Reference struct {
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
}

// A Taint of a Node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// NodeMetadata has the labels of a Machine's Node.
type NodeMetadata struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// MachineSpec is the desired state of a Machine.
type MachineSpec struct {
	ClassRef      Reference    `json:"classRef"`
	Version       string       `json:"version"`
	ClusterRef    Reference    `json:"clusterRef"`
	Metadata      NodeMetadata `json:"metadata,omitzero"`
	Taints        []Taint      `json:"taints,omitempty"`
	StartupTaints []Taint      `json:"startupTaints,omitempty"`
	FailureDomain *string      `json:"failureDomain,omitempty"`
}

// NodeReference names the Node of a Machine.
type NodeReference struct {
	Name string `json:"name"`
}

// DeletionStatus is the progress of a deletion.
type DeletionStatus struct {
	Stage      string   `json:"stage"`
	Finalizers []string `json:"finalizers,omitempty"`
}

// LastOperation is the last operation on a Machine.
type LastOperation struct {
	Type        string `json:"type"`
	State       string `json:"state"`
	ErrorCode   string `json:"errorCode,omitempty"`
	Description string `json:"description,omitempty"`
}

// MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	Phase          string             `json:"phase,omitempty"`
	ProviderID     string             `json:"providerID,omitempty"`
	NodeRef        *NodeReference     `json:"nodeRef,omitempty"`
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
	Deletion       *DeletionStatus    `json:"deletion,omitempty"`
	LastOperation  *LastOperation     `json:"lastOperation,omitempty"`
	FailureReason  string             `json:"failureReason,omitempty"`
	FailureMessage string             `json:"failureMessage,omitempty"`
	LossConfirmed  bool               `json:"lossConfirmed,omitempty"`
}

// A Machine is one VM that joins a cluster as a Node.
//
// +kubebuilder:object:root=true
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineSpec `json:"spec"`
	// Status is a pointer, so that a Machine that is created leaves the default to the API server.
	Status *MachineStatus `json:"status,omitempty"`
}

// Observed returns the status, which is empty if the Machine has none.
func (m *Machine) Observed() MachineStatus {
	if m.Status == nil {
		return MachineStatus{}
	}
	return *m.Status
}

// A MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
