package drover

// Keys of Drover's contract that drover-karpenter sets or reads.
const (
	// TaintUninitialized is the taint that a kubelet registers with, until the Node has the labels and taints of its Machine.
	TaintUninitialized = "machine.drover.dev/uninitialized"
	// FinalizerTerminator keeps a Machine until its VM is gone. Drover adds it to a Machine without it, by another write.
	FinalizerTerminator = "machine.drover.dev/terminator"
	// AnnotationSkipDrain deletes a Machine without a drain.
	AnnotationSkipDrain = "drover.dev/skip-drain"
	// HookDrain is the annotation that holds the drain of a Machine until Karpenter has drained its Node.
	HookDrain = "pre-drain.hook.machine.drover.dev/karpenter"
)

// Keys of drover-karpenter on Machines.
const (
	// LabelCluster is the UID of the namespace kube-system of the target cluster. It separates the Machines of several
	// drover-karpenters in a namespace.
	LabelCluster = "karpenter.drover.dev/cluster"
	// LabelNodeClaim is the name of the NodeClaim that the Machine was made for.
	LabelNodeClaim = "karpenter.drover.dev/nodeclaim"
	// AnnotationNodeClaimUID is the UID of that NodeClaim.
	AnnotationNodeClaimUID = "karpenter.drover.dev/nodeclaim-uid"
)

// Codes of a provider's error, in status.lastOperation.errorCode.
const (
	CodeCapacityExhausted = "CapacityExhausted"
	CodeQuotaExceeded     = "QuotaExceeded"
)

// Conditions of a Machine.
const (
	ConditionValid               = "Valid"
	ConditionInfrastructureReady = "InfrastructureReady"
)

// PhaseFailed is the phase of a Machine that will never be Running.
const PhaseFailed = "Failed"

// Reasons of failure of a Machine.
const (
	FailureCreateFailed    = "CreateFailed"
	FailureCreateUnknown   = "CreateResultUnknown"
	FailureCapacityTimeout = "CapacityTimeout"
	FailureVMLost          = "VMLost"
	FailureVMFailed        = "VMFailed"
	FailureNodeDeleted     = "NodeDeleted"
	FailureJoinTimeout     = "JoinTimeout"
	FailureNodeUnhealthy   = "NodeUnhealthy"
)

// Stages of the deletion of a Machine that have not passed its Node.
const (
	StageHeld             = "Held"
	StagePaused           = "Paused"
	StagePreDrainHooks    = "WaitingForPreDrainHooks"
	StageDraining         = "Draining"
	StageDetachingVolumes = "DetachingVolumes"
	StageDeletingNode     = "DeletingNode"
)

// Kinds of classes, and of configurations of target clusters.
const (
	KindMachineClass        = "MachineClass"
	KindClusterMachineClass = "ClusterMachineClass"

	KindProviderConfig        = "ProviderConfig"
	KindClusterProviderConfig = "ClusterProviderConfig"
)
