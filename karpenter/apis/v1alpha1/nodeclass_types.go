package v1alpha1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a DroverNodeClass. Ready is True while each of the other conditions is. While Ready is False, Karpenter
// makes no NodeClaim of the NodeClass.
const (
	// ConditionClusterFound reports whether the configuration of the target cluster exists, and may be used in the namespace
	// of the Machines.
	ConditionClusterFound = "ClusterFound"
	// ConditionClassesFound reports whether each class exists, and may be used in the namespace of the Machines.
	ConditionClassesFound = "ClassesFound"
	// ConditionCapacityKnown reports whether cpu and memory of the Nodes of each class are known.
	ConditionCapacityKnown = "CapacityKnown"
	// ConditionPricesValid reports whether all prices are numbers, and either all classes have one or none.
	ConditionPricesValid = "PricesValid"
	// ConditionZonesValid reports whether each zone is one that its class has, and no two classes offer the same.
	ConditionZonesValid = "ZonesValid"
)

// A ClusterReference names, in the control cluster, the configuration of a target cluster.
type ClusterReference struct {
	// Kind of the configuration: a ProviderConfig in the namespace of the Machines, or a
	// ClusterProviderConfig, both of cluster.drover.dev.
	// +kubebuilder:validation:Enum=ProviderConfig;ClusterProviderConfig
	// +kubebuilder:default=ClusterProviderConfig
	Kind string `json:"kind,omitempty"`

	// Name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:default=default
	Name string `json:"name,omitempty"`
}

// A Zone is where a class can place a VM.
type Zone struct {
	// Name of the zone: the value of the label topology.kubernetes.io/zone of its Nodes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// FailureDomain of the Machines in the zone. The default is the name of the zone. If it is empty, the
	// Machine has none, and its class decides where the VM is.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	FailureDomain *string `json:"failureDomain,omitempty"`

	// Price of an hour in this zone, instead of that of the class: a number, such as 0.0104.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Price string `json:"price,omitempty"`
}

// Domain returns the failure domain of Machines in the zone, "" if they have none.
func (z Zone) Domain() string {
	if z.FailureDomain != nil {
		return *z.FailureDomain
	}
	return z.Name
}

// A Class that Karpenter may choose, or several that are offered alike.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.matchLabels)",message="either name or matchLabels must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || !has(self.instanceType)",message="instanceType must be absent with matchLabels: each class is an instance type of its own name"
type Class struct {
	// Kind of the class: a MachineClass in the namespace of the Machines, or a ClusterMachineClass
	// whose allowedNamespaces has that namespace.
	// +kubebuilder:validation:Enum=MachineClass;ClusterMachineClass
	// +kubebuilder:default=MachineClass
	Kind string `json:"kind,omitempty"`

	// Name of the class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// MatchLabels selects classes by their labels. Classes that appear later are offered as well.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// InstanceType is the value of the label node.kubernetes.io/instance-type of the Nodes. The default is
	// the name of the class. Classes with the same instance type offer the same kind of VM, such as on
	// demand and as a spot instance.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	InstanceType string `json:"instanceType,omitempty"`

	// CapacityType that the class requests from its cloud.
	// +kubebuilder:validation:Enum=on-demand;spot
	// +kubebuilder:default=on-demand
	CapacityType string `json:"capacityType,omitempty"`

	// Price of an hour: a number, such as 0.0104. The currency is the same for all classes. If no class
	// has a price, Karpenter compares sizes: a CPU counts as much as 4 GiB of memory.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Price string `json:"price,omitempty"`

	// Zones that the class is offered in.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Zones []Zone `json:"zones"`
}

// A LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// DroverNodeClassSpec describes which Machines Karpenter may create.
type DroverNodeClassSpec struct {
	// Version of the kubelet, like v1.35.4. Nodes of another version have drifted.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="must be a kubelet version like v1.35.4"
	Version string `json:"version"`

	// ClusterRef names the configuration of the cluster that this NodeClass is in: Machines join it.
	// +kubebuilder:default={kind: ClusterProviderConfig, name: default}
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterRef is immutable: the Nodes of a NodeClass are in one cluster"
	ClusterRef ClusterReference `json:"clusterRef,omitempty,omitzero"`

	// Classes that Karpenter may choose from.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Classes []Class `json:"classes"`
}

// An InstanceType that Karpenter may choose.
type InstanceType struct {
	// Name of the instance type.
	Name string `json:"name"`
	// Capacity of a Node.
	Capacity corev1.ResourceList `json:"capacity"`
	// Architecture of a Node.
	Architecture string `json:"architecture"`
	// Offerings are the zones with their capacity types, such as fsn1/on-demand.
	// +listType=atomic
	Offerings []string `json:"offerings"`
}

// DroverNodeClassStatus is the observed state of the classes.
type DroverNodeClassStatus struct {
	// InstanceTypes that Karpenter may choose from.
	// +optional
	// +listType=map
	// +listMapKey=name
	InstanceTypes []InstanceType `json:"instanceTypes,omitempty"`

	// Conditions of the NodeClass.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// A DroverNodeClass describes the Machines of Drover that Karpenter may create for the NodePools that name it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=dnc,categories=karpenter
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DroverNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DroverNodeClassSpec   `json:"spec"`
	Status DroverNodeClassStatus `json:"status,omitempty"`
}

// A DroverNodeClassList is a list of DroverNodeClasses.
//
// +kubebuilder:object:root=true
type DroverNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DroverNodeClass `json:"items"`
}

// StatusConditions returns the conditions as Karpenter evaluates them.
func (c *DroverNodeClass) StatusConditions(opts ...status.ForOption) status.ConditionSet {
	return status.NewReadyConditions(ConditionClusterFound, ConditionClassesFound, ConditionCapacityKnown, ConditionPricesValid, ConditionZonesValid).For(c, opts...)
}

// GetConditions returns the conditions.
func (c *DroverNodeClass) GetConditions() []status.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions.
func (c *DroverNodeClass) SetConditions(conditions []status.Condition) {
	c.Status.Conditions = conditions
}
