package v1alpha1

import (
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/internal/stored"
)

// A BootstrapConfigKind is a kind of a bootstrap provider. The label of its CRD chooses the version.
type BootstrapConfigKind struct {
	// APIGroup of the kind. Default: bootstrap.cluster.x-k8s.io.
	// +kubebuilder:default=bootstrap.cluster.x-k8s.io
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind itself, such as KubeadmConfig.
	// +kubebuilder:validation:MaxLength=55
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*$`
	Kind string `json:"kind"`
}

// GroupKind returns the kind as the API machinery has it.
func (k BootstrapConfigKind) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: k.APIGroup, Kind: k.Kind}
}

// String returns the kind and its group.
func (k BootstrapConfigKind) String() string { return k.GroupKind().String() }

// A TemplateReference names a template of a bootstrap provider.
type TemplateReference struct {
	// APIGroup of the template.
	// +kubebuilder:default=bootstrap.cluster.x-k8s.io
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the template, such as KubeadmConfigTemplate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9]*Template$`
	Kind string `json:"kind"`
	// Name of the template.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace of the template. Default: that of the Bootstrap. A template of another namespace must have the label
	// machine.drover.dev/user-data: cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ConfigKind is the kind of the BootstrapConfigs that are made from the template.
func (r TemplateReference) ConfigKind() BootstrapConfigKind {
	return BootstrapConfigKind{APIGroup: r.APIGroup, Kind: strings.TrimSuffix(r.Kind, "Template")}
}

// BootstrapParameters are the parameters of a Bootstrap. A later change has no effect, except for that of nodeName.
type BootstrapParameters struct {
	// TemplateRef names the template that the BootstrapConfig is made from. The kind of the BootstrapConfig must be in
	// spec.bootstrapConfigKinds of the configuration.
	TemplateRef TemplateReference `json:"templateRef"`
	// Version of Kubernetes on the VM, such as v1.35.4.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Version *string `json:"version,omitempty"`
	// FailureDomain of the VM.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	FailureDomain *string `json:"failureDomain,omitempty"`
	// NodeName is the name of the Node once the VM has joined: from then on, a bootstrap provider renews no token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName *string `json:"nodeName,omitempty"`
}

// A BootstrapProblem is an error that a user has to fix.
type BootstrapProblem struct {
	// Reason is BootstrapTemplateInvalid or BootstrapConfigFailed.
	Reason string `json:"reason"`
	// Message names the object, the field and what is allowed, or has the words of the provider.
	Message string `json:"message"`
}

// BootstrapObservation is the observed state of a Bootstrap. It has no part of the user data.
type BootstrapObservation struct {
	// Config is the BootstrapConfig.
	// +optional
	Config *InfraMachineObservation `json:"config,omitempty"`
	// Ready means that the Secret of spec.writeConnectionSecretToRef has the user data. It is never false again.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// Waiting is the cause for which there is no user data yet.
	// +optional
	Waiting string `json:"waiting,omitempty"`
	// Problem that a user has to fix before there is user data.
	// +optional
	Problem *BootstrapProblem `json:"problem,omitempty"`
	// NodeName that the Machine of cluster.x-k8s.io reports.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
}

// A BootstrapSpec is the desired state of a Bootstrap.
type BootstrapSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	ForProvider BootstrapParameters `json:"forProvider"`
}

// A BootstrapStatus is the observed state of a Bootstrap.
type BootstrapStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// +optional
	AtProvider BootstrapObservation `json:"atProvider,omitempty"`
}

// A Bootstrap is the user data that a bootstrap provider of Cluster API makes for a Machine from a BootstrapConfig. It is
// in the Secret of spec.writeConnectionSecretToRef, with the keys value and format.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,clusterapi}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.atProvider.config.kind`
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.status.atProvider.config.name`
// +kubebuilder:printcolumn:name="Waiting",type=string,JSONPath=`.status.atProvider.waiting`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bootstrap struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   BootstrapSpec   `json:"spec"`
	Status BootstrapStatus `json:"status,omitempty"`
}

// A BootstrapList is a list of Bootstraps.
//
// +kubebuilder:object:root=true
type BootstrapList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bootstrap `json:"items"`
}

// BootstrapGroupVersionKind is the kind of Bootstraps.
var BootstrapGroupVersionKind = SchemeGroupVersion.WithKind("Bootstrap")

func init() {
	SchemeBuilder.Register(&Bootstrap{}, &BootstrapList{})
}
