package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// MaxNodeQueries is the maximum number of VMs in the spec of a NodeInventory.
const MaxNodeQueries = 128

// A NodeQueryStage is the progress of the deletion of a VM.
type NodeQueryStage string

// Stages of the deletion of a VM, in their order.
const (
	// NodeQueryFound is a VM that no managed resource claims.
	NodeQueryFound NodeQueryStage = "Found"
	// NodeQueryAdopted is a VM with a VM resource that may only observe it.
	NodeQueryAdopted NodeQueryStage = "Adopted"
	// NodeQueryDeletable is a VM with a VM resource that may delete it.
	NodeQueryDeletable NodeQueryStage = "Deletable"
)

// A NodeQuery describes a VM whose Node is looked for.
type NodeQuery struct {
	// ExternalName of the VM at its cloud.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ExternalName string `json:"externalName"`

	// Stage of the VM's deletion. A change of it requests a new look for the Node.
	// +optional
	// +kubebuilder:validation:Enum=Found;Adopted;Deletable
	Stage NodeQueryStage `json:"stage,omitempty"`

	// Cluster is the name of the ClusterProviderConfig, or of the ProviderConfig in the namespace,
	// of the cluster that the VM was created for. If both exist, both clusters are searched.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`

	// Namespace of the Machine that the VM was created for.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// MachineUID is the UID of that Machine, with which the Node registered.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`
	MachineUID string `json:"machineUID,omitempty"`

	// NodeName is the name that the VM was given for its Node.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// ProviderID of the VM, if its cloud reports it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ProviderID string `json:"providerID,omitempty"`
}

// NodeInventorySpec lists the VMs whose Nodes are looked for.
type NodeInventorySpec struct {
	// VirtualMachines whose Nodes are looked for.
	// +listType=map
	// +listMapKey=externalName
	// +kubebuilder:validation:MaxItems=128
	// +optional
	VirtualMachines []NodeQuery `json:"virtualMachines,omitempty"`
}

// A NodeAnswer is the Node of one VM, as its target cluster has it. If several Nodes could be the
// VM's, the answer names one that is Ready.
type NodeAnswer struct {
	// ExternalName of the VM at its cloud.
	ExternalName string `json:"externalName"`

	// Machine is the name of the Machine in the query's namespace whose VM has the nodeName of the
	// query. It is empty if there is none. A VM whose Machine exists is not an orphan, whatever its
	// tags are.
	// +optional
	Machine string `json:"machine,omitempty"`

	// Node is the name of the Node, empty if there is none.
	// +optional
	Node string `json:"node,omitempty"`

	// Cluster is the configuration of the cluster that has the Node.
	// +optional
	Cluster string `json:"cluster,omitempty"`

	// Ready means that the Node is Ready and was initialized, so that pods may run on it.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// Problem is why Drover cannot determine whether the VM has a Node that is Ready. It is empty
	// if Drover can.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// NodeInventoryStatus has the Nodes that were found for the VMs of the spec.
type NodeInventoryStatus struct {
	// ObservedGeneration is the generation of the spec that the answers belong to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// VirtualMachines are the answers, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=externalName
	VirtualMachines []NodeAnswer `json:"virtualMachines,omitempty"`
}

// A NodeInventory looks for the Nodes of VMs that have no Machine. An OrphanCollector composes one,
// so that it deletes no VM whose Node is Ready. provider-drover answers it, because only
// provider-drover connects to target clusters. A NodeInventory makes no decision, and is not meant
// to be written by hand.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=drover
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeInventory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   NodeInventorySpec   `json:"spec,omitempty"`
	Status NodeInventoryStatus `json:"status,omitempty"`
}

// A NodeInventoryList is a list of NodeInventories.
//
// +kubebuilder:object:root=true
type NodeInventoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeInventory `json:"items"`
}
