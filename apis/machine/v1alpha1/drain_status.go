package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A DrainStage is the current part of a drain.
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

// A VolumeState is the state of a volume of a Node that is drained.
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
	Pods []DrainedPod `json:"pods,omitempty"`
	// Volumes that leave the Node.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Volumes []MovingVolume `json:"volumes,omitempty"`
}

// ReasonPodTerminating is the reason of a pod in a drain that is on its way out. All
// other reasons name the cause that keeps the pod there.
const ReasonPodTerminating = "terminating"
