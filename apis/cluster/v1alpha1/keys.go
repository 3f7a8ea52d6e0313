package v1alpha1

const (
	// AnnotationApplied on a Node remembers, as JSON, which labels, annotations
	// and taints its WorkerNode put there, so that it can take them off again.
	AnnotationApplied = Group + "/applied"

	// LabelJoinToken on a bootstrap token's Secret in the target cluster is the
	// UID of the JoinToken that made it.
	LabelJoinToken = Group + "/join-token"

	// LabelConfig beside it is the UID of the configuration that it was made through,
	// so that nobody takes the token of another Drover for one of theirs. A kubelet puts
	// both on its Node when it joins, and its WorkerNode takes them off: what has them has
	// not been found by one.
	LabelConfig = Group + "/config"

	// FinalizerInUse keeps a ProviderConfig or ClusterProviderConfig while a
	// WorkerNode or JoinToken uses it.
	FinalizerInUse = Group + "/in-use"
)

// Reasons of the Ready condition of a WorkerNode, beside Deleting.
const (
	// ReasonNodeJoining means that no Node with the providerID came yet.
	ReasonNodeJoining = "NodeJoining"
	// ReasonNodeReady means that the Node is Ready.
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady means that the Node says that it is not Ready.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNodeUnknown means that the Node stopped reporting.
	ReasonNodeUnknown = "NodeUnknown"
	// ReasonNodeGone means that the Node was there, and is not any more.
	ReasonNodeGone = "NodeGone"
)

// ReasonPodTerminating is the reason of a pod in a drain that is on its way out. All
// other reasons say what keeps the pod there.
const ReasonPodTerminating = "terminating"

// Reasons of the Reachable condition of a configuration.
const (
	ReasonReachable          = "Reachable"
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsInvalid = "CredentialsInvalid"
	ReasonUnauthorized       = "Unauthorized"
	ReasonUnreachable        = "Unreachable"
)

// Reasons of the Authorized condition of a configuration.
const (
	ReasonAuthorized    = "Authorized"
	ReasonRightsMissing = "RightsMissing"
)
