package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/internal/stored"
)

// MachineSetSpec has the desired number of Machines of one template.
//
// +kubebuilder:validation:XValidation:rule="self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="selector.matchLabels must match template.metadata.labels"
type MachineSetSpec struct {
	// Replicas is the number of Machines wanted.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas"`

	// DeploymentReplicas is the number of Machines in spec.replicas of the MachineDeployment that controls the set,
	// during a rollout. When it is lowered, each set counts its Machines once more before
	// any is deleted: so status.markedReplicas has the marks that came with the scale-down. A
	// MachineDeployment sets it; without one it has no effect.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	DeploymentReplicas *int32 `json:"deploymentReplicas,omitempty"`

	// Selector of the set's Machines. It cannot change. A Machine that matches it and
	// that has no controller is adopted.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable"
	Selector Selector `json:"selector"`

	// Template of the Machines. A change of a field that a VM is created from (classRef,
	// version, clusterRef, failureDomain) reaches only Machines that are created
	// after it; the rest reaches all.
	Template MachineTemplate `json:"template"`

	// NodeMarks are on the Nodes of all of the set's Machines. A MachineDeployment puts
	// there what Nodes show during a rollout.
	// +optional
	NodeMarks NodeMarks `json:"nodeMarks,omitempty,omitzero"`

	// MinReadySeconds is for how long a Machine's Node must have been Ready, in
	// seconds, until the Machine counts as available.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Deletion selects which Machines a scale-down deletes first.
	// +kubebuilder:default={}
	Deletion Deletion `json:"deletion,omitempty,omitzero"`

	// Creation is Disabled if no Machines may be created, even if some are missing. A
	// MachineDeployment with the strategy OnDelete sets it on its old sets. The default is Enabled.
	// +kubebuilder:default=Enabled
	Creation CreationPolicy `json:"creation,omitempty"`

	// InPlaceUpdate has the Machines follow a change of the template's version and
	// classRef in place. Without it such a change reaches only Machines that are
	// created after it.
	// +optional
	InPlaceUpdate *MachineSetInPlaceUpdate `json:"inPlaceUpdate,omitempty"`

	// Aging configures the age at which Machines are replaced. A MachineDeployment sets it by its
	// spec.rollout.maxAge.
	// +optional
	Aging *MachineSetAging `json:"aging,omitempty"`

	// Remediation configures how Failed Machines are replaced. A MachineDeployment gives
	// each of its sets a part of its own budget.
	// +kubebuilder:default={}
	Remediation Remediation `json:"remediation,omitempty,omitzero"`

	// AutoPreserveFailedMachineMax is how many Failed Machines are preserved for
	// analysis, instead of replaced, without a request of a user.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`
}

// A CreationPolicy selects whether a MachineSet may create Machines.
// +kubebuilder:validation:Enum=Enabled;Disabled
type CreationPolicy string

// Policies of creation.
const (
	CreationEnabled  CreationPolicy = "Enabled"
	CreationDisabled CreationPolicy = "Disabled"
)

// MachineSetInPlaceUpdate configures how the Machines of a set are updated in place.
type MachineSetInPlaceUpdate struct {
	// ID of the update, which distinguishes templates that have the same version and
	// class: Machines that were not made or updated under it are updated. Without one,
	// those are that have another version or class.
	// +optional
	// +kubebuilder:validation:MaxLength=54
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	ID string `json:"id,omitempty"`

	// MaxUnavailable is how many Machines may be missing from replicas because of
	// updates or for other reasons: above it no further update begins.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MaxUnavailable int32 `json:"maxUnavailable"`

	// Orchestration selects who chooses the Machines that are updated next.
	// +kubebuilder:default=Auto
	Orchestration Orchestration `json:"orchestration,omitempty"`

	// Timeout of the update of one Machine, from the end of its drain on.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="20m"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// Paused means that no further update begins.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// MachineSetAging configures the age at which the Machines of a set are replaced.
type MachineSetAging struct {
	// MaxAge is the age at which a Machine is replaced at the latest: each is due at 80 % to 100 % of it,
	// which depends on its UID.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	MaxAge metav1.Duration `json:"maxAge"`

	// Replace names the Machine that may be replaced now, if it is due. The replacement begins when all
	// Machines of the set are available, and ends although the name is removed meanwhile.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Replace string `json:"replace,omitempty"`

	// Order is CreateFirst if the Machine is kept until its replacement is available, and DeleteFirst if
	// it is deleted first. The default is DeleteFirst.
	// +optional
	Order RemediationOrder `json:"order,omitempty"`
}

// An AgingMachine is the Machine that is replaced next because of its age.
type AgingMachine struct {
	// Machine is its name.
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine"`
	// DueTime is the time from which it is replaced.
	DueTime metav1.Time `json:"dueTime"`
}

// Backoff of a template whose Machines fail before they join. All Machines that were created in one
// attempt count as one failure. The backoff doubles with each failure. It ends when a Machine that
// was created after the last failure gets further than the one that failed, or when the template
// changes. It ranges from 10 s to 10 min; from 10 s to 5 min if VMs do not join; from 1 min to 10
// min if there was no quota or capacity; and from 10 min to 1 h if the request was invalid or not
// permitted, which only a user can fix.
type Backoff struct {
	// Failures is the number of attempts in a row that failed.
	Failures int32 `json:"failures"`
	// Until then no Machine is created.
	Until metav1.Time `json:"until"`
	// Template that failed, as a hash of the fields that a VM is created from.
	// +optional
	Template string `json:"template,omitempty"`
	// Reason of the last of the failures.
	// +optional
	Reason FailureReason `json:"reason,omitempty"`
	// ErrorCode classifies the first of the failures.
	// +optional
	ErrorCode string `json:"errorCode,omitempty"`
	// Message of the first of the failures.
	// +optional
	Message string `json:"message,omitempty"`
}

// Exhaustion of a failure domain: the cloud has no room for another VM of a template
// there.
type Exhaustion struct {
	// FailureDomain of the template. It is empty when the template leaves it to the
	// class.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
	// Code of the provider's error: CapacityExhausted or QuotaExceeded.
	Code string `json:"code"`
	// Since when it is exhausted.
	Since metav1.Time `json:"since"`
	// Until when it is taken to be exhausted though no Machine waits for a VM there
	// any more. It is absent while one does.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// SafetyStatus has the numbers that decide about an overshoot of a MachineDeployment or MachineSet.
type SafetyStatus struct {
	// Expected is how many Machines there may be by the spec, margins apart.
	Expected int32 `json:"expected"`
	// Surplus is how many there may be beside them because of scale-downs that have
	// not been carried out yet.
	// +optional
	Surplus int32 `json:"surplus,omitempty"`
	// Leaving is how many may be being deleted and are not counted: those of
	// scale-downs, and those for which it was frozen for five minutes.
	// +optional
	Leaving int32 `json:"leaving,omitempty"`
	// DeletionsSince is since when it has been frozen for nothing else than Machines
	// that are being deleted. Such a freeze ends after five minutes.
	// +optional
	DeletionsSince *metav1.Time `json:"deletionsSince,omitempty"`
}

// MachineSetStatus counts the Machines of a set.
type MachineSetStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about,
	// its conditions included.
	// It is -1 until a spec was observed.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DecidedGeneration is the generation of the spec that the numbers and lists of this
	// status were decided by. ObservedGeneration follows it once the conditions are
	// written too: Crossplane writes them in a second request.
	// +optional
	DecidedGeneration int64 `json:"decidedGeneration,omitempty"`

	// Selector in the form of the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of Machines with a Ready Node.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is the number of Machines whose Node is Ready for at
	// least minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas"`

	// UpdatedReplicas is the number of Machines of the current template.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// UpdatedAvailableReplicas is how many of them are available.
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`

	// MarkedReplicas is the number of Machines that are marked to go first.
	// +optional
	MarkedReplicas int32 `json:"markedReplicas,omitempty"`

	// PreservedFailedReplicas is the number of Failed Machines that are kept for
	// analysis.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`

	// StartingReplicas is the number of Machines that are starting, or have yet to be
	// created: those whose Node was never Ready.
	// +optional
	StartingReplicas int32 `json:"startingReplicas,omitempty"`

	// BootingReplicas is the part of startingReplicas that a rollout replaces at once: missing
	// Machines, and those that have no VM, or no Node a minute after their VM ran: five minutes if
	// a Machine of the set is Ready. Only a set that a rollout replaces reports it.
	// +optional
	BootingReplicas int32 `json:"bootingReplicas,omitempty"`

	// UnhealthyReplicas is the number of Machines that are Unknown or Failed, or that
	// cannot be created, without those that are kept for analysis.
	// +optional
	UnhealthyReplicas int32 `json:"unhealthyReplicas,omitempty"`

	// ReplaceableReplicas is the number of Machines that are to be replaced, and still
	// wait for it.
	// +optional
	ReplaceableReplicas int32 `json:"replaceableReplicas,omitempty"`

	// RebootableReplicas is the number of Machines whose reboot is due because their Nodes are
	// unhealthy, and that still wait for room within spec.remediation.
	// +optional
	RebootableReplicas int32 `json:"rebootableReplicas,omitempty"`

	// Replacing names the Machines that are kept until replacements are available in their
	// place.
	// +optional
	// +listType=map
	// +listMapKey=machine
	Replacing []Replacement `json:"replacing,omitempty"`

	// Aging has the Machine that spec.aging replaces next, absent without that field.
	// +optional
	Aging *AgingMachine `json:"aging,omitempty"`

	// Backoff of the template, while its Machines cannot be created.
	// +optional
	Backoff *Backoff `json:"backoff,omitempty"`

	// Exhausted is there while the cloud has no room for another Machine of the
	// template. It ends when one gets its VM, or ten minutes after the last one ceased
	// to wait for that.
	// +optional
	Exhausted *Exhaustion `json:"exhausted,omitempty"`

	// Updating names the Machines that were selected to be updated in place.
	// +optional
	// +listType=atomic
	Updating []string `json:"updating,omitempty"`

	// Rebooting names the Machines that may reboot because their Nodes are unhealthy, within
	// spec.remediation.
	// +optional
	// +listType=atomic
	Rebooting []string `json:"rebooting,omitempty"`

	// TerminatingReplicas is the number of Machines that are being deleted: their
	// VMs may still be there.
	TerminatingReplicas int32 `json:"terminatingReplicas"`

	// Created counts the Machines that this set ever created; the names of the
	// next ones come from it.
	// +optional
	Created int64 `json:"created,omitempty"`

	// Creating names the Machines that were ordered and not seen yet.
	// +optional
	// +listType=atomic
	Creating []string `json:"creating,omitempty"`

	// Adopting names the Machines that the set adopts: they match its selector, and
	// they have no controller.
	// +optional
	// +listType=atomic
	Adopting []string `json:"adopting,omitempty"`

	// SetAside lists Machines that are preserved for analysis, and that were marked for deletion by
	// a scale-down, or failed before they could replace another Machine. They count as deleted, and
	// are deleted when their preservation ends. They lack the labels of the selector, so that the
	// cluster-autoscaler does not count them either.
	// +optional
	// +listType=atomic
	SetAside []string `json:"setAside,omitempty"`

	// Dropping names the Machines that the set deletes. A decision is written
	// here first and carried out when it is read back, so that a view that lags
	// behind cannot choose further ones.
	// +optional
	// +listType=atomic
	Dropping []string `json:"dropping,omitempty"`

	// Deleting names the Machines that are being deleted, by the set or by another client, until the
	// MachineGroup reports that they are gone.
	// +optional
	// +listType=atomic
	Deleting []string `json:"deleting,omitempty"`

	// Replacements are the last ten Machines with a Node that were deleted although the set did not
	// shrink, the latest one last: those that failed, that a rollout or a user replaced, and those
	// that another client deleted. Scale-downs are not among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Replacements []ReplacedMachine `json:"replacements,omitempty"`

	// Safety has the numbers that decide about an overshoot of the set.
	// +optional
	Safety *SafetyStatus `json:"safety,omitempty"`

	// Conditions of the set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A MachineSet keeps a number of Machines of one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=ms,categories=drover
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready-Replicas",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`,priority=1
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`,priority=1
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthyReplicas`,priority=1
// +kubebuilder:printcolumn:name="Terminating",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.template.spec.version`
// +kubebuilder:printcolumn:name="Failing",type=string,JSONPath=`.status.backoff.errorCode`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.metadata.annotations.machinedeployment\.clusters\.x-k8s\.io/revision`,priority=1
type MachineSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   MachineSetSpec   `json:"spec"`
	Status MachineSetStatus `json:"status,omitempty"`
}

// A MachineSetList is a list of MachineSets.
//
// +kubebuilder:object:root=true
type MachineSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineSet `json:"items"`
}
