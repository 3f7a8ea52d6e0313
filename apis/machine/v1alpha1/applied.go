package v1alpha1

// Bounds of the record of a Node. Entries beyond them are not recorded: Drover then
// neither removes the key nor gives the value back.
const (
	// MaxAppliedKeys is how many keys of each kind are recorded.
	MaxAppliedKeys = 256
	// MaxReplacedValues is how many replaced values of each kind are recorded.
	MaxReplacedValues = 64
	// MaxReplacedLength is the length of a replaced value in bytes. A kubelet may write
	// annotations of any length.
	MaxReplacedLength = 256
)

// AppliedToNode records what Drover put on a Node for its Machine. It never lets Drover
// remove a key of the domains kubernetes.io and k8s.io, but for the annotation
// cluster-autoscaler.kubernetes.io/scale-down-disabled.
//
// Keys that only Drover sets, such as machine.drover.dev/machine, are not in it.
type AppliedToNode struct {
	// NodeUID is the UID of the Node. It is absent until the Node has joined: the keys are
	// then those that the Node will get.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	NodeUID string `json:"nodeUID,omitempty"`

	// Labels that Drover removes from the Node when the Machine has them no more.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Labels []string `json:"labels,omitempty"`

	// Annotations, as Labels are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Annotations []string `json:"annotations,omitempty"`

	// Taints as key:effect, as Labels are.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Taints []string `json:"taints,omitempty"`

	// Replaced are the values that the Node had before. The Node gets them back.
	// +optional
	Replaced *ReplacedValues `json:"replaced,omitempty"`
}

// ReplacedValues are values of a Node that Drover replaced, by their keys. A value of more
// than 256 bytes is not kept.
type ReplacedValues struct {
	// Labels that the Node had.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations that the Node had.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// Taints that the Node had: values by key:effect.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Taints map[string]string `json:"taints,omitempty"`
}
