package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Remediation bounds how many Machines are replaced at a time because they failed or
// because a user requested it, and when none is.
type Remediation struct {
	// MaxInFlight is how many replacements may be under way at a time: a number, or a
	// percentage of replicas, rounded up. One is under way until its Node is Ready.
	// Every Machine that is starting counts, for any reason, and so does one that cannot be
	// created. With 0 none is replaced.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxInFlight *intstr.IntOrString `json:"maxInFlight,omitempty"`

	// MaxUnhealthy is how many Machines may be unhealthy: while there are more, none is
	// replaced, since they then rather share a cause that a replacement does not fix: a
	// network split, an API server, an image. A number, or a percentage of replicas, rounded
	// up. Unhealthy are those that are Unknown or Failed, and those that cannot be created,
	// but no preserved ones. The default protects a pool of which the larger part is cut
	// off, and lets one unhealthy Machine of a pool of any size be replaced. With 100% any
	// number may be.
	// +kubebuilder:default="40%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxUnhealthy *intstr.IntOrString `json:"maxUnhealthy,omitempty"`

	// Order of a replacement: DeleteFirst deletes the Machine and creates another at
	// once, CreateFirst keeps it until the Node of the other is available.
	// +kubebuilder:default=DeleteFirst
	Order RemediationOrder `json:"order,omitempty"`
}

// A RemediationOrder selects the first action of a replacement: deletion or creation.
// +kubebuilder:validation:Enum=DeleteFirst;CreateFirst
type RemediationOrder string

// Orders of a replacement.
const (
	// DeleteFirst deletes a Machine, and creates its replacement at once.
	DeleteFirst RemediationOrder = "DeleteFirst"
	// CreateFirst deletes a Machine when its replacement is available. Until then there
	// is one Machine above replicas, at most maxInFlight. One that has no VM or no
	// Node has nothing to hand over, and is deleted first.
	CreateFirst RemediationOrder = "CreateFirst"
)

// A Replacement of a Machine that is kept until the other is available.
type Replacement struct {
	// Machine that is replaced.
	Machine string `json:"machine"`
	// By this one.
	By string `json:"by"`
}
