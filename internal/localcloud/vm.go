package localcloud

import "time"

// Limits of the API. A request beyond them fails with CodeInvalidRequest.
const (
	// MaxUserDataBytes is the size limit of user data before base64 encoding.
	MaxUserDataBytes = 64 << 10
	// MaxNameLength is the size limit of a VM's name in bytes.
	MaxNameLength = 63
	// MaxTags is the number of tags that a VM may carry.
	MaxTags = 50
	// MaxTagKeyLength and MaxTagValueLength are in bytes.
	MaxTagKeyLength   = 128
	MaxTagValueLength = 256
)

// DefaultZone is the zone of a VM that requests none.
const DefaultZone = "zone-a"

// Images that every local cloud has: simulated ones. ListImages returns all images.
const (
	ImageUbuntu2404 = "ubuntu-24.04"
	ImageDebian12   = "debian-12"
)

// Real images, in a local cloud that was started with them.
const (
	// ImageDebian12Real is a Debian with cloud-init.
	ImageDebian12Real = "debian-12-real"
	// ImageDebian13Real is a Debian 13 with cloud-init, and without containerd: apt
	// installs it without a network.
	ImageDebian13Real = "debian-13-real"
	// ImageFlatcarLike is a Debian that starts as Flatcar does: by Ignition in the initramfs,
	// and with a read-only /usr.
	ImageFlatcarLike = "flatcar-like"
)

// Addresses in the network of a real VM.
const (
	// GatewayAddress is the router, which also serves the downloads of VMs: kubelets and container images.
	GatewayAddress = "10.200.0.1"
	// HostAddress is the loopback interface of the computer that the local cloud runs on.
	HostAddress = "10.200.0.2"
)

// Sizes that a VM can have.
const (
	// SizeSmall has 1 CPU and 2 GiB of memory.
	SizeSmall = "small"
	// SizeMedium has 2 CPUs and 4 GiB of memory.
	SizeMedium = "medium"
	// SizeLarge has 4 CPUs and 16 GiB of memory.
	SizeLarge = "large"
	// SizeXLarge has 16 CPUs and 128 GiB of memory: for simulated images, which need none of it.
	SizeXLarge = "xlarge"
)

// State is the stage of a VM's life.
type State string

// The states of a VM. A VM whose deletion is complete, or that vanished, has no state: the API returns
// CodeNotFound for it.
const (
	// StatePending: accepted, not yet powered on.
	StatePending State = "Pending"
	// StateRunning: powered on. The operating system may still be booting.
	StateRunning State = "Running"
	// StateTerminating: deletion was requested, the VM is shutting down.
	StateTerminating State = "Terminating"
	// StateFailed: the creation failed after it was accepted, or a VM of a real image ended by itself; VM.Error
	// has the reason. The VM stays, and counts for the quota, until it is deleted.
	StateFailed State = "Failed"
)

// VM is a virtual machine. User data is never returned.
type VM struct {
	// ID is given by the cloud and never used again, like vm-0123456789.
	ID string `json:"id"`
	// Name is chosen by the user and need not be unique.
	Name  string `json:"name"`
	Image string `json:"image"`
	Size  string `json:"size"`
	Zone  string `json:"zone"`
	// Tags is never nil in a response.
	Tags  map[string]string `json:"tags"`
	State State             `json:"state"`
	// ProviderID is the one with which the kubelet registers: local:///<zone>/<id>.
	ProviderID string `json:"providerID"`
	// Addresses are known when the VM is Running.
	Addresses []Address `json:"addresses,omitempty"`
	// Error is set in StateFailed.
	Error *VMError `json:"error,omitempty"`
	// Console is the end of the VM's console, as console.Excerpt returns it: at most 40 lines and 4 KiB. Texts
	// that look like secrets are masked. Only GetVM returns it, and only while it may show why the VM does not
	// join: in StateFailed, and in StateRunning from 30 seconds to 30 minutes after its boot. A simulated VM that
	// registered its Node has none.
	Console   string    `json:"console,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// AddressType is one of those that a Kubernetes Node has.
type AddressType string

// The types of addresses that a VM has.
const (
	AddressInternalIP AddressType = "InternalIP"
	AddressHostname   AddressType = "Hostname"
)

// Address is one address of a VM.
type Address struct {
	Type    AddressType `json:"type"`
	Address string      `json:"address"`
}

// VMError is the reason why a VM is in StateFailed. Code is one of the Code constants.
type VMError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// CreateVMRequest requests a VM.
type CreateVMRequest struct {
	// Name: lowercase letters, digits, "-" and ".", as a host name; required.
	Name string `json:"name"`
	// Image: one of ListImages; required.
	Image string `json:"image"`
	// Size: SizeSmall, SizeMedium, SizeLarge or SizeXLarge; required.
	Size string `json:"size"`
	// Zone: a DNS label. Default DefaultZone.
	Zone string `json:"zone,omitempty"`
	// Address is the internal address, one of 10.200.0.10 to 10.200.64.9 that no VM has. Default: the lowest.
	Address string `json:"address,omitempty"`
	// UserData for cloud-init, plain or gzip; base64 on the wire.
	UserData []byte            `json:"userData,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
}

// UpdateVMRequest changes the mutable fields of a VM.
type UpdateVMRequest struct {
	// Tags replaces all tags; nil and empty remove them.
	Tags map[string]string `json:"tags"`
}

// ListVMsOptions selects VMs. A VM is listed when all that is set matches.
type ListVMsOptions struct {
	// Name equals the VM's.
	Name string
	// Tags that the VM carries, with these values.
	Tags map[string]string
}

// VMList is the response of a list, oldest VM first.
type VMList struct {
	Items []VM `json:"items"`
	// Unreachable are zones whose VMs are missing in Items.
	Unreachable []string `json:"unreachable,omitempty"`
}

// ImageKind is how VMs of an image run.
type ImageKind string

// The kinds of images.
const (
	// ImageSimulated: the cloud simulates the operating system and the kubelet.
	ImageSimulated ImageKind = "Simulated"
	// ImageReal: a hypervisor boots an operating system.
	ImageReal ImageKind = "Real"
)

// Image is the image of an operating system for VMs.
type Image struct {
	Name string    `json:"name"`
	Kind ImageKind `json:"kind,omitempty"`
	// KubernetesVersions that the image contains. Any other version is downloaded at boot, so that every version
	// can run on every image.
	KubernetesVersions []string `json:"kubernetesVersions,omitempty"`
}

// ImageList is the response of ListImages.
type ImageList struct {
	Items []Image `json:"items"`
}
