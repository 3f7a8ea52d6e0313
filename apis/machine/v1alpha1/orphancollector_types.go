package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/drover-dev/drover/internal/stored"
)

// An OrphanPolicy is the action on orphans.
// +kubebuilder:validation:Enum=Report;Delete
type OrphanPolicy string

const (
	// OrphanReport reports orphans and changes none.
	OrphanReport OrphanPolicy = "Report"
	// OrphanDelete deletes them.
	OrphanDelete OrphanPolicy = "Delete"
)

// OrphanCollectorSpec configures the account that is searched for orphans, and the action on them.
//
// +kubebuilder:validation:XValidation:rule="self.policy != 'Delete' || duration(self.gracePeriod) >= duration('10m')",messageExpression="'invalid value \"' + self.gracePeriod + '\": must be at least 10m where policy is Delete'",fieldPath=".gracePeriod"
type OrphanCollectorSpec struct {
	// Namespace of the composed resources: the inventory and the VM resources of
	// orphans, and of a ProviderConfig that it names. It cannot be changed: the VM
	// resources would be deleted with the old namespace's, and their VMs with them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="namespace cannot be changed"
	// +kubebuilder:default=crossplane-system
	Namespace string `json:"namespace,omitempty"`

	// ProviderConfigRef names the configuration of the VMs' provider: the account in
	// which orphans are looked for.
	// +kubebuilder:default={kind: ClusterProviderConfig, name: default}
	ProviderConfigRef VMProviderConfigReference `json:"providerConfigRef,omitempty,omitzero"`

	// Policy is the action on orphans: Report or Delete.
	// +kubebuilder:default=Report
	Policy OrphanPolicy `json:"policy,omitempty"`

	// GracePeriod is how long a VM must be observed unclaimed, twice at
	// least, until it is an orphan. With the policy Delete it must be at least 10m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="gracePeriod must be at least 1s"
	// +kubebuilder:default="15m"
	GracePeriod metav1.Duration `json:"gracePeriod,omitempty,omitzero"`

	// Interval between two looks at the cloud.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +kubebuilder:default="5m"
	Interval metav1.Duration `json:"interval,omitempty,omitzero"`

	// MaxOrphans is the largest number of orphans with which the policy Delete still deletes
	// orphans that are not confirmed. They must also be at most a fifth of the claimed VMs, or one
	// if a fifth is less. If there are more, a person must check them first: a control plane that
	// was restored from an old backup does not know its youngest Machines.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=10
	MaxOrphans int32 `json:"maxOrphans,omitempty"`

	// ConfirmedOrphans are the external names of orphans that a person has checked. The policy
	// Delete deletes them however many there are, and they do not count for maxOrphans. A VM that
	// is not an orphan is never deleted because of this list.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ConfirmedOrphans []string `json:"confirmedOrphans,omitempty"`

	// FormerInstallations are IDs of installations of Drover that are no more, and whose
	// VMs are looked for too. They are deleted only if the ConfigMap drover-installations
	// in the namespace crossplane-system has it that the installation was replaced or lost,
	// and reported otherwise.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	FormerInstallations []string `json:"formerInstallations,omitempty"`

	// ForProvider are parameters of the VM's kind that it takes to find a VM by its
	// external name, such as its region.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ForProvider *runtime.RawExtension `json:"forProvider,omitempty"`
}

// An OrphanState is the action on an orphan.
// +kubebuilder:validation:Enum=Found;Adopted;Deleting
type OrphanState string

// States of an orphan, in their order.
const (
	// OrphanFound is reported, and not touched.
	OrphanFound OrphanState = "Found"
	// OrphanAdopted is observed by a VM resource of the collector: a last look before
	// it is deleted.
	OrphanAdopted OrphanState = "Adopted"
	// OrphanDeleting is being deleted.
	OrphanDeleting OrphanState = "Deleting"
)

// An Orphan is a VM that no VM resource claims.
type Orphan struct {
	// ExternalName of the VM at its cloud.
	ExternalName string `json:"externalName"`
	// ProviderID of the VM, if the cloud reports it.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// Name of the VM, if the cloud reports it.
	// +optional
	Name string `json:"name,omitempty"`
	// Namespace of the Machine that it was made for.
	Namespace string `json:"namespace"`
	// Machine that it was made for, empty at clouds whose tags do not name the Machine: there
	// the name of the VM identifies it.
	Machine string `json:"machine"`
	// Node of the VM in its target cluster, if there is one.
	// +optional
	Node string `json:"node,omitempty"`
	// NodeReady means that the Node is Ready: the VM is in use, and is not deleted.
	// +optional
	NodeReady bool `json:"nodeReady,omitempty"`
	// State is the action on it.
	State OrphanState `json:"state"`
	// Message explains why it is not deleted.
	// +optional
	Message string `json:"message,omitempty"`
}

// An UnusedResource is something beside VMs that costs money and that nothing uses.
type UnusedResource struct {
	// Type in the cloud's words, such as NetworkInterface.
	Type string `json:"type"`
	// ID by which a user finds the resource at the cloud.
	ID string `json:"id"`
	// Namespace of the Machine that it was made for.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Machine that it was made for.
	// +optional
	Machine string `json:"machine,omitempty"`
}

// OrphanCollectorStatus reports the orphans.
type OrphanCollectorStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// It is -1 until a spec was observed.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Installation is the ID of this installation of Drover, which its VMs have in the tag
	// drover-installation.
	// +optional
	Installation string `json:"installation,omitempty"`

	// Unclaimed is how many VMs the cloud has that no VM resource claims. That of a
	// Machine which is being created is one for a moment.
	// +optional
	Unclaimed int32 `json:"unclaimed,omitempty"`

	// Orphans is how many orphans there are, those included that are being deleted.
	// +optional
	Orphans int32 `json:"orphans,omitempty"`

	// VirtualMachines are the orphans, 20 at most: those that something is done about
	// come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	VirtualMachines []Orphan `json:"virtualMachines,omitempty"`

	// Resources beside the VMs that nothing uses and whose Machine does not exist, 20 at most:
	// network interfaces, addresses, disks. They are reported, and never deleted.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Resources []UnusedResource `json:"resources,omitempty"`

	// Conditions of the collector.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// An OrphanCollector looks for VMs of this installation of Drover that have no Machine
// any more, reports them, and deletes them if its policy is Delete. It is for the operators of the
// platform, and has no namespace: no right in a namespace can grant it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=orphans,categories=drover
// +kubebuilder:printcolumn:name="Policy",type=string,JSONPath=`.spec.policy`
// +kubebuilder:printcolumn:name="Orphans",type=integer,JSONPath=`.status.orphans`
// +kubebuilder:printcolumn:name="Found",type=string,JSONPath=`.status.conditions[?(@.type=='OrphansFound')].status`
// +kubebuilder:printcolumn:name="Unclaimed",type=integer,JSONPath=`.status.unclaimed`,priority=1
// +kubebuilder:printcolumn:name="Installation",type=string,JSONPath=`.status.installation`,priority=1
type OrphanCollector struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   OrphanCollectorSpec   `json:"spec"`
	Status OrphanCollectorStatus `json:"status,omitempty"`
}

// An OrphanCollectorList is a list of OrphanCollectors.
//
// +kubebuilder:object:root=true
type OrphanCollectorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OrphanCollector `json:"items"`
}
