package v1alpha1

// UserData is user data that Drover does not write: it fills in placeholders and leaves the
// rest as it is.
type UserData struct {
	// SecretRef names the Secret with the user data.
	SecretRef UserDataSecretReference `json:"secretRef"`
}

// A UserDataSecretReference names a Secret with user data. That of a MachineClass is in the
// namespace of the class and must have the label machine.drover.dev/user-data: "true". That of
// a ClusterMachineClass is in the namespace that the reference names and must have the label
// machine.drover.dev/user-data: cluster.
//
// The value is cloud-init or Ignition user data as text. A key format of the Secret, which is
// cloud-config or ignition, names it, and must agree with operatingSystem.provisioning.
type UserDataSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// Namespace of the Secret. A ClusterMachineClass must have it, and a MachineClass must not.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// Key of the Secret that has the user data. The default is userData, as for Gardener's
	// machine-controller-manager, or else value, as for Cluster API.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// Keys of a Secret with user data.
const (
	// UserDataKey is that of Gardener's machine-controller-manager.
	UserDataKey = "userData"
	// UserDataKeyClusterAPI is that of Cluster API.
	UserDataKeyClusterAPI = "value"
	// UserDataKeyFormat is that of the format, as Cluster API has it: one of the formats below.
	UserDataKeyFormat = "format"

	// UserDataFormatCloudInit and UserDataFormatIgnition are the values of the key format.
	UserDataFormatCloudInit = "cloud-config"
	UserDataFormatIgnition  = "ignition"
)

// UserDataStatus is which user data the VM of a Machine was given, if the class names a Secret.
type UserDataStatus struct {
	// SecretName is the name of the Secret of the class.
	SecretName string `json:"secretName"`
	// SecretNamespace is that of the Secret of a ClusterMachineClass. The Secret of a MachineClass is
	// in the namespace of the Machine.
	// +optional
	SecretNamespace string `json:"secretNamespace,omitempty"`
	// Key of the Secret that the user data was read from.
	Key string `json:"key"`
	// Hash of the value, before placeholders were filled in: the first 32 hexadecimal digits of
	// its HMAC-SHA256 with the UID of the Secret as the key. Machines with the same hash were
	// made from the same value. Only a client that may read the Secret knows the UID, so
	// the hash confirms no guess of the value.
	Hash string `json:"hash"`
}
