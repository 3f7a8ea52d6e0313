package v1alpha1

// Condition types of the configurations of target clusters.
const (
	// ConditionReachable reports whether the API server of the target cluster answers and takes
	// the credentials.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Polarity: True is good
	//   - True: The API server answers.
	//   - False: The credentials are missing, wrong or refused, or the API server does not answer.
	//   - Do: Correct the credentials or the network.
	ConditionReachable = "Reachable"
	// ConditionAuthorized reports whether the credentials give all rights that Drover needs in the
	// target cluster.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Polarity: True is good
	//   - True: All rights are given.
	//   - False: The rights that the message names are missing.
	//   - Do: Apply the ClusterRole of the installation in the target cluster.
	ConditionAuthorized = "Authorized"
)
