package v1alpha1

import (
	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	xpv2 "github.com/crossplane/crossplane-runtime/v2/apis/common/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A NodeTaint is a taint that a WorkerNode keeps on its Node.
type NodeTaint struct {
	// Key of the taint.
	Key string `json:"key"`
	// Value of the taint.
	// +optional
	Value string `json:"value,omitempty"`
	// Effect of the taint.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect string `json:"effect"`
}

// WorkerNodeDrain says how the Node is emptied when the WorkerNode is deleted, or
// shall be drained. The timeout counts from the deletion, from the end of the wait
// for hooks, or from when Drained was asked for.
type WorkerNodeDrain struct {
	machinev1alpha1.Drain `json:",inline"`

	// Skip the drain: the Node is deleted with its pods.
	// +optional
	Skip bool `json:"skip,omitempty"`
}

// WorkerNodeParameters say which Node a WorkerNode is, and what it keeps on it.
type WorkerNodeParameters struct {
	// ProviderID of the Node. The Node is found by it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="providerID is immutable"
	ProviderID string `json:"providerID"`

	// Addresses of the VM, as its cloud tells them. The serving certificate of the
	// Node's kubelet is approved for these and for the Node's name, and no others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Addresses []NodeAddress `json:"addresses,omitempty"`

	// NodeName finds the Node at clouds whose Nodes have no providerID: the Node of
	// this name is given the ProviderID. One that has another is not touched.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="nodeName is immutable"
	NodeName string `json:"nodeName,omitempty"`

	// Labels kept on the Node. A label that is removed here is removed there, unless
	// somebody else had set it before; then it gets the value that it had.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations kept on the Node, as Labels are.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints kept on the Node, as Labels are.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	Taints []NodeTaint `json:"taints,omitempty"`

	// StartupTaints that somebody else takes off when the Node is ready for pods.
	// Those that are there are in the status.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	StartupTaints []NodeTaint `json:"startupTaints,omitempty"`

	// Drained asks for the Node to be cordoned and emptied, as at a deletion, though
	// it stays. The timeout counts from then on. When it is taken back, the Node is
	// uncordoned if it was cordoned for this.
	// +optional
	Drained bool `json:"drained,omitempty"`

	// Drain of the Node.
	// +kubebuilder:default={}
	Drain WorkerNodeDrain `json:"drain,omitempty,omitzero"`
}

// A NodeCondition is a condition of a Node, without its heartbeat.
type NodeCondition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status of the condition: True, False or Unknown.
	Status string `json:"status"`
	// Reason of the status.
	// +optional
	Reason string `json:"reason,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// A NodeAddress is an address of a Node.
type NodeAddress struct {
	// Type of the address, as in a Node's status.
	Type string `json:"type"`
	// Address itself.
	Address string `json:"address"`
}

// WorkerNodeInfo is what a Node says of itself.
type WorkerNodeInfo struct {
	// +optional
	KubeletVersion string `json:"kubeletVersion,omitempty"`
	// +optional
	OSImage string `json:"osImage,omitempty"`
	// +optional
	KernelVersion string `json:"kernelVersion,omitempty"`
	// +optional
	ContainerRuntimeVersion string `json:"containerRuntimeVersion,omitempty"`
	// +optional
	Architecture string `json:"architecture,omitempty"`
	// +optional
	OperatingSystem string `json:"operatingSystem,omitempty"`
}

// A BlockedPod is a pod that a drain still waits for.
type BlockedPod struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Name of the pod.
	Name string `json:"name"`
	// Reason that it is still there.
	Reason string `json:"reason"`
}

// A DrainStage says what a drain waits for.
// +kubebuilder:validation:Enum=WaitingForHooks;EvictingPods;DetachingVolumes;DeletingNode
type DrainStage string

// Stages of a drain.
const (
	// DrainWaitingForHooks is held by pre-drain hooks of the Machine.
	DrainWaitingForHooks DrainStage = "WaitingForHooks"
	// DrainEvictingPods waits for pods to go.
	DrainEvictingPods DrainStage = "EvictingPods"
	// DrainDetachingVolumes waits for volumes to be detached from the Node.
	DrainDetachingVolumes DrainStage = "DetachingVolumes"
	// DrainDeletingNode has nothing left to wait for.
	DrainDeletingNode DrainStage = "DeletingNode"
)

// A VolumeState says what becomes of a volume of a Node that is drained.
// +kubebuilder:validation:Enum=Detaching;Reattaching;Stuck
type VolumeState string

// States of a volume.
const (
	// VolumeDetaching is used by no pod on the Node, and still attached to it.
	VolumeDetaching VolumeState = "Detaching"
	// VolumeReattaching is detached from the Node, and not attached elsewhere yet.
	VolumeReattaching VolumeState = "Reattaching"
	// VolumeStuck was not detached within the timeout, and is not waited for.
	VolumeStuck VolumeState = "Stuck"
)

// A MovingVolume is a PersistentVolume that leaves a Node.
type MovingVolume struct {
	// Name of the PersistentVolume.
	Name string `json:"name"`
	// State of it.
	State VolumeState `json:"state"`
	// Since when it is in this state.
	Since metav1.Time `json:"since"`
}

// DrainStatus is how far a drain got.
type DrainStatus struct {
	// StartTime of the drain, from which its timeout counts; of the wait for hooks
	// while there are any.
	StartTime metav1.Time `json:"startTime"`
	// Stage of the drain.
	// +optional
	Stage DrainStage `json:"stage,omitempty"`
	// StageSince is when the stage began.
	// +optional
	StageSince *metav1.Time `json:"stageSince,omitempty"`
	// Hooks that hold it.
	// +optional
	// +listType=atomic
	Hooks []string `json:"hooks,omitempty"`
	// Forced means that budgets do not count any more.
	// +optional
	Forced bool `json:"forced,omitempty"`
	// Remaining is how many pods are still to go.
	Remaining int32 `json:"remaining"`
	// Pods that are still to go, the first ten: those that do not terminate yet before
	// those that do, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Pods []BlockedPod `json:"pods,omitempty"`
	// Volumes that leave the Node.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Volumes []MovingVolume `json:"volumes,omitempty"`
}

// WorkerNodeObservation is what is known of the Node.
type WorkerNodeObservation struct {
	// NodeName is the name of the Node, once it joined.
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// NodeUID is the UID of the Node. A Node that was deleted and came back under
	// the same name is another one.
	// +optional
	NodeUID string `json:"nodeUID,omitempty"`

	// Addresses of the Node.
	// +optional
	// +listType=atomic
	Addresses []NodeAddress `json:"addresses,omitempty"`

	// NodeInfo is what the Node says of itself.
	// +optional
	NodeInfo *WorkerNodeInfo `json:"nodeInfo,omitempty"`

	// Conditions of the Node. Heartbeats are left out.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []NodeCondition `json:"conditions,omitempty"`

	// Labels of the Node whose keys lie in machine.drover.dev or drover.dev, without
	// what this WorkerNode put there.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations of the Node, as Labels are.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// StartupTaints that are still there, as key:effect, and the one that the kubelet
	// registers with until the rest of the spec is on the Node.
	// +optional
	// +listType=set
	StartupTaints []string `json:"startupTaints,omitempty"`

	// Drained means that the Node was cordoned and emptied, as spec.forProvider.drained
	// asks. It is false while there is no Node.
	// +optional
	Drained bool `json:"drained,omitempty"`

	// Drain of the Node, while there is one.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty,omitzero"`
}

// WorkerNodeSpec is what a WorkerNode shall be.
type WorkerNodeSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider WorkerNodeParameters `json:"forProvider"`
}

// WorkerNodeStatus is what is known of a WorkerNode.
type WorkerNodeStatus struct {
	xpv1.ResourceStatus `json:",inline"`

	// +optional
	AtProvider WorkerNodeObservation `json:"atProvider,omitempty"`
}

// A WorkerNode is the Node of a Machine in the cluster that it joins. It is Ready
// when the Node is. Nothing is created: the Node comes by itself, when the VM's
// kubelet registers it. Deletion drains the Node and then deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=wn,categories={crossplane,managed,drover}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.atProvider.nodeName`
// +kubebuilder:printcolumn:name="Drain",type=string,JSONPath=`.status.atProvider.drain.stage`
// +kubebuilder:printcolumn:name="To-Evict",type=integer,JSONPath=`.status.atProvider.drain.remaining`
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.spec.forProvider.providerID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type WorkerNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkerNodeSpec   `json:"spec"`
	Status WorkerNodeStatus `json:"status,omitempty"`
}

// A WorkerNodeList is a list of WorkerNodes.
//
// +kubebuilder:object:root=true
type WorkerNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkerNode `json:"items"`
}
