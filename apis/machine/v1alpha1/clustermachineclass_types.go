package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

// ClusterMachineClassSpec is that of a MachineClass, and the namespaces that it serves.
type ClusterMachineClassSpec struct {
	MachineClassSpec `json:",inline"`

	// AllowedNamespaces are those whose Machines may use the class, such as team-a, team-* or *.
	// Without any, none may. It may change. If a namespace is removed, its VMs stay, and its
	// Machines get no new ones.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	AllowedNamespaces []clusterv1alpha1.NamespacePattern `json:"allowedNamespaces,omitempty"`
}

// A ClusterMachineClass is a MachineClass without a namespace, which Machines of the namespaces
// in spec.allowedNamespaces may use. All else in its spec cannot change.
//
// providerConfigRef of the kind ProviderConfig, and references in forProvider that the cloud's
// provider resolves in a namespace, are about the namespace of the Machine.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cmc,categories=drover
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="Namespaces",type=string,JSONPath=`.spec.allowedNamespaces`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterMachineClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userData.secretRef) || has(self.userData.secretRef.__namespace__)",fieldPath=".userData.secretRef",message="namespace must be set: a ClusterMachineClass has none itself"
	// +kubebuilder:validation:XValidation:rule="!has(self.userData) || !has(self.userData.bootstrapTemplateRef) || has(self.userData.bootstrapTemplateRef.__namespace__)",fieldPath=".userData.bootstrapTemplateRef",message="namespace must be set: a ClusterMachineClass has none itself"
	// +kubebuilder:validation:XValidation:rule="self.provider == oldSelf.provider && has(self.forProvider) == has(oldSelf.forProvider) && (!has(self.forProvider) || self.forProvider == oldSelf.forProvider) && has(self.instanceTypes) == has(oldSelf.instanceTypes) && (!has(self.instanceTypes) || self.instanceTypes == oldSelf.instanceTypes) && has(self.allocationStrategy) == has(oldSelf.allocationStrategy) && (!has(self.allocationStrategy) || self.allocationStrategy == oldSelf.allocationStrategy) && has(self.companions) == has(oldSelf.companions) && (!has(self.companions) || self.companions == oldSelf.companions) && has(self.providerConfigRef) == has(oldSelf.providerConfigRef) && (!has(self.providerConfigRef) || self.providerConfigRef == oldSelf.providerConfigRef) && has(self.operatingSystem) == has(oldSelf.operatingSystem) && (!has(self.operatingSystem) || self.operatingSystem == oldSelf.operatingSystem) && has(self.kubelet) == has(oldSelf.kubelet) && (!has(self.kubelet) || self.kubelet == oldSelf.kubelet) && has(self.userData) == has(oldSelf.userData) && (!has(self.userData) || self.userData == oldSelf.userData) && has(self.nodeCapacity) == has(oldSelf.nodeCapacity) && (!has(self.nodeCapacity) || self.nodeCapacity == oldSelf.nodeCapacity)",message="a ClusterMachineClass is immutable but for allowedNamespaces: create a new one and change classRef to roll over to it"
	Spec ClusterMachineClassSpec `json:"spec"`
}

// A ClusterMachineClassList is a list of ClusterMachineClasses.
//
// +kubebuilder:object:root=true
type ClusterMachineClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterMachineClass `json:"items"`
}

// AsMachineClass returns the class as planners see each class: the kind shows that it is a
// ClusterMachineClass.
func (c *ClusterMachineClass) AsMachineClass() *MachineClass {
	out := &MachineClass{ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: *c.Spec.MachineClassSpec.DeepCopy()}
	out.SetGroupVersionKind(ClusterMachineClassGroupVersionKind)
	return out
}
