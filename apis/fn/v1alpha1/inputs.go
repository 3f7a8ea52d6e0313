package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Safety decides whether Machines may be created and replaced. It tells the steps
// after it through the pipeline context.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Safety struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Overshoot says how many Machines are too many.
	// +kubebuilder:default={}
	Overshoot Overshoot `json:"overshoot,omitempty,omitzero"`
}

// Overshoot freezes what has more Machines than it may ever come to want: replicas and
// maxSurge of a MachineDeployment, and twice replicas of a MachineSet that stands alone.
// It also freezes, for five minutes at most, what has more Machines that are being deleted
// than half of that, without those that a scale-down deleted.
type Overshoot struct {
	// UpMargin is how many more there may be: it freezes above that.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	UpMargin *int32 `json:"upMargin,omitempty"`

	// DownMargin is how far below that number it thaws, at most UpMargin.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	DownMargin *int32 `json:"downMargin,omitempty"`
}

// Rollout composes the MachineSets of a MachineDeployment.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Replicas composes the Machines of a MachineSet.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Replicas struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// Bootstrap decides on the join token and the user data of a Machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Bootstrap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// TokenTTL is how long the join token lives at most. It is deleted as soon as
	// the Node joined.
	// +kubebuilder:default="1h"
	TokenTTL metav1.Duration `json:"tokenTTL,omitempty,omitzero"`

	// TokenGroups that the join token authenticates as, beside system:bootstrappers:
	// those that the target cluster lets join. The default is kubeadm's.
	// +optional
	// +kubebuilder:default={"system:bootstrappers:kubeadm:default-node-token"}
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Pattern=`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`
	TokenGroups []string `json:"tokenGroups,omitempty"`

	// CloudProvider is External where a cloud-controller-manager initialises Nodes:
	// the kubelet is started with --cloud-provider=external, and its Node has the taint
	// node.cloudprovider.kubernetes.io/uninitialized until that is done.
	// +optional
	// +kubebuilder:default=None
	CloudProvider CloudProvider `json:"cloudProvider,omitempty"`

	// ProviderIDCommand is what a POSIX shell runs on the VM, until it prints
	// something: the providerID that the kubelet registers. It must be the one that
	// Infrastructure's status.providerID gives, and that the cloud-controller-manager
	// would write, byte for byte. Without one the kubelet registers none.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ProviderIDCommand string `json:"providerIDCommand,omitempty"`

	// Encoding of the user data in its Secret. Base64 is for VM resources that pass
	// the Secret's value on to an API that wants base64, GzipBase64 for those whose VMs
	// also uncompress it.
	// +optional
	// +kubebuilder:default=Plain
	Encoding clusterv1alpha1.UserDataEncoding `json:"encoding,omitempty"`

	// MaxUserDataBytes is how much user data the cloud takes: compressed, if the encoding
	// does that, and before base64. Larger user data is a problem of the class, before
	// there is a VM. 0 is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxUserDataBytes int32 `json:"maxUserDataBytes,omitempty"`
}

// A CloudProvider says who initialises Nodes.
// +kubebuilder:validation:Enum=None;External
type CloudProvider string

// ExternalCloudProvider is a cloud-controller-manager.
const ExternalCloudProvider CloudProvider = "External"

// Lifecycle decides what the Node of a Machine shall be like, keeps its VM from being
// deleted before the Node is drained, and sums up the Machine's status.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Lifecycle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// CloudNamesNodes is for clouds that decide on the names of Nodes. By default only a
	// Node with the name that the VM was given in its user data can be the Machine's. With
	// it the first Node needs the join token of the Machine and the providerID of the VM, and
	// each later one the name of the first.
	// +optional
	CloudNamesNodes bool `json:"cloudNamesNodes,omitempty"`

	// ReturnGrace is for how long no Machine becomes Failed for its Node, or for having
	// none, after an outage of its cluster's API server: kubelets need as long to say
	// that they are there, and the cluster to believe it.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:default="2m"
	ReturnGrace *metav1.Duration `json:"returnGrace,omitempty"`
}
