package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// Safety decides whether Machines may be created and replaced. It passes the decision to the steps
// after it in the pipeline context.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Safety struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Overshoot limits the number of Machines above the spec.
	// +kubebuilder:default={}
	Overshoot Overshoot `json:"overshoot,omitempty,omitzero"`
}

// Overshoot freezes a MachineDeployment or MachineSet that has more Machines than its spec can ever
// request: replicas and maxSurge of a MachineDeployment, and twice the replicas of a MachineSet
// without a MachineDeployment. It also freezes it, for five minutes at most, if more than half of
// that number of Machines are being deleted. Machines that a scale-down deleted do not count.
type Overshoot struct {
	// UpMargin is the number of additional Machines that are tolerated. With more, it freezes.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	UpMargin *int32 `json:"upMargin,omitempty"`

	// DownMargin is by how many Machines the number must fall below the limit, UpMargin included, to thaw. It
	// counts as UpMargin if it is larger.
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

	// TokenTTL is the longest lifetime of the join token. The token is deleted as soon as the Node
	// joined.
	// +kubebuilder:default="1h"
	TokenTTL metav1.Duration `json:"tokenTTL,omitempty,omitzero"`

	// TokenGroups are the groups that the join token authenticates as, beside system:bootstrappers.
	// The target cluster must allow one of them to join. The default is the group of kubeadm.
	// +optional
	// +kubebuilder:default={"system:bootstrappers:kubeadm:default-node-token"}
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Pattern=`^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$`
	TokenGroups []string `json:"tokenGroups,omitempty"`

	// CloudProvider is External if a cloud-controller-manager initializes Nodes: the kubelet is
	// started with --cloud-provider=external, and its Node has the taint
	// node.cloudprovider.kubernetes.io/uninitialized until then.
	// +optional
	// +kubebuilder:default=None
	CloudProvider CloudProvider `json:"cloudProvider,omitempty"`

	// ProviderIDCommand is a command that a POSIX shell runs on the VM until it prints something:
	// the providerID that the kubelet registers. It must equal, byte for byte, the providerID of
	// Infrastructure's status.providerID and the one that the cloud-controller-manager would write.
	// Without a command the kubelet registers no providerID.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	ProviderIDCommand string `json:"providerIDCommand,omitempty"`

	// Encoding of the user data in its Secret. Use Base64 for VM resources that pass the Secret's
	// value to an API that expects base64, and GzipBase64 if the VMs also decompress it.
	// +optional
	// +kubebuilder:default=Plain
	Encoding clusterv1alpha1.UserDataEncoding `json:"encoding,omitempty"`

	// MaxUserDataBytes is the maximum size of user data at the cloud, in bytes: after compression,
	// if the encoding compresses, and before base64. Larger user data is reported as a problem of
	// the class, and no VM is created. 0 means no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxUserDataBytes int32 `json:"maxUserDataBytes,omitempty"`
}

// A CloudProvider selects how Nodes are initialized.
// +kubebuilder:validation:Enum=None;External
type CloudProvider string

// ExternalCloudProvider means that a cloud-controller-manager initializes Nodes.
const ExternalCloudProvider CloudProvider = "External"

// Lifecycle decides on the desired state of a Machine's Node, keeps its VM from being deleted
// before the Node is drained, and summarizes the Machine's status.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Lifecycle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// CloudNamesNodes is for clouds that choose the names of Nodes. By default only a Node with the
	// name in the VM's user data can be the Machine's. If it is true, the first Node needs the join
	// token of the Machine and the providerID of the VM, and each later Node needs the name of the
	// first. The default is false.
	// +optional
	CloudNamesNodes bool `json:"cloudNamesNodes,omitempty"`

	// ReturnGrace is the time after an outage of the cluster's API server in which no Machine
	// becomes Failed because of its Node, or because it has none. Kubelets need this time to renew
	// their leases, and the cluster needs it to mark their Nodes as Ready. 0s means no grace.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="2m"
	ReturnGrace *metav1.Duration `json:"returnGrace,omitempty"`
}
