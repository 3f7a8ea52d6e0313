package v1alpha1

// Reasons of Reachable.
const (
	// ReasonReachable means that the API server answers.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=True
	ReasonReachable = "Reachable"
	// ReasonCredentialsMissing means that the Secret of the credentials, or its key, does not
	// exist.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: Create the Secret that spec.credentials names.
	ReasonCredentialsMissing = "CredentialsMissing"
	// ReasonCredentialsInvalid means that the credentials are not a kubeconfig that Drover takes.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: Correct the kubeconfig.
	ReasonCredentialsInvalid = "CredentialsInvalid"
	// ReasonInjectedIdentityNotAllowed means that spec.credentials.source is InjectedIdentity, and
	// the flag --injected-identity-for of provider-drover does not name the configuration.
	//   - Kinds: ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: If Machines may join the control cluster, name the configuration in the flag.
	ReasonInjectedIdentityNotAllowed = "InjectedIdentityNotAllowed"
	// ReasonUnauthorized means that the API server refuses the credentials.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: Renew the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonUnreachable means that the API server does not answer.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: Check the network and the API server.
	ReasonUnreachable = "Unreachable"
	// ReasonCertificateNotTrusted means that the API server answers with a certificate that the CA
	// of the credentials did not sign, that is of another host, or that has expired.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Reachable=False
	//   - Do: Correct certificate-authority-data and the server in the kubeconfig, or renew the certificate of the API server.
	ReasonCertificateNotTrusted = "CertificateNotTrusted"
)

// Reasons of Authorized. An event with the reason RightsMissing reports a change.
const (
	// ReasonAuthorized means that the credentials give all rights.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Authorized=True
	ReasonAuthorized = "Authorized"
	// ReasonRightsMissing means that rights are missing. A warning with the reason reports it.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Of: Authorized=False
	//   - Do: Grant the rights that the message names.
	ReasonRightsMissing = "RightsMissing"
)

// Reasons of the events of configurations.
const (
	// EventInUse reports that a configuration is not deleted while it is in use. The
	// ProviderConfigs of the clouds have it too.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Type: Warning
	//   - Do: Delete the users that the message names first.
	EventInUse = "InUse"
	// EventReachability reports that the target cluster can, or cannot, be reached.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Type: Normal or Warning
	//   - Do: Read the condition Reachable.
	EventReachability = "Reachability"
)
