package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/internal/stored"
)

// A MachinePhase is the stage of a Machine's life in one word.
// +kubebuilder:validation:Enum=Pending;Provisioning;Joining;Running;Updating;Rebooting;Unknown;Failed;Terminating
type MachinePhase string

// Phases of a Machine.
const (
	// MachinePending waits for requirements of its VM: its class, its join token, its user data.
	MachinePending MachinePhase = "Pending"
	// MachineProvisioning has requested its VM.
	MachineProvisioning MachinePhase = "Provisioning"
	// MachineJoining has a running VM, whose Node does not exist or is not Ready yet.
	MachineJoining MachinePhase = "Joining"
	// MachineRunning has a Ready Node.
	MachineRunning MachinePhase = "Running"
	// MachineUpdating is being updated in place: its Node is drained.
	MachineUpdating MachinePhase = "Updating"
	// MachineRebooting is being rebooted: its Node is drained, or boots again.
	MachineRebooting MachinePhase = "Rebooting"
	// MachineUnknown had a healthy Node, which is not healthy or not reachable now.
	MachineUnknown MachinePhase = "Unknown"
	// MachineFailed will never be Running: see failureReason and failureMessage.
	MachineFailed MachinePhase = "Failed"
	// MachineTerminating is being deleted.
	MachineTerminating MachinePhase = "Terminating"
)

// IsOnItsWay is true until the Machine's Node is Ready for the first time, or the Machine
// fails or is deleted before that. A Machine that has no phase yet is on its way.
func (p MachinePhase) IsOnItsWay() bool {
	switch p {
	case "", MachinePending, MachineProvisioning, MachineJoining:
		return true
	default:
		return false
	}
}

// A FailureReason classifies why a Machine is Failed.
type FailureReason string

// Reasons of failure.
const (
	// FailureCreateFailed means that the provider stopped before it had a VM.
	FailureCreateFailed FailureReason = "CreateFailed"
	// FailureCreateUnknown means that it is unknown whether a VM was created: the
	// provider's answer was lost. A VM that it left is found by its tags.
	FailureCreateUnknown FailureReason = "CreateResultUnknown"
	// FailureCapacityTimeout means that the cloud had no room for the VM for longer than
	// spec.capacityTimeout. It is reset if the VM is created after all.
	FailureCapacityTimeout FailureReason = "CapacityTimeout"
	// FailureVMLost means that the VM does not exist any more although the Machine was not deleted.
	FailureVMLost FailureReason = "VMLost"
	// FailureVMFailed means that the provider reports the VM as permanently failed.
	FailureVMFailed FailureReason = "VMFailed"
	// FailureNodeDeleted means that the Node was deleted by hand or by another controller. Its
	// kubelet does not create another one by itself.
	FailureNodeDeleted FailureReason = "NodeDeleted"
	// FailureJoinTimeout means that the Machine was not Running within creationTimeout. It is reset
	// if its Node becomes healthy after all.
	FailureJoinTimeout FailureReason = "JoinTimeout"
	// FailureNodeUnhealthy means that the Node was unhealthy for longer than spec.health allows. It
	// is reset if the Node is healthy again.
	FailureNodeUnhealthy FailureReason = "NodeUnhealthy"
)

// IsKnown reports whether it is one of the reasons that are declared.
func (r FailureReason) IsKnown() bool {
	switch r {
	case FailureCreateFailed, FailureCreateUnknown, FailureCapacityTimeout, FailureVMLost, FailureVMFailed, FailureNodeDeleted,
		FailureJoinTimeout, FailureNodeUnhealthy:
		return true
	default:
		return false
	}
}

// An AddressType is the kind of an address. The values are those of a Node.
// +kubebuilder:validation:Enum=Hostname;InternalIP;ExternalIP;InternalDNS;ExternalDNS
type AddressType string

// An Address of a Machine.
type Address struct {
	// Type of the address.
	Type AddressType `json:"type"`
	// Address itself: an IP address or a name.
	Address string `json:"address"`
}

// A NodeReference names a Node of the target cluster.
type NodeReference struct {
	// APIVersion is always v1.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is always Node.
	Kind string `json:"kind"`
	// Name of the Node.
	Name string `json:"name"`
	// UID of the Node.
	// +optional
	UID string `json:"uid,omitempty"`
}

// A MachineIdentity identifies a VM and its Node.
type MachineIdentity struct {
	// UID of the Machine that the VM was made for. Its Node registered with it.
	UID types.UID `json:"uid"`
	// NodeName that the VM was given. A cloud that names Nodes may give another one.
	NodeName string `json:"nodeName"`
}

// NodeInfo is a Node's own report.
type NodeInfo struct {
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

// An OperationType is the kind of an operation on a Machine.
// +kubebuilder:validation:Enum=Create;Join;Update;Reboot;Drain;Delete
type OperationType string

// An OperationState is the progress of an operation.
// +kubebuilder:validation:Enum=Processing;Successful;Failed
type OperationState string

// Types and states of operations.
const (
	OperationCreate OperationType = "Create"
	OperationJoin   OperationType = "Join"
	OperationUpdate OperationType = "Update"
	OperationReboot OperationType = "Reboot"
	OperationDrain  OperationType = "Drain"
	OperationDelete OperationType = "Delete"

	OperationProcessing OperationState = "Processing"
	OperationSuccessful OperationState = "Successful"
	OperationFailed     OperationState = "Failed"
)

// LastOperation is the last thing that was done, or is being done, to a Machine.
type LastOperation struct {
	// Type of the operation.
	Type OperationType `json:"type"`
	// State of the operation.
	State OperationState `json:"state"`
	// ErrorCode classifies an error that the provider reported.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`
	// Description for people.
	// +optional
	Description string `json:"description,omitempty"`
	// LastUpdateTime is when type, state, code or description last changed.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty"`
}

// An UpdateState is the progress of an update in place.
// +kubebuilder:validation:Enum=Candidate;Draining;Updating;Succeeded;Failed
type UpdateState string

// States of an update in place.
const (
	// UpdateCandidate waits to be selected.
	UpdateCandidate UpdateState = "Candidate"
	// UpdateDraining drains the Node.
	UpdateDraining UpdateState = "Draining"
	// UpdateUpdating waits for the node's agent.
	UpdateUpdating UpdateState = "Updating"
	// UpdateSucceeded means that the agent reported success.
	UpdateSucceeded UpdateState = "Succeeded"
	// UpdateFailed means that the agent reported a failure, or nothing in time. A later success
	// still counts.
	UpdateFailed UpdateState = "Failed"
)

// UpdateStatus is how far an update in place is.
type UpdateStatus struct {
	// ID of the update.
	ID string `json:"id"`
	// State of the update.
	State UpdateState `json:"state"`
	// Since when the update is in this state.
	Since metav1.Time `json:"since"`
	// Message for people.
	// +optional
	Message string `json:"message,omitempty"`
	// Requested means that the label machine.drover.dev/update-selected of the Node
	// selects this candidate.
	// +optional
	Requested bool `json:"requested,omitempty"`
}

// A DeletionStage is the current part of the deletion of a Machine.
// +kubebuilder:validation:Enum=Held;Paused;WaitingForPreDrainHooks;Draining;DetachingVolumes;DeletingNode;WaitingForPreTerminateHooks;DeletingDependents;DeletingVM;DeletingCompanions;WaitingForFinalizers
type DeletionStage string

// Stages of a deletion, in their order. A stage that takes no time is not reported.
const (
	// DeletionHeld is a deletion without a decision by a user: the MachineSet that controlled the
	// Machine does not exist any more. Nothing is drained or deleted until a user confirms it.
	DeletionHeld DeletionStage = "Held"
	// DeletionPaused is a deletion that the annotation crossplane.io/paused keeps from beginning.
	DeletionPaused DeletionStage = "Paused"
	// DeletionPreDrainHooks is held by pre-drain hooks.
	DeletionPreDrainHooks DeletionStage = "WaitingForPreDrainHooks"
	// DeletionDraining evicts the pods of the Node.
	DeletionDraining DeletionStage = "Draining"
	// DeletionDetachingVolumes waits for volumes to be detached from the Node.
	DeletionDetachingVolumes DeletionStage = "DetachingVolumes"
	// DeletionDeletingNode deletes the Node. If it is refused, or if finalizers of other controllers
	// hold the Node, it ends a minute after the drain's timeout.
	DeletionDeletingNode DeletionStage = "DeletingNode"
	// DeletionPreTerminateHooks is held by pre-terminate hooks.
	DeletionPreTerminateHooks DeletionStage = "WaitingForPreTerminateHooks"
	// DeletionDeletingDependents deletes the companions that depend on the VM, such as the
	// attachment of a disk. It ends after 5 minutes at the latest.
	DeletionDeletingDependents DeletionStage = "DeletingDependents"
	// DeletionDeletingVM deletes the VM.
	DeletionDeletingVM DeletionStage = "DeletingVM"
	// DeletionDeletingCompanions deletes the companions of the VM, such as its network
	// interface. Companions that depend on the VM and still exist are deleted first.
	DeletionDeletingCompanions DeletionStage = "DeletingCompanions"
	// DeletionFinalizers has nothing left to delete: finalizers of other controllers hold the
	// Machine itself.
	DeletionFinalizers DeletionStage = "WaitingForFinalizers"
)

// HasBegun reports whether anything of the Machine was drained or deleted, or waits for its hooks.
func (s DeletionStage) HasBegun() bool {
	return s != "" && s != DeletionHeld && s != DeletionPaused
}

// IsPastNode reports whether the deletion has completed the stages of the Node: it was drained and
// deleted, or there was none. A deletion never returns to these stages.
func (s DeletionStage) IsPastNode() bool {
	switch s {
	case DeletionPreTerminateHooks, DeletionDeletingDependents, DeletionDeletingVM, DeletionDeletingCompanions, DeletionFinalizers:
		return true
	case DeletionHeld, DeletionPaused, DeletionPreDrainHooks, DeletionDraining, DeletionDetachingVolumes, DeletionDeletingNode:
	}
	return false
}

// A DrainedPod is a pod that keeps a Node from being empty.
type DrainedPod struct {
	// Namespace of the pod.
	Namespace string `json:"namespace"`
	// Name of the pod.
	Name string `json:"name"`
	// Reason that it is still there.
	Reason string `json:"reason"`
	// Cause of the reason if neither a PodDisruptionBudget nor the order of the drain is: EvictionRefused until a
	// user acts, or EvictionFailed for an error that may pass.
	// +optional
	Cause DrainCause `json:"cause,omitempty"`
}

// DrainCause is why a pod cannot be evicted, apart from budgets.
// +kubebuilder:validation:Enum=EvictionRefused;EvictionFailed
type DrainCause string

// Causes that keep a pod on a Node.
const (
	// DrainEvictionRefused means that an admission webhook or policy of the target cluster refuses the eviction, that a
	// webhook cannot be called, or that Drover lacks the right to evict pods.
	DrainEvictionRefused DrainCause = "EvictionRefused"
	// DrainEvictionFailed means another error of the target cluster.
	DrainEvictionFailed DrainCause = "EvictionFailed"
)

// DeletionStatus is how far the deletion of a Machine is.
type DeletionStatus struct {
	// Stage of the deletion.
	Stage DeletionStage `json:"stage"`
	// Since when it is in this stage.
	Since metav1.Time `json:"since"`
	// NodeDeletedTime is when the deletion left the stages of the Node: the Node was drained and
	// deleted, or there was none.
	// +optional
	NodeDeletedTime *metav1.Time `json:"nodeDeletedTime,omitempty"`
	// Hooks that hold it.
	// +optional
	// +listType=atomic
	Hooks []string `json:"hooks,omitempty"`
	// Finalizers of other controllers that hold the Node, the VM, a companion or the Machine, ten
	// at most. lastOperation names the object.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Finalizers []string `json:"finalizers,omitempty"`
	// Pods that block the drain, ten at most. Those that are terminating are not among
	// them; status.drain has all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Pods []DrainedPod `json:"pods,omitempty"`
}

// Values of the annotation machine.drover.dev/preserve.
const (
	// PreserveNow keeps the Machine from now on, until the timeout.
	PreserveNow = "now"
	// PreserveWhenFailed keeps the Machine while it is Failed.
	PreserveWhenFailed = "when-failed"
	// PreserveFalse keeps the Machine from being preserved.
	PreserveFalse = "false"
	// PreserveAuto is set on Failed Machines by their set.
	PreserveAuto = "auto"
)

// Preservation of a Machine for analysis.
type Preservation struct {
	// Value of the annotation that requested it: now, when-failed or auto.
	Value string `json:"value"`
	// Since when it is preserved.
	Since metav1.Time `json:"since"`
	// Until when it is preserved. One that is over is kept here, so that the same
	// value does not begin another.
	Until metav1.Time `json:"until"`
	// FailureMessage describes why the Machine is Failed, while it is preserved. The root
	// field is empty then: the cluster-autoscaler deletes a Machine that has it, and
	// another Machine in its place as long as this one is kept.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
}

// A ComposedReference names a resource that the pipeline composed for a Machine.
type ComposedReference struct {
	// Role of the resource: its name in the pipeline, such as vm.
	Role string `json:"role"`
	// APIVersion of the resource.
	APIVersion string `json:"apiVersion"`
	// Kind of the resource.
	Kind string `json:"kind"`
	// Name of the resource.
	Name string `json:"name"`
}

// A RefusedInstanceType is an instance type that the cloud had no room for.
type RefusedInstanceType struct {
	// Name of the entry in spec.instanceTypes of the class.
	Name string `json:"name"`
	// ErrorCode of the refusal: CapacityExhausted or QuotaExceeded.
	ErrorCode string `json:"errorCode"`
	// Message of the provider.
	// +optional
	Message string `json:"message,omitempty"`
	// Time of the refusal.
	Time metav1.Time `json:"time"`
	// Round in which it was refused.
	Round int32 `json:"round"`
	// VMUID is the UID of the VM resource whose creation was refused. The resource is deleted, and another one is
	// created for the next instance type.
	VMUID types.UID `json:"vmUID"`
}

// InstanceTypeStatus is which of the instance types of its class a Machine has, or tries.
type InstanceTypeStatus struct {
	// Name of the entry in spec.instanceTypes of the class that the VM is requested with. It is copied from the VM
	// resource. It is absent while the cloud has refused all entries.
	// +optional
	Name string `json:"name,omitempty"`
	// InstanceType of the VM as the cloud calls it. The Node has it in the label node.kubernetes.io/instance-type,
	// unless the Machine gives it another value.
	// +optional
	InstanceType string `json:"instanceType,omitempty"`
	// NodeCapacity that a Node of this instance type is expected to have. It is absent if it is unknown.
	// +optional
	NodeCapacity *NodeCapacity `json:"nodeCapacity,omitempty"`
	// Round counts how often the list of instance types was begun. It is 1 until all were refused.
	Round int32 `json:"round"`
	// Refused are the last refusals, in the order of their times. None is tried again in the same round.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Refused []RefusedInstanceType `json:"refused,omitempty"`
}

// MachineStatus is the observed state of a Machine.
type MachineStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// It is -1 until a spec was observed.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Phase of the Machine's life.
	// +optional
	Phase MachinePhase `json:"phase,omitempty"`

	// ProviderID of the VM, byte for byte as its Node has it.
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// NodeRef names the Machine's Node, once it joined.
	// +optional
	NodeRef *NodeReference `json:"nodeRef,omitempty"`

	// Identity by which the VM and the Node are known, if the Machine took over a VM that was
	// made for another Machine. It is copied from the VM resource. Any other value is overwritten.
	// +optional
	Identity *MachineIdentity `json:"identity,omitempty"`

	// Join is how far the VM has come on its way to a Ready Node.
	// +optional
	Join *JoinStatus `json:"join,omitempty"`

	// ReadySince is when Drover observed that the Node became Ready. It is absent while it is not.
	// +optional
	ReadySince *metav1.Time `json:"readySince,omitempty"`

	// NotReadySince is when Drover observed that the Node, which exists, is not Ready. It is absent
	// while it is.
	// +optional
	NotReadySince *metav1.Time `json:"notReadySince,omitempty"`

	// Addresses of the VM, as its cloud and its guest report them, or of the Node where
	// neither does. They inform users and grant nothing: certificates are approved by what
	// the VM resource itself reports.
	// +optional
	// +listType=atomic
	Addresses []Address `json:"addresses,omitempty"`

	// AppliedToNode records what Drover put on the Node, or is about to put there, so that
	// it can remove it again. It is written before the Node is patched.
	// +optional
	AppliedToNode *AppliedToNode `json:"appliedToNode,omitempty"`

	// NodeInfo is the Node's own report.
	// +optional
	NodeInfo *NodeInfo `json:"nodeInfo,omitempty"`

	// NodeGoneSince is when the Node was found to be deleted. It is absent while the Node
	// is there, and before it joined.
	// +optional
	NodeGoneSince *metav1.Time `json:"nodeGoneSince,omitempty"`

	// Drain of the Node, while the Node is drained.
	// +optional
	Drain *DrainStatus `json:"drain,omitempty"`

	// Drained means that the Node, which stays, was cordoned and emptied.
	// +optional
	Drained bool `json:"drained,omitempty"`

	// UserData is which user data of the class's own the VM was given. It is absent if Drover
	// wrote the user data.
	// +optional
	UserData *UserDataStatus `json:"userData,omitempty"`

	// CompositionRevision is the name of the CompositionRevision whose pipeline the
	// Machine follows.
	// +optional
	CompositionRevision string `json:"compositionRevision,omitempty"`

	// ResourceRefs name the VM, its companions, and whatever else the pipeline composed
	// for the Machine, all in the Machine's namespace. They serve to find these resources
	// again: only resources that the Machine controls count.
	// +optional
	// +listType=map
	// +listMapKey=role
	// +kubebuilder:validation:MaxItems=64
	ResourceRefs []ComposedReference `json:"resourceRefs,omitempty"`

	// Conditions of the Machine.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Update in place, while there is one.
	// +optional
	Update *UpdateStatus `json:"update,omitempty"`

	// Reboot of the VM: the current one, or the last.
	// +optional
	Reboot *RebootStatus `json:"reboot,omitempty"`

	// Unhealthy has the time since when the Node is unhealthy, or when it last was.
	// +optional
	Unhealthy *Unhealthiness `json:"unhealthy,omitempty"`

	// ReplaceRequested means that the annotation machine.drover.dev/replace of the Machine or its
	// Node requests another Machine in place of this one.
	// +optional
	ReplaceRequested bool `json:"replaceRequested,omitempty"`

	// NodeRequestedReplacement means that the annotation of the Node requested it. Then it
	// stays requested without the annotation, until the annotation of the Machine is false.
	// +optional
	NodeRequestedReplacement bool `json:"nodeRequestedReplacement,omitempty"`

	// Preserve is the value of the annotation machine.drover.dev/preserve that is in
	// force: the Node's, or else the Machine's.
	// +optional
	Preserve string `json:"preserve,omitempty"`

	// Preservation for analysis, while it is requested.
	// +optional
	Preservation *Preservation `json:"preservation,omitempty"`

	// Deletion of the Machine, while it is being deleted.
	// +optional
	Deletion *DeletionStatus `json:"deletion,omitempty"`

	// LastOperation done to the Machine.
	// +optional
	LastOperation *LastOperation `json:"lastOperation,omitempty"`

	// RefusedUntil is when the provider last ceased to refuse to create the VM, or what
	// was invalid was corrected: from then on spec.creationTimeout counts. It is absent when
	// neither ever was.
	// +optional
	RefusedUntil *metav1.Time `json:"refusedUntil,omitempty"`

	// ExhaustedSince is since when the cloud refuses to create the VM for lack of room. It is
	// absent if the cloud does not.
	// +optional
	ExhaustedSince *metav1.Time `json:"exhaustedSince,omitempty"`

	// InstanceType is which of the instance types of its class the Machine has, or tries. It is absent if the class
	// lists none.
	// +optional
	InstanceType *InstanceTypeStatus `json:"instanceType,omitempty"`

	// FailureReason is the reason why the phase is Failed.
	// +optional
	FailureReason FailureReason `json:"failureReason,omitempty"`

	// LossConfirmed is true while the phase is Failed, the cloud does not have the VM any more,
	// and the Node confirms it: it is known to be gone, or not Ready. Such a Machine does not
	// count for maxUnhealthy. A provider that asks the wrong account reports VMs as lost whose
	// Nodes are Ready.
	// +optional
	LossConfirmed bool `json:"lossConfirmed,omitempty"`

	// FailureMessage explains why the phase is Failed, for people. It is empty while the
	// Machine is preserved: then preservation.failureMessage has it.
	// +optional
	FailureMessage string `json:"failureMessage,omitempty"`
}

// Failure describes why the Machine is Failed, be it preserved or not.
func (s MachineStatus) Failure() string {
	if p := s.Preservation; s.FailureMessage == "" && p != nil {
		return p.FailureMessage
	}
	return s.FailureMessage
}

// A Machine is one VM that joins a cluster as a Node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=ma,categories=drover
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 63",optionalOldSelf=true,message="metadata.name must have at most 63 characters: the name of a Machine becomes a label value, and a part of the host name of its VM"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.status.nodeRef.name`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.classRef.name`,priority=1
// +kubebuilder:printcolumn:name="Failure-Domain",type=string,JSONPath=`.spec.failureDomain`,priority=1
// +kubebuilder:printcolumn:name="Instance-Type",type=string,JSONPath=`.status.instanceType.instanceType`,priority=1
// +kubebuilder:printcolumn:name="Deletion",type=string,JSONPath=`.status.deletion.stage`,priority=1
// +kubebuilder:printcolumn:name="ProviderID",type=string,JSONPath=`.status.providerID`,priority=1
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.update.state`,priority=1
// +kubebuilder:printcolumn:name="Preserved-Until",type=string,JSONPath=`.status.preservation.until`,priority=1
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Composition-Revision",type=string,JSONPath=`.status.compositionRevision`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	// Spec of the Machine. What its VM was created from cannot change.
	//
	// +kubebuilder:validation:XValidation:rule="self.classRef.kind == oldSelf.classRef.kind && self.classRef.name == oldSelf.classRef.name || has(oldSelf.inPlaceUpdate) && self.classRef.kind == oldSelf.inPlaceUpdate.classRef.kind && self.classRef.name == oldSelf.inPlaceUpdate.classRef.name",message="classRef is immutable: a VM keeps the class that it was created from, or was updated to in place"
	// +kubebuilder:validation:XValidation:rule="self.version == oldSelf.version || has(oldSelf.inPlaceUpdate) && self.version == oldSelf.inPlaceUpdate.version",message="version is immutable: replace the Machine to get another version, or update it in place through its MachineSet"
	// +kubebuilder:validation:XValidation:rule="self.clusterRef.kind == oldSelf.clusterRef.kind && self.clusterRef.name == oldSelf.clusterRef.name",message="clusterRef is immutable"
	// +kubebuilder:validation:XValidation:rule="has(self.failureDomain) == has(oldSelf.failureDomain) && (!has(self.failureDomain) || self.failureDomain == oldSelf.failureDomain)",message="failureDomain is immutable"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.providerID) || (has(self.providerID) && self.providerID == oldSelf.providerID)",message="providerID cannot change once it is set"
	// +kubebuilder:validation:XValidation:rule="!has(self.infrastructureRef)",message="infrastructureRef is a template's: a Machine must leave it empty"
	Spec MachineSpec `json:"spec"`
	// Status is the observed state of a Machine. A new Machine has one, so that no client takes it
	// for reconciled.
	//
	// +kubebuilder:default={"observedGeneration":-1}
	Status MachineStatus `json:"status,omitempty"`
}

// A MachineList is a list of Machines.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
