package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// A ProvisioningFormat is the form of the user data that an image understands.
// +kubebuilder:validation:Enum=CloudInit;Ignition
type ProvisioningFormat string

// Formats of user data.
const (
	// CloudInit user data is a #cloud-config document.
	CloudInit ProvisioningFormat = "CloudInit"
	// Ignition user data is a document of Ignition's spec 3.3.
	Ignition ProvisioningFormat = "Ignition"
)

// OperatingSystem of the image that a class's VMs boot. All of it is part of the user data,
// which each user of the VM can read: no secret belongs here.
type OperatingSystem struct {
	// Profile is the name of the OperatingSystemProfile that prepares the image for a
	// kubelet: one that is built in, like debian-12-v1, or an object. Without one the
	// image has containerd and all else that a kubelet needs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Profile string `json:"profile,omitempty"`

	// Parameters of the profile, by name.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]string `json:"parameters,omitempty"`

	// Provisioning is the form of user data that the image understands. The default is the
	// first of the profile's formats, and CloudInit without a profile.
	// +optional
	Provisioning ProvisioningFormat `json:"provisioning,omitempty"`

	// KubeletDownloadURL is where a kubelet is downloaded from when the image
	// does not have the wanted version: the binary is at
	// <url>/<version>/bin/linux/<arch>/kubelet, its checksum beside it with the
	// suffix .sha256.
	// +kubebuilder:default="https://dl.k8s.io/release"
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets"
	KubeletDownloadURL string `json:"kubeletDownloadURL,omitempty"`

	OperatingSystemSettings `json:",inline"`
}

// OperatingSystemSettings are the additions of a class to its profile.
type OperatingSystemSettings struct {
	// KubeletDigests are digests of the kubelet's executable, by version and architecture.
	// With them, a VM installs only a kubelet that has the digest of its version, and does
	// not read the checksum beside the download. A Machine whose version is not among them
	// gets no VM.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +listMapKey=architecture
	// +kubebuilder:validation:MaxItems=64
	KubeletDigests []Digest `json:"kubeletDigests,omitempty"`

	// ContainerdDownloadURL takes the place of the profile's URL of containerd releases,
	// for releases that the profile downloads.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets"
	ContainerdDownloadURL string `json:"containerdDownloadURL,omitempty"`

	// ContainerdDigests are digests of the archives of containerd, by version, like 2.3.2,
	// and architecture. With them, a VM installs only an archive that has the digest.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +listMapKey=architecture
	// +kubebuilder:validation:MaxItems=64
	ContainerdDigests []Digest `json:"containerdDigests,omitempty"`

	// RegistryMirrors by registry. They need a profile.
	// +optional
	// +listType=map
	// +listMapKey=registry
	// +kubebuilder:validation:MaxItems=32
	RegistryMirrors []RegistryMirror `json:"registryMirrors,omitempty"`

	// ImageCredentialProviders give the kubelet credentials for registries.
	// +optional
	ImageCredentialProviders *ImageCredentialProviders `json:"imageCredentialProviders,omitempty"`

	// SandboxImage is the pause image of pods, with its registry. It needs a profile. The
	// default is containerd's own.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(@sha256:[0-9a-f]{64})?$`
	SandboxImage string `json:"sandboxImage,omitempty"`

	// Proxy of containerd, the kubelet, the steps and the package manager.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// CABundle is certificates, as PEM, of authorities that the VM trusts beside its own. It
	// needs a profile that has spec.trust.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="!self.contains('PRIVATE KEY')",message="must have no private key: a class has no secrets"
	// +kubebuilder:validation:XValidation:rule="self == '' || self.contains('-----BEGIN CERTIFICATE-----')",message="must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----"
	CABundle string `json:"caBundle,omitempty"`

	// SSH is who may log in.
	// +optional
	SSH *SSHAccess `json:"ssh,omitempty"`

	// NTPServers take the place of those of the image. They need a profile that has
	// spec.timeServices.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$`
	NTPServers []string `json:"ntpServers,omitempty"`

	// Files of each VM. They cannot take the place of files of Drover or of the profile.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []MachineFile `json:"files,omitempty"`

	// Units of each VM. Drop-ins are added to units of the profile or the image.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Units []MachineUnit `json:"units,omitempty"`

	// StepsBeforeJoin run after those of the profile and the start of containerd, and before
	// the kubelet starts.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	StepsBeforeJoin []MachineStep `json:"stepsBeforeJoin,omitempty"`

	// StepsAfterJoin run as soon as the kubelet has its client certificate.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	StepsAfterJoin []MachineStep `json:"stepsAfterJoin,omitempty"`
}

// An Architecture of VMs.
// +kubebuilder:validation:Enum=amd64;arm64;ppc64le;s390x
type Architecture string

// A Digest of a download.
type Digest struct {
	// Version of the download.
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$`
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// Architecture that it is built for.
	Architecture Architecture `json:"architecture"`

	// SHA256 of the file, in hexadecimal.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
}

// A RegistryMirror is where images of a registry are pulled from.
type RegistryMirror struct {
	// Registry as images name it, with the port if they have one: docker.io or
	// registry.example.org:5000. The registry _default stands for all that are not listed.
	// +kubebuilder:validation:Pattern=`^(_default|[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?)$`
	// +kubebuilder:validation:MaxLength=253
	Registry string `json:"registry"`

	// Mirrors are tried in order, and the registry itself after them.
	// +listType=map
	// +listMapKey=url
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Mirrors []RegistryEndpoint `json:"mirrors"`
}

// A RegistryEndpoint serves images.
type RegistryEndpoint struct {
	// URL like https://mirror.example.org. containerd adds /v2 to its path.
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"\\?#]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets; spec.operatingSystem.imageCredentialProviders gives the kubelet credentials"
	URL string `json:"url"`

	// OverridePath means that the path of the URL is complete: nothing is added to it.
	// +optional
	OverridePath bool `json:"overridePath,omitempty"`

	// InsecureSkipVerify means that the certificate of the mirror is not verified.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// ImageCredentialProviders are executables that give the kubelet credentials for registries.
type ImageCredentialProviders struct {
	// Config is fields of a CredentialProviderConfig of kubelet.config.k8s.io/v1. It must
	// have no secrets, also not in env or args.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Config runtime.RawExtension `json:"config"`

	// BinDir is the folder of the executables. Each has the name of its provider.
	// +kubebuilder:default="/opt/credential-providers/bin"
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._/-]+$`
	// +kubebuilder:validation:MaxLength=255
	BinDir string `json:"binDir,omitempty"`

	// Downloads of executables. Absent means that the image has them, or that a step before
	// the join installs them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=architecture
	// +kubebuilder:validation:MaxItems=32
	Downloads []CredentialProviderDownload `json:"downloads,omitempty"`
}

// A CredentialProviderDownload is the executable of an image credential provider.
type CredentialProviderDownload struct {
	// Name of the provider in the config.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// Architecture that it is built for.
	Architecture Architecture `json:"architecture"`

	// URL of the executable.
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets"
	URL string `json:"url"`

	// SHA256 of the executable, in hexadecimal.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	SHA256 string `json:"sha256"`
}

// A Proxy for connections of a VM.
//
// +kubebuilder:validation:XValidation:rule="has(self.http) || has(self.https)",message="must have http, https or both"
type Proxy struct {
	// HTTP is the proxy for http, like http://proxy.example.org:3128.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"\\?#$%]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets, and each user of the VM can read its user data"
	HTTP string `json:"http,omitempty"`

	// HTTPS is the proxy for https, like http://proxy.example.org:3128.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"\\?#$%]+$`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and no password: a class has no secrets, and each user of the VM can read its user data"
	HTTPS string `json:"https,omitempty"`

	// NoProxy are hosts, domains, addresses and networks without the proxy. Drover adds the
	// VM itself, the metadata services of clouds, and the domains of the cluster. The API
	// server is reached through the proxy unless it is listed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9.*:/_\[\]-]+$`
	NoProxy []string `json:"noProxy,omitempty"`
}

// SSHAccess is who may log in to a VM.
type SSHAccess struct {
	// User who may log in. The default is the user that cloud-init images have for it, and
	// core with Ignition. A user that the image does not have is created without rights, in the
	// default group of new users.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]{0,31}$`
	User string `json:"user,omitempty"`

	// AuthorizedKeys are public keys, each a line of an authorized_keys file.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=8192
	// +kubebuilder:validation:items:Pattern=`^[^\r\n]+$`
	AuthorizedKeys []string `json:"authorizedKeys"`
}
