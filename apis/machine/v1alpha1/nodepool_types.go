package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// MaxFailureDomains is the largest number of failure domains that a NodePool may have.
const MaxFailureDomains = 16

// A FailureDomain is the name of a zone, or of its equivalent at the cloud.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
type FailureDomain string

// PoolAutoscaling bounds a pool whose size the cluster-autoscaler decides.
//
// +kubebuilder:validation:XValidation:rule="self.min <= self.max",message="min must not be above max"
type PoolAutoscaling struct {
	// Min is the smallest number of Nodes of the pool, over all failure domains.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Min int32 `json:"min"`

	// Max is the largest number of Nodes of the pool, over all failure domains.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Max int32 `json:"max"`
}

// A FailureDomainOrder selects the order in which the failure domains of a pool roll.
// +kubebuilder:validation:Enum=Parallel;OneByOne
type FailureDomainOrder string

// Orders of failure domains.
const (
	// FailureDomainsParallel rolls all failure domains at the same time.
	FailureDomainsParallel FailureDomainOrder = "Parallel"
	// FailureDomainsOneByOne rolls one failure domain after the other.
	FailureDomainsOneByOne FailureDomainOrder = "OneByOne"
)

// PoolStrategy selects how the Machines of a pool are replaced.
type PoolStrategy struct {
	Strategy `json:",inline"`

	// FailureDomains selects the order in which the failure domains roll. Parallel rolls all of them at
	// the same time. OneByOne rolls them in the order of spec.failureDomains: the next one begins when the
	// rollout of the one before is complete. One that has no capacity is passed over. The default is
	// Parallel.
	// +optional
	FailureDomains FailureDomainOrder `json:"failureDomains,omitempty"`
}

// NodePoolSpec has the Nodes that a team requests, from the offer of the platform.
//
// +kubebuilder:validation:XValidation:rule="has(self.size) != has(self.autoscaling)",message="exactly one of size and autoscaling must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.maxAge) || !has(self.strategy) || !has(self.strategy.type) || self.strategy.type != 'OnDelete'",message="rollout.maxAge must be absent if strategy.type is OnDelete: then only a user replaces Machines"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.maxAge) || !has(self.strategy) || !has(self.strategy.type) || self.strategy.type != 'InPlaceUpdate' || !has(self.strategy.inPlaceUpdate) || !has(self.strategy.inPlaceUpdate.fallback) || self.strategy.inPlaceUpdate.fallback != 'Never'",message="rollout.maxAge must be absent if strategy.inPlaceUpdate.fallback is Never: it replaces Machines"
type NodePoolSpec struct {
	// Class of the Nodes: the name of one that the platform offers. A change replaces the
	// Machines by those of the other class, by the strategy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Class string `json:"class"`

	// Size is the number of Nodes of the pool, over all failure domains.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Size *int32 `json:"size,omitempty"`

	// Autoscaling lets the cluster-autoscaler decide on the number of Nodes.
	// +optional
	Autoscaling *PoolAutoscaling `json:"autoscaling,omitempty"`

	// Version of the kubelet, like v1.35.4. The default is the first version that the platform
	// offers. A change replaces the Machines.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^v[0-9]+\\\\.[0-9]+\\\\.[0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="must be a kubelet version like v1.35.4"
	Version string `json:"version,omitempty"`

	// FailureDomains that the Nodes are spread over. The default is all those of the class.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`

	// Labels of the Nodes. A change reaches existing Nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:Format=labels
	// +kubebuilder:validation:XValidation:rule="!('cluster.drover.dev/join-token' in self) && !('cluster.drover.dev/config' in self)",message="cluster.drover.dev/join-token and cluster.drover.dev/config are set by Drover, which knows the Node of a Machine by them"
	Labels map[string]string `json:"labels,omitempty"`

	// Taints of the Nodes. A change reaches existing Nodes.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MaxItems=32
	Taints []Taint `json:"taints,omitempty"`

	// Strategy of replacement, in each failure domain: maxSurge and maxUnavailable are those of
	// each MachineDeployment. A size that moves from one failure domain to another uses them, too,
	// once for the whole pool.
	// +kubebuilder:default={}
	Strategy PoolStrategy `json:"strategy,omitempty,omitzero"`

	// Rollout configures when Machines are replaced, in each failure domain as in a
	// MachineDeployment: windows, blackouts, the effect of a failure, and a rollout of a template that
	// did not change.
	// +optional
	Rollout Rollout `json:"rollout,omitempty,omitzero"`

	// Paused holds rollouts: Machines are neither replaced nor updated because of a change of the
	// class, the version or the platform's offer. Scaling, and replacing those that failed, go on.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// PoolDomain is a failure domain of a pool: the decision about it, and its observed state.
type PoolDomain struct {
	// Name of the failure domain. It is empty where the class decides.
	Name string `json:"name"`
	// MachineDeployment of the failure domain.
	MachineDeployment string `json:"machineDeployment"`

	// DesiredReplicas is the decided number of Machines. In a pool with autoscaling it counts
	// until the cluster-autoscaler scales the MachineDeployment.
	DesiredReplicas int32 `json:"desiredReplicas"`
	// Decision counts the decisions. The MachineDeployment carries out the one that its annotation
	// machine.drover.dev/pool-decision names.
	Decision int64 `json:"decision"`
	// Most is how many Machines there may be at most until the decision is carried out, with those
	// that are terminating. It is absent when the decision is carried out.
	// +optional
	Most int32 `json:"most,omitempty"`
	// Least is how many Machines there may be at least until the decision is carried out. It is
	// absent if that is as many as was decided.
	// +optional
	Least *int32 `json:"least,omitempty"`
	// MinSize is the part of spec.autoscaling.min.
	// +optional
	MinSize *int32 `json:"minSize,omitempty"`
	// MaxSize is the part of spec.autoscaling.max.
	// +optional
	MaxSize *int32 `json:"maxSize,omitempty"`
	// PreviousMaxSize is the maximum that the cluster-autoscaler may have read before MaxSize was
	// lowered, and may still act on. It is absent 30 seconds after the MachineDeployment has the
	// smaller one.
	// +optional
	PreviousMaxSize int32 `json:"previousMaxSize,omitempty"`
	// LoweredTime is when MaxSize was last lowered.
	// +optional
	LoweredTime *metav1.Time `json:"loweredTime,omitempty"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`
	// UpdatedReplicas is the number of Machines of the current template.
	UpdatedReplicas int32 `json:"updatedReplicas"`
	// AvailableReplicas is the number of Machines whose Node is Ready.
	AvailableReplicas int32 `json:"availableReplicas"`

	// Template identifies the template that the failure domain has, or shall get now. It is absent
	// unless strategy.failureDomains is OneByOne.
	// +optional
	Template string `json:"template,omitempty"`
	// Suspended means that the rollout of the failure domain is paused because the cloud has no
	// capacity there, and another failure domain rolls.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// WaitsFor is the failure domain whose rollout ends before that of this one begins or continues. It is
	// absent if this one waits for none.
	// +optional
	WaitsFor string `json:"waitsFor,omitempty"`

	// Exhausted has the time since when the cloud has no room there. It is absent if it has.
	// +optional
	Exhausted *Exhaustion `json:"exhausted,omitempty"`
}

// PoolOffer is what the platform offers to the NodePools of a namespace.
type PoolOffer struct {
	// Classes that spec.class may name, the first 64 by name. Classes that do not exist, or that
	// Machines of the namespace may not use, are left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Classes []PoolClass `json:"classes,omitempty"`
	// Versions that spec.version may name. The first one is the default.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Versions []string `json:"versions,omitempty"`
	// MaxSize is the largest number of Nodes of a pool, whatever its class.
	MaxSize int32 `json:"maxSize"`
	// ClusterRef names the cluster that the Nodes join.
	// +optional
	ClusterRef ClusterReference `json:"clusterRef,omitempty,omitzero"`
}

// PoolClass is a class that the platform offers.
type PoolClass struct {
	// Name of the class, as spec.class names it.
	Name string `json:"name"`
	// Size is the name by which the cloud knows the kind of VM, such as an instance type. It is
	// absent if the class gives none.
	// +optional
	Size string `json:"size,omitempty"`
	// Capacity of a Node, such as 4 CPUs and 16Gi. It is absent if the class does not declare it.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// FailureDomains that spec.failureDomains may name, which are also the default. There are none
	// if the class decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	FailureDomains []FailureDomain `json:"failureDomains,omitempty"`
	// MaxSize is the largest number of Nodes of a pool of the class.
	MaxSize int32 `json:"maxSize"`
}

// NodePoolStatus sums up the MachineDeployments of a pool.
type NodePoolStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about,
	// its conditions included.
	// It is -1 until a spec was observed.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selector in the form of the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Version of the kubelet that is rolled out.
	// +optional
	Version string `json:"version,omitempty"`

	// DesiredReplicas is the number of Machines that all failure domains together shall have.
	DesiredReplicas int32 `json:"desiredReplicas"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`

	// UpdatedReplicas is the number of Machines of the current template.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// ReadyReplicas is the number of Machines with a Ready Node.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is the number of Machines whose Node is available.
	AvailableReplicas int32 `json:"availableReplicas"`

	// TerminatingReplicas is the number of Machines that are being deleted: their
	// VMs may still be there.
	TerminatingReplicas int32 `json:"terminatingReplicas"`

	// UnhealthyReplicas is the number of Machines that are Unknown or Failed, or that cannot be
	// created.
	// +optional
	UnhealthyReplicas int32 `json:"unhealthyReplicas,omitempty"`

	// Offer is what NodePools of the namespace may select, as the Composition of this one offers it: for
	// users that may not read Compositions, which have no namespace.
	// +optional
	Offer *PoolOffer `json:"offer,omitempty"`

	// FailureDomains and how many Machines each shall have. A decision is written here first and
	// carried out when it is read back, so that a view that lags behind can neither repeat nor
	// contradict an executed decision.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	FailureDomains []PoolDomain `json:"failureDomains,omitempty"`

	// Replacements are the last ten Machines with a Node that were deleted although the pool did not
	// shrink, the latest one last: those that failed, that a rollout or a user replaced, and those
	// that another client deleted. Scale-downs are not among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Replacements []ReplacedMachine `json:"replacements,omitempty"`

	// Conditions of the pool.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A NodePool is the request of a team: Nodes of a class that its platform offers. It has a
// MachineDeployment for each failure domain.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=np,categories=drover
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Terminating",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.autoscaling.min`,priority=1
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.autoscaling.max`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   NodePoolSpec   `json:"spec"`
	Status NodePoolStatus `json:"status,omitempty,omitzero"`
}

// A NodePoolList is a list of NodePools.
//
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}
