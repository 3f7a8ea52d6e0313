package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// NodeTemplateStatus has the expected properties of a Node of the template. Its form is the contract of the
// cluster-autoscaler's provider clusterapi.
type NodeTemplateStatus struct {
	// Capacity of the Node.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`

	// NodeInfo of the Node.
	// +optional
	NodeInfo NodeTemplateInfo `json:"nodeInfo,omitempty,omitzero"`
}

// NodeTemplateInfo is a part of a Node's status.nodeInfo.
type NodeTemplateInfo struct {
	// Architecture of the Node, like amd64.
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// OperatingSystem of the Node, like linux.
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// A NodeTemplate reports what Nodes a MachineDeployment or MachineSet would have, so that the
// cluster-autoscaler can scale it up from zero. Drover makes it under the name of the object
// whose spec.template.spec.infrastructureRef names it, from spec.nodeCapacity of the class. It
// is never written by hand. It has no subresource status, because a composed object is applied
// as a whole.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=drover
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.capacity.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.capacity.memory`
// +kubebuilder:printcolumn:name="Architecture",type=string,JSONPath=`.status.nodeInfo.architecture`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Status NodeTemplateStatus `json:"status,omitempty"`
}

// A NodeTemplateList is a list of NodeTemplates.
//
// +kubebuilder:object:root=true
type NodeTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeTemplate `json:"items"`
}

// An InfrastructureReference names an object in the same namespace that has status.capacity and
// status.nodeInfo. All of its fields are text, as the cluster-autoscaler requires.
type InfrastructureReference struct {
	// APIVersion of the object.
	// +kubebuilder:default="machine.drover.dev/v1alpha1"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the object. The plural of its resource must be the kind in lower case with an s.
	// +kubebuilder:default=NodeTemplate
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// Name of the object. A NodeTemplate has the name of the MachineDeployment or MachineSet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// IsNodeTemplate reports whether the reference is to a NodeTemplate of Drover. Without a kind and
// an API version, which an API server defaults, it is.
func (r *InfrastructureReference) IsNodeTemplate() bool {
	return r != nil && (r.Kind == "" || r.Kind == NodeTemplateGroupVersionKind.Kind) && (r.APIVersion == "" || r.APIVersion == SchemeGroupVersion.String())
}
