package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// MachineSpec is the desired state of a Machine. It is shared by Machines and by the
// templates of MachineSets and MachineDeployments.
//
// A change of classRef, version, clusterRef or failureDomain in a template rolls a
// MachineDeployment; all else reaches existing Machines and Nodes in place.
//
// +kubebuilder:validation:XValidation:rule="!has(self.startupTaints) || !has(self.taints) || self.startupTaints.all(s, !self.taints.exists(t, t.key == s.key && t.effect == s.effect))",message="startupTaints must not repeat taints, which are never taken off"
type MachineSpec struct {
	// Crossplane selects the Composition whose pipeline the Machine follows, with the
	// fields of a composite resource. By default it is the Composition that has the label
	// provider with the provider of the Machine's class.
	// +optional
	Crossplane *CompositionSelection `json:"crossplane,omitempty"`

	// ClassRef names the class of the VM that this Machine gets: a MachineClass of the
	// same namespace, or a ClusterMachineClass.
	ClassRef ClassReference `json:"classRef"`

	// Version of the kubelet, like v1.35.4.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="must be a kubelet version like v1.35.4"
	Version string `json:"version"`

	// ClusterRef names the cluster that the Machine joins.
	// +kubebuilder:default={kind: ClusterProviderConfig, name: default}
	ClusterRef ClusterReference `json:"clusterRef,omitempty,omitzero"`

	// Metadata of the Node. Labels and annotations are kept on the Node while
	// they are here, and taken off again when they are removed here.
	// +optional
	Metadata NodeMetadata `json:"metadata,omitempty,omitzero"`

	// Taints of the Node, kept and removed as Metadata is.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=64
	Taints []Taint `json:"taints,omitempty"`

	// StartupTaints that the Node registers with, and that another controller removes when it is
	// ready for pods: a network plugin, for example. The Machine is not Running before all are
	// removed. Drover never adds them again. A change applies to Machines that are created later.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=16
	StartupTaints []Taint `json:"startupTaints,omitempty"`

	// FailureDomain is the zone, or its equivalent at the provider, that the VM is
	// placed in. The class or the provider decides when it is empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FailureDomain *string `json:"failureDomain,omitempty"`

	// ProviderID of the VM, byte for byte as its Node has it. Drover fills it in
	// for the Machines of a MachineSet; the cluster-autoscaler reads it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID *string `json:"providerID,omitempty"`

	// InPlaceUpdate requests an update of the running VM. Drover sets it for the Machines of a
	// MachineSet that updates in place. A template must leave it empty.
	// +optional
	InPlaceUpdate *MachineUpdate `json:"inPlaceUpdate,omitempty"`

	// Preserve bounds how long a Machine is preserved for analysis.
	// +kubebuilder:default={}
	Preserve Preserve `json:"preserve,omitempty,omitzero"`

	// Drain configures how the Node is emptied before its VM is deleted.
	// +kubebuilder:default={}
	Drain Drain `json:"drain,omitempty,omitzero"`

	// Health defines when the Node is unhealthy, and for how long it may be.
	// +kubebuilder:default={}
	Health Health `json:"health,omitempty,omitzero"`

	// CreationTimeout is how long a Machine may take from its creation until it is Running: until
	// its Node has joined, is healthy for the first time, and has no startup taint any more. After
	// it, the Machine is Failed. It does not apply while the provider refuses to create the VM, or
	// while an input of the VM is invalid, because another Machine would get the same result.
	// When a refusal ends, it starts again.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="20m"
	CreationTimeout metav1.Duration `json:"creationTimeout,omitempty,omitzero"`

	// CapacityTimeout is how long the cloud may refuse the VM for lack of room (the errors
	// CapacityExhausted and QuotaExceeded) until the Machine is Failed. Without it, the
	// Machine waits for room. MachineDeployments and MachineSets with the annotations of a
	// node group of the cluster-autoscaler have a default of 30s, so that the autoscaler
	// takes another group.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="capacityTimeout must be at least 1s"
	CapacityTimeout *metav1.Duration `json:"capacityTimeout,omitempty"`

	// InfrastructureRef of a template names the object that the cluster-autoscaler reads the capacity of the
	// Nodes from, before there are any. With the kind NodeTemplate and the name of the
	// MachineDeployment or MachineSet, Drover makes that object from the class. A change rolls
	// nothing. A Machine has none.
	// +optional
	InfrastructureRef *InfrastructureReference `json:"infrastructureRef,omitempty"`
}

// A ClassReference names a class.
type ClassReference struct {
	// Kind of the class: a MachineClass of the same namespace, or a ClusterMachineClass whose
	// spec.allowedNamespaces has the namespace.
	// +optional
	// +kubebuilder:validation:Enum=MachineClass;ClusterMachineClass
	// +kubebuilder:default=MachineClass
	Kind string `json:"kind,omitempty"`

	// Name of the class.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// A ClusterReference names the configuration of a target cluster.
type ClusterReference struct {
	// Kind of the configuration: a ProviderConfig of the same namespace, or a
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

// NodeMetadata has the desired labels and annotations of a Machine's Node.
type NodeMetadata struct {
	// Labels of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:Format=labels
	// +kubebuilder:validation:XValidation:rule="!('cluster.drover.dev/join-token' in self) && !('cluster.drover.dev/config' in self)",message="cluster.drover.dev/join-token and cluster.drover.dev/config are set by Drover, which knows the Node of a Machine by them"
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the Node.
	// +optional
	// +kubebuilder:validation:MaxProperties=128
	// +kubebuilder:validation:Format=annotations
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NodeMarks are on all Nodes of a MachineSet, beside those of its template. They are set and
// removed with operations of the fleet, such as a rollout, and change no Machine.
type NodeMarks struct {
	// Annotations of the Nodes. Those of the template take precedence.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:Format=annotations
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints of the Nodes. Those of the template take precedence.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=16
	Taints []Taint `json:"taints,omitempty"`
}

// A Taint of a Node.
type Taint struct {
	// Key of the taint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	Key string `json:"key"`

	// Value of the taint.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Value string `json:"value,omitempty"`

	// Effect of the taint on pods that do not tolerate it.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// A MachineUpdate is an update in place: the Node is drained, the node's agent updates what
// runs on the VM, and the Node is uncordoned. docs/in-place-updates.md has the
// protocol that the agent speaks.
type MachineUpdate struct {
	// ID of the update. The agent repeats it in its answer, so that no answer to an
	// earlier request counts for this one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	ID string `json:"id"`

	// Version of the kubelet that the Machine will have.
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// ClassRef that the Machine will have.
	ClassRef ClassReference `json:"classRef"`

	// Selected means that the update shall be done now. Until then the Machine is a
	// candidate.
	// +optional
	Selected bool `json:"selected,omitempty"`

	// Timeout of the update, from the end of the drain on. After it the update has
	// failed; a later success of the agent still counts.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="20m"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`
}

// Preserve configures how a Machine is kept for analysis. It is kept if it has the
// annotation machine.drover.dev/preserve of the Machine or its Node.
type Preserve struct {
	// Timeout of a preservation, from its beginning. A change does not affect one
	// that has begun.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="96h"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`
}

// A DeletionOrder selects which of several equal Machines are deleted first.
// +kubebuilder:validation:Enum=Random;Newest;Oldest
type DeletionOrder string

// Orders of deletion.
const (
	// DeleteRandom picks by a hash of the names, so that the same Machines give
	// the same choice.
	DeleteRandom DeletionOrder = "Random"
	// DeleteNewest picks those that were created last.
	DeleteNewest DeletionOrder = "Newest"
	// DeleteOldest picks those that were created first.
	DeleteOldest DeletionOrder = "Oldest"
)

// Deletion selects which Machines a scale-down deletes first. Before its order
// come the Machines' own criteria: those marked by the annotation
// machine.drover.dev/delete-machine, those in trouble, and a lower
// machine.drover.dev/deletion-cost; preserved ones come last.
type Deletion struct {
	// Order among Machines that are equal otherwise.
	// +kubebuilder:default=Newest
	Order DeletionOrder `json:"order,omitempty"`
}

// A MachineTemplate is the template that a MachineSet creates Machines from.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.inPlaceUpdate)",message="spec.inPlaceUpdate is a Machine's: a template must leave it empty"
type MachineTemplate struct {
	// Metadata of the Machines.
	Metadata TemplateMetadata `json:"metadata"`

	// Spec of the Machines.
	Spec MachineSpec `json:"spec"`
}

// TemplateMetadata is put on each Machine of a template.
type TemplateMetadata struct {
	// Labels of the Machines. The selector must match them.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:Format=labels
	Labels map[string]LabelValue `json:"labels"`

	// Annotations of the Machines.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:Format=annotations
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A LabelValue is the value of a label. Its bounded length keeps the cost of the
// schema's rules over labels within the limits of the API server.
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// A Selector selects Machines by their labels. It has the JSON shape of a
// metav1.LabelSelector, of which only matchLabels is supported.
type Selector struct {
	// MatchLabels that a Machine must all have.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]LabelValue `json:"matchLabels"`
}

// Matches reports whether an object with these labels is selected.
func (s Selector) Matches(labels map[string]string) bool {
	for k, v := range s.MatchLabels {
		if labels[k] != string(v) {
			return false
		}
	}
	return true
}

// LabelsOf returns labels as objects have them. The result is not nil, and the caller's own.
func LabelsOf(in map[string]LabelValue) map[string]string {
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = string(v)
	}
	return out
}

// String returns the selector in the form of the scale subresource.
func (s Selector) String() string {
	set := labels.Set{}
	for k, v := range s.MatchLabels {
		set[k] = string(v)
	}
	return set.String()
}

// A CompositionUpdatePolicy selects the effect of a new revision of a Composition on a Machine.
// +kubebuilder:validation:Enum=Automatic;Manual
type CompositionUpdatePolicy string

// Policies of composition updates.
const (
	// CompositionUpdateAutomatic follows the latest revision.
	CompositionUpdateAutomatic CompositionUpdatePolicy = "Automatic"
	// CompositionUpdateManual keeps the revision that compositionRevisionRef names. If it
	// names none, Drover sets the latest one when it sees the Machine for the first time.
	CompositionUpdateManual CompositionUpdatePolicy = "Manual"
)

// CompositionSelection selects a Composition and one of its revisions, as the field
// spec.crossplane of a composite resource does.
type CompositionSelection struct {
	// CompositionRef names the Composition. It takes precedence over the selector.
	// +optional
	CompositionRef *CompositionReference `json:"compositionRef,omitempty"`

	// CompositionSelector selects the Composition by its labels.
	// +optional
	CompositionSelector *CompositionSelector `json:"compositionSelector,omitempty"`

	// CompositionRevisionRef names the revision. With the policy Automatic it is ignored.
	// +optional
	CompositionRevisionRef *CompositionReference `json:"compositionRevisionRef,omitempty"`

	// CompositionRevisionSelector restricts the revisions to those with these labels.
	// +optional
	CompositionRevisionSelector *CompositionSelector `json:"compositionRevisionSelector,omitempty"`

	// CompositionUpdatePolicy selects whether the Machine follows new revisions. The default
	// is Automatic.
	// +optional
	CompositionUpdatePolicy CompositionUpdatePolicy `json:"compositionUpdatePolicy,omitempty"`

	// ResourceRefs name the VM, its companions, and whatever else the pipeline composed for
	// the Machine, where "crossplane resource trace" looks for them. Drover writes them with
	// the providerID, or when the provider reports an error before. They decide nothing:
	// any other value is overwritten, and that of a template is ignored.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ResourceRefs []ResourceReference `json:"resourceRefs,omitempty"`
}

// A ResourceReference names an object in the namespace of the object that refers to it.
type ResourceReference struct {
	// APIVersion of the object.
	APIVersion string `json:"apiVersion"`
	// Kind of the object.
	Kind string `json:"kind"`
	// Name of the object.
	Name string `json:"name"`
}

// A CompositionReference names a Composition or a CompositionRevision.
type CompositionReference struct {
	// Name of the Composition or CompositionRevision.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// A CompositionSelector selects Compositions or CompositionRevisions.
type CompositionSelector struct {
	// MatchLabels that a Composition or CompositionRevision must all have.
	MatchLabels map[string]string `json:"matchLabels"`
}
