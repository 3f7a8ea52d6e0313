package v1alpha1

// Keys of the Secret with a Machine's user data.
const (
	// ConnectionToken is the bootstrap token, as <id>.<secret>.
	ConnectionToken = "token"
	// ConnectionServer is the URL of the target cluster's API server.
	ConnectionServer = "server"
	// ConnectionCA is the PEM bundle to verify the API server's certificate with.
	ConnectionCA = "ca.crt"
	// ConnectionUserData is the user data of the Machine's VM.
	ConnectionUserData = "userData"
)

// Placeholders in user data for values that only the Machine's controller knows.
const (
	// PlaceholderToken stands for the bootstrap token.
	PlaceholderToken = "$(token)"
	// PlaceholderServer stands for the URL of the API server.
	PlaceholderServer = "$(server)"
	// PlaceholderCA stands for the PEM bundle, encoded as base64 in one line.
	PlaceholderCA = "$(ca.crt|base64)"
	// PlaceholderUID stands for the UID of the Machine, and PlaceholderConfigUID for the UID of the
	// configuration of its cluster.
	PlaceholderUID       = "$(joinToken.uid)"
	PlaceholderConfigUID = "$(config.uid)"
)

// Placeholders of other projects, in user data that Drover does not write.
const (
	// PlaceholderTokenMCM stands for the bootstrap token, and PlaceholderNameMCM for the name of
	// the Node, in user data for Gardener's machine-controller-manager.
	PlaceholderTokenMCM = "<<BOOTSTRAP_TOKEN>>"
	PlaceholderNameMCM  = "<<MACHINE_NAME>>"
	// PlaceholderNameKubermatic stands for the name of the Node in user data for Kubermatic's
	// machine-controller.
	PlaceholderNameKubermatic = "<MACHINE_NAME>"
)

// A UserDataEncoding is the encoding of user data in its Secret.
// +kubebuilder:validation:Enum=Plain;Base64;GzipBase64
type UserDataEncoding string

// Encodings of user data.
const (
	// UserDataPlain is no encoding.
	UserDataPlain UserDataEncoding = "Plain"
	// UserDataBase64 is that of RFC 4648, with padding and without line breaks.
	UserDataBase64 UserDataEncoding = "Base64"
	// UserDataGzipBase64 is gzip in base64, for clouds whose API takes base64 and whose VMs
	// decompress user data.
	UserDataGzipBase64 UserDataEncoding = "GzipBase64"
)
