package v1alpha1

// UserData is user data that Drover does not write: it fills in placeholders and leaves the
// rest as it is.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) != has(self.bootstrapTemplateRef)",message="must have secretRef or bootstrapTemplateRef, and not both"
type UserData struct {
	// SecretRef names the Secret with the user data.
	// +optional
	SecretRef *UserDataSecretReference `json:"secretRef,omitempty"`

	// BootstrapTemplateRef names a template of a bootstrap provider of Cluster API, such as a
	// KubeadmConfigTemplate. The bootstrap provider makes the user data of each Machine from it.
	// It needs provider-clusterapi.
	// +optional
	BootstrapTemplateRef *BootstrapTemplateReference `json:"bootstrapTemplateRef,omitempty"`
}

// A BootstrapTemplateReference names a template of a bootstrap provider of Cluster API. That of a
// MachineClass is in the namespace of the class. That of a ClusterMachineClass is in the namespace
// that the reference names and must have the label machine.drover.dev/user-data: cluster. A change
// of the template affects new Machines only.
type BootstrapTemplateReference struct {
	// APIGroup of the template.
	// +kubebuilder:default="bootstrap.cluster.x-k8s.io"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	APIGroup string `json:"apiGroup,omitempty"`

	// Kind of the template, such as KubeadmConfigTemplate. That of the BootstrapConfig, which is the
	// kind without Template, must be one of spec.bootstrapConfigKinds of the configuration.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*Template$`
	Kind string `json:"kind"`

	// Name of the template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// Namespace of the template. A ClusterMachineClass must have it, and a MachineClass must not.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// ProviderConfigRef names the ClusterProviderConfig of clusterapi.drover.dev by which
	// provider-clusterapi reaches the bootstrap provider.
	// +kubebuilder:default={}
	ProviderConfigRef VMProviderConfigReference `json:"providerConfigRef,omitempty,omitzero"`
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

// UserDataStatus is which user data the VM of a Machine was given, if Drover did not write it.
type UserDataStatus struct {
	// SecretName is the name of the Secret of the class, or of the Secret of the Machine with the
	// user data of a bootstrap provider.
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
