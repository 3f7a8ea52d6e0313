package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// ProfileKubelet has the facts about an operating system that a kubelet needs.
type ProfileKubelet struct {
	// Path of the kubelet's executable, in a folder that can be written.
	// +kubebuilder:default="/usr/local/bin/kubelet"
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._/-]+$`
	// +kubebuilder:validation:MaxLength=255
	Path string `json:"path,omitempty"`
}

// A ContainerdDownload is a release of containerd that a VM downloads.
type ContainerdDownload struct {
	// URL of the releases: the archive is at
	// <url>/v<version>/containerd-<version>-linux-<arch>.tar.gz, its checksum beside it
	// with the suffix .sha256sum.
	// +kubebuilder:default="https://github.com/containerd/containerd/releases/download"
	// +kubebuilder:validation:Pattern=`^https?://[^\s'"]+$`
	// +kubebuilder:validation:MaxLength=1024
	URL string `json:"url,omitempty"`

	// Version like 2.3.2.
	// +kubebuilder:validation:Pattern=`^[12]\.[0-9]+\.[0-9]+$`
	Version string `json:"version"`
}

// ContainerdRelease is a major version of containerd that the steps of a profile provide.
type ContainerdRelease struct {
	// Major version of containerd. It decides on the shape of the configuration.
	// +kubebuilder:validation:Enum=1;2
	Major int32 `json:"major"`

	// MaxKubeletMinor is the newest minor version of Kubernetes that it serves, without
	// the leading 1. Absent means all. Containerd 1 serves none that is newer than 35.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxKubeletMinor *int32 `json:"maxKubeletMinor,omitempty"`

	// Download of the release. Absent means that the image has containerd, or that the
	// steps install it.
	// +optional
	Download *ContainerdDownload `json:"download,omitempty"`
}

// ProfileTrust is how an operating system is made to trust certificate authorities.
type ProfileTrust struct {
	// Directory of certificates that an administrator adds.
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._/-]+$`
	// +kubebuilder:validation:MaxLength=255
	Directory string `json:"directory"`

	// Extension that the files must have, without a dot.
	// +kubebuilder:default=crt
	// +kubebuilder:validation:Pattern=`^[a-z]{1,8}$`
	Extension string `json:"extension,omitempty"`

	// Command that has the system read the directory, with its arguments separated by
	// blanks. No shell runs it.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._/-]+( [A-Za-z0-9._/=-]+)*$`
	// +kubebuilder:validation:MaxLength=255
	Command string `json:"command"`
}

// A TimeServiceFormat is the form of the configuration of a time service.
// +kubebuilder:validation:Enum=Chrony;Timesyncd
type TimeServiceFormat string

// Formats of the configuration of time services.
const (
	// Chrony is a complete configuration of chronyd.
	Chrony TimeServiceFormat = "Chrony"
	// Timesyncd is a drop-in of systemd-timesyncd.
	Timesyncd TimeServiceFormat = "Timesyncd"
)

// A TimeService keeps the clock of images.
type TimeService struct {
	// Unit of the service, which is restarted if the image has it.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:_.@-]+\.service$`
	// +kubebuilder:validation:MaxLength=128
	Unit string `json:"unit"`

	// Format of its configuration.
	Format TimeServiceFormat `json:"format"`

	// Path of its configuration, which is replaced.
	// +kubebuilder:validation:Pattern=`^/[A-Za-z0-9._/-]+$`
	// +kubebuilder:validation:MaxLength=255
	Path string `json:"path"`
}

// A ParameterType is the type of a parameter's value.
// +kubebuilder:validation:Enum=String;Integer;Boolean
type ParameterType string

// Types of parameters.
const (
	StringParameter  ParameterType = "String"
	IntegerParameter ParameterType = "Integer"
	BooleanParameter ParameterType = "Boolean"
)

// A ProfileParameter is a value that a class may set. The steps read it as the
// environment variable PARAMETER_<NAME>, where NAME is its name in upper case with
// underscores: containerdVersion is PARAMETER_CONTAINERD_VERSION.
type ProfileParameter struct {
	// Description of the parameter.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// Type of the value.
	// +kubebuilder:default=String
	Type ParameterType `json:"type,omitempty"`

	// Default is the value if the class sets none. A parameter without a default is
	// required.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Default *string `json:"default,omitempty"`

	// Pattern is a regular expression (RE2) that the whole value matches.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Pattern string `json:"pattern,omitempty"`

	// Enum are the values that are allowed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	Enum []string `json:"enum,omitempty"`
}

// A MachineFile is a file that a VM has from its first boot. It belongs to root.
type MachineFile struct {
	// Path of the file.
	// +kubebuilder:validation:Pattern=`^/[^\s'"\\$]+$`
	// +kubebuilder:validation:MaxLength=255
	Path string `json:"path"`

	// Content of the file, as it is: nothing is replaced in it.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content,omitempty"`

	// Mode is the permissions, in octal.
	// +kubebuilder:default="0644"
	// +kubebuilder:validation:Pattern=`^0?[0-7]{3}$`
	Mode string `json:"mode,omitempty"`
}

// A UnitDropIn changes a unit of systemd.
type UnitDropIn struct {
	// Name of the file.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+\.conf$`
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// Content of the file.
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content"`
}

// A MachineUnit is a unit of systemd that a VM has from its first boot.
type MachineUnit struct {
	// Name of the unit, with its suffix.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9:_.@-]+\.(service|socket|timer|mount|path|target|slice)$`
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name"`

	// Content of the unit. Absent for a unit of the image.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Content string `json:"content,omitempty"`

	// Enabled units start at the first boot and at each later one.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// DropIns change the unit.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	DropIns []UnitDropIn `json:"dropIns,omitempty"`
}

// A MachineStep is a script that a VM runs until it succeeds once. It must be safe to run
// again after it was cut off at any point. Values reach it as environment variables: the
// parameters, KUBELET_VERSION, KUBELET_PATH, with a profile CONTAINERD_MAJOR, and with a
// proxy HTTP_PROXY, HTTPS_PROXY and NO_PROXY, also in lower case.
type MachineStep struct {
	// Name of the step.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Script with a first line like #!/bin/sh.
	// +kubebuilder:validation:Pattern=`^#!/`
	// +kubebuilder:validation:MaxLength=65536
	Script string `json:"script"`
}

// OperatingSystemProfileSpec is how a stock image of an operating system is prepared for
// a kubelet. The files by which a machine joins its cluster are not part of it: Drover
// writes them in any case.
type OperatingSystemProfileSpec struct {
	// Description of the images that the profile is for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`

	// Formats of user data that the images understand. The first is the default.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Formats []ProvisioningFormat `json:"formats"`

	// Kubelet of the operating system.
	// +kubebuilder:default={}
	Kubelet ProfileKubelet `json:"kubelet,omitempty,omitzero"`

	// Containerd releases that the steps provide. The first that serves the version of
	// the kubelet is taken.
	// +listType=map
	// +listMapKey=major
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Containerd []ContainerdRelease `json:"containerd"`

	// Trust is how the operating system trusts the certificates of
	// spec.operatingSystem.caBundle of a class. Without it, a class can have none.
	// +optional
	Trust *ProfileTrust `json:"trust,omitempty"`

	// TimeServices that images may have, for spec.operatingSystem.ntpServers of a class.
	// Without one, a class can have no servers. A VM must have at least one of them when the
	// steps of the profile are done.
	// +optional
	// +listType=map
	// +listMapKey=unit
	// +kubebuilder:validation:MaxItems=4
	TimeServices []TimeService `json:"timeServices,omitempty"`

	// ProxyUnits use the proxy of a class, beside containerd and the kubelet: services that
	// update packages by a timer, for example.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9:_.@-]+\.service$`
	// +kubebuilder:validation:items:MaxLength=128
	ProxyUnits []string `json:"proxyUnits,omitempty"`

	// Parameters that a class may set, by name in camelCase.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]ProfileParameter `json:"parameters,omitempty"`

	// Files of each VM.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Files []MachineFile `json:"files,omitempty"`

	// Units of each VM.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Units []MachineUnit `json:"units,omitempty"`

	// Steps that each VM runs, in order, before containerd is started and the kubelet is
	// installed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Steps []MachineStep `json:"steps,omitempty"`
}

// An OperatingSystemProfile describes how a stock image of an operating system is prepared for
// a kubelet. It cannot change: its name has a version, and a new version is a new profile.
// Names like debian-12-v1 are those of the profiles that Drover has built in.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=osp,categories=drover
// +kubebuilder:printcolumn:name="Formats",type=string,JSONPath=`.spec.formats`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('-v[0-9]+$')",message="the name must end with a version, like acme-debian-12-v1"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^(amazon-linux|debian|flatcar|rhel|rocky|ubuntu)(-[0-9.]+)?-v[0-9]+$')",message="names like debian-12-v1 are reserved for the profiles that Drover has built in: put a prefix before it"
type OperatingSystemProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="an OperatingSystemProfile is immutable: create one with the next version in its name, and a class that names it"
	Spec OperatingSystemProfileSpec `json:"spec"`
}

// An OperatingSystemProfileList is a list of OperatingSystemProfiles.
//
// +kubebuilder:object:root=true
type OperatingSystemProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OperatingSystemProfile `json:"items"`
}
