package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// A ProfileCondition is a condition that an agent reports on Nodes, and the action that follows.
type ProfileCondition struct {
	HealthCondition `json:",inline"`

	// Meaning of the condition, as the documentation of the agent has it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Meaning string `json:"meaning,omitempty"`
}

// HealthProfileSpec is a set of conditions of Nodes with their actions.
//
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, c.type != 'Ready' || c.status != 'True')",message="conditions of type Ready must have the status False or Unknown: a Node whose Ready is True is healthy"
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, self.conditions.exists_one(o, o.type == c.type && o.status == c.status))",message="conditions must not repeat a type with the same status"
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, c.type != 'Ready' || !has(c.action) || c.action != 'Report')",message="conditions of type Ready must have the action Replace or Reboot: a Node that is not Ready is always unhealthy"
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, !has(c.action) || c.action != 'Report' || !has(c.timeout))",message="conditions with the action Report must have no timeout: they are reported at once"
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, c.type != 'DevicesMissing' || !has(c.timeout) || duration(c.timeout) >= duration('1m'))",message="conditions of type DevicesMissing must have a timeout of at least 1m: device plugins register their devices after the kubelet is Ready"
// +kubebuilder:validation:XValidation:rule="self.conditions.all(c, c.type != 'DevicesMissing' || c.status == 'True')",message="conditions of type DevicesMissing must have the status True: devices are missing or not"
type HealthProfileSpec struct {
	// Description of the agent that reports the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Description string `json:"description,omitempty"`

	// Source is the URL of the documentation of the conditions.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Source string `json:"source,omitempty"`

	// Conditions of Nodes, with their actions.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Conditions []ProfileCondition `json:"conditions"`
}

// A HealthProfile has the conditions that an agent reports on Nodes, and the actions that follow. spec.health.profiles of
// Machines names it. It cannot change: its name has a version, and a new version is a new profile. Names like
// nvidia-v1 are those of the profiles that Drover has built in.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=hp,categories=drover
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.source`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('-v[0-9]+$') && size(self.metadata.name) <= 63",message="the name must end with a version, like acme-gpu-v1, and have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^(aks|devices|eks|gke|kubelet|node-problem-detector|nvidia)-v[0-9]+$')",message="names like nvidia-v1 are reserved for the profiles that Drover has built in: put a prefix before it"
type HealthProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a HealthProfile is immutable: create one with the next version in its name, and name it in spec.health.profiles"
	Spec HealthProfileSpec `json:"spec"`
}

// A HealthProfileList is a list of HealthProfiles.
//
// +kubebuilder:object:root=true
type HealthProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HealthProfile `json:"items"`
}
