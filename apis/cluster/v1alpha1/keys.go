package v1alpha1

const (
	// LabelJoinToken on a bootstrap token's Secret in the target cluster is the UID of the Machine
	// that the token was minted for. The kubelet of that Machine registers its Node with it: a Node
	// without it is not the Machine's.
	LabelJoinToken = Group + "/join-token"

	// LabelConfig beside LabelJoinToken is the UID of the configuration that the token was minted
	// through. It prevents one Drover from treating the token of another Drover as its own.
	LabelConfig = Group + "/config"

	// FinalizerInUse keeps a ProviderConfig or ClusterProviderConfig while a Machine uses it.
	FinalizerInUse = Group + "/in-use"
)

// Annotations of the Secret that belongs to a Machine and has its join token and its user data.
const (
	// AnnotationMinted is when the secret half of the token was minted. The token has the
	// annotation too. If the two times differ, the earlier one counts.
	AnnotationMinted = Group + "/minted"
	// AnnotationTokenExpires is the end of the lease that the token had when the Secret was written.
	// Renewals do not write the Secret.
	AnnotationTokenExpires = Group + "/token-expires"
)
