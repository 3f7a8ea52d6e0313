package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/drover-dev/drover/internal/stored"
)

// MaxReplicas is the largest desired number of Machines of a MachineDeployment or a MachineSet, and
// the largest value of each number that is added to it or subtracted from it.
const MaxReplicas = 10000

// A StrategyType selects how Machines of an old template are replaced.
// +kubebuilder:validation:Enum=RollingUpdate;Recreate;OnDelete;InPlaceUpdate
type StrategyType string

// Types of strategies.
const (
	// RollingUpdate replaces Machines a few at a time.
	RollingUpdate StrategyType = "RollingUpdate"
	// Recreate deletes all Machines of old templates before it creates any of the
	// new one.
	Recreate StrategyType = "Recreate"
	// OnDelete replaces a Machine of an old template when a user deletes it.
	OnDelete StrategyType = "OnDelete"
	// InPlaceUpdate keeps the Machines: each is drained, updated by an agent on its
	// Node, and used again. A change of what cannot be updated in place (clusterRef,
	// failureDomain) rolls as RollingUpdate does.
	InPlaceUpdate StrategyType = "InPlaceUpdate"
)

// An Orchestration selects who chooses the Machines to update in place.
// +kubebuilder:validation:Enum=Auto;Manual
type Orchestration string

// Orchestrations of updates in place.
const (
	// OrchestrationAuto updates as many at a time as maxUnavailable allows.
	OrchestrationAuto Orchestration = "Auto"
	// OrchestrationManual updates the Machines that a user selects, by the label
	// machine.drover.dev/update-selected of the Node or that annotation of the
	// Machine.
	OrchestrationManual Orchestration = "Manual"
)

// Strategy selects how Machines of an old template are replaced.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.steps) || size(self.rollingUpdate.steps) == 0 || !has(self.type) || self.type == 'RollingUpdate'",message="rollingUpdate.steps must be absent unless type is RollingUpdate"
type Strategy struct {
	// Type of the strategy.
	// +kubebuilder:default=RollingUpdate
	Type StrategyType `json:"type,omitempty"`

	// RollingUpdate bounds a rolling update.
	// +kubebuilder:default={maxSurge: 1, maxUnavailable: 0}
	RollingUpdate RollingUpdateBounds `json:"rollingUpdate,omitempty,omitzero"`

	// InPlaceUpdate bounds an update in place. It is read when type is InPlaceUpdate.
	// +kubebuilder:default={maxSurge: 0, maxUnavailable: 1}
	InPlaceUpdate InPlaceUpdateBounds `json:"inPlaceUpdate,omitempty,omitzero"`
}

// A FallbackPolicy selects the effect of a change that cannot be made in place.
// +kubebuilder:validation:Enum=Replace;Never
type FallbackPolicy string

// Policies of changes that cannot be made in place.
const (
	// FallbackReplace replaces Machines within the bounds.
	FallbackReplace FallbackPolicy = "Replace"
	// FallbackNever reports the change, and replaces and updates no Machine.
	FallbackNever FallbackPolicy = "Never"
)

// InPlaceUpdateBounds bounds an update in place.
//
// +kubebuilder:validation:XValidation:rule="!has(self.fallback) || self.fallback != 'Never' || !has(self.maxUnavailable) || !(self.maxUnavailable == 0 || self.maxUnavailable == '0%')",message="maxUnavailable must not be 0 if fallback is Never: without it one Machine is replaced by another"
// +kubebuilder:validation:XValidation:rule="!((self.maxSurge == 0 || self.maxSurge == '0%') && (self.maxUnavailable == 0 || self.maxUnavailable == '0%'))",message="maxSurge and maxUnavailable cannot both be 0: no Machine could ever be updated"
type InPlaceUpdateBounds struct {
	// MaxSurge is how many Machines there may be above replicas: a number, or a
	// percentage of replicas, rounded up. An update in place uses one at most, and
	// none if some Machines may be unavailable. It is of the new template, and the
	// last outdated Machine is deleted in its place. A move to another clusterRef
	// or failureDomain replaces Machines, and uses all of MaxSurge.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// MaxUnavailable is how many Machines may be missing from replicas: a number,
	// or a percentage of replicas, rounded down. When it rounds to 0 while maxSurge
	// is 0, it counts as 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Orchestration selects who chooses the Machines that are updated next.
	// +kubebuilder:default=Auto
	Orchestration Orchestration `json:"orchestration,omitempty"`

	// Timeout of the update of one Machine, from the end of its drain on. After it
	// the update has failed, and stays visible on the Machine until it succeeds or
	// the Machine is deleted.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:default="20m"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// Fallback selects the effect of a change that cannot be made in place: of clusterRef or
	// failureDomain, or while Machines of several templates exist. Replace replaces Machines within the
	// bounds. Never replaces none, and reports the change by the condition Valid; a maxUnavailable that
	// rounds to 0 counts as 1. The default is Replace. Machines that fail are replaced in any case.
	// +optional
	Fallback FallbackPolicy `json:"fallback,omitempty"`
}

// RollbackTo names a revision to go back to.
type RollbackTo struct {
	// Revision to go back to, one of status.revisions; 0 is the one before the
	// current one.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision,omitempty"`
}

// Rollout configures when Machines are replaced although their template did not change,
// and what their Nodes show meanwhile.
type Rollout struct {
	// After is a time (RFC 3339): once it has come, Machines of MachineSets that were
	// created before it are replaced as if the template had changed. A later time
	// rolls again.
	// +optional
	After *metav1.Time `json:"after,omitempty"`

	// DisableScaleDown keeps the annotation
	// cluster-autoscaler.kubernetes.io/scale-down-disabled on all Nodes during a
	// rollout. The cluster-autoscaler's clusterapi provider leaves the Nodes of a
	// rollout alone without it.
	// +optional
	DisableScaleDown bool `json:"disableScaleDown,omitempty"`

	// Windows are the times in which healthy Machines are replaced or updated. Without any, they are
	// at all times. Unhealthy Machines are replaced at any time, and scaling does not wait either.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Windows []TimeWindow `json:"windows,omitempty"`

	// Blackouts are times in which healthy Machines are neither replaced nor updated, also within windows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Blackouts []TimeWindow `json:"blackouts,omitempty"`

	// OnFailure selects the effect of a rollout that exceeds progressDeadlineSeconds, or of which an analysis
	// fails. Hold reports it, and a step whose analysis failed is held. Rollback rejects the template, and goes back to the last revision that was complete.
	// The default is Hold.
	// +optional
	OnFailure FailurePolicy `json:"onFailure,omitempty"`

	// MaxAge is the age at which a Machine is replaced by one of the same template. Each Machine is due
	// at 80 % to 100 % of it, which depends on its UID, so that Machines that were created together are
	// not replaced together. One is replaced at a time, within windows, and not during a rollout. It
	// must be at least 1h, and so long that a Machine is available before it is due. The default is
	// any age.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	MaxAge *metav1.Duration `json:"maxAge,omitempty"`
}

// RollingUpdateBounds bounds a rolling update.
//
// +kubebuilder:validation:XValidation:rule="!((self.maxSurge == 0 || self.maxSurge == '0%') && (self.maxUnavailable == 0 || self.maxUnavailable == '0%'))",message="maxSurge and maxUnavailable cannot both be 0: no Machine could ever be replaced"
type RollingUpdateBounds struct {
	// MaxSurge is how many Machines there may be above replicas, terminating ones
	// included: a number, or a percentage of replicas, rounded up.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// MaxUnavailable is how many Machines may be missing from replicas: a number,
	// or a percentage of replicas, rounded down. When it rounds to 0 while maxSurge
	// is 0, it counts as 1.
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 10000, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// Steps of a rollout: how many Machines are updated, and what must hold before the next step. After the
	// last one the rollout goes on to the end. All have a number, or all have a percentage, and each
	// has more than the one before it. They do not hold the first Machines of a deployment, nor the
	// return to the last revision that was complete.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="self.all(s, type(s.updated) == int) || self.all(s, type(s.updated) == string)",message="updated must be a number in all steps, or a percentage in all steps"
	// +kubebuilder:validation:XValidation:rule="!(self.all(s, type(s.updated) == int) || self.all(s, type(s.updated) == string)) || self.map(s, type(s.updated) == int ? int(s.updated) : int(string(s.updated).replace('%', ''))).isSorted() && self.all(s, self.exists_one(o, o.updated == s.updated))",message="updated must be more in each step than in the step before it"
	Steps []RolloutStep `json:"steps,omitempty"`
}

// MachineDeploymentSpec has the desired number of Machines of a template, and
// how they are replaced when it changes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.maxAge) || !has(self.strategy) || !has(self.strategy.type) || self.strategy.type != 'OnDelete'",message="rollout.maxAge must be absent if strategy.type is OnDelete: then only a user replaces Machines"
// +kubebuilder:validation:XValidation:rule="!has(self.rollout) || !has(self.rollout.maxAge) || !has(self.strategy) || !has(self.strategy.type) || self.strategy.type != 'InPlaceUpdate' || !has(self.strategy.inPlaceUpdate) || !has(self.strategy.inPlaceUpdate.fallback) || self.strategy.inPlaceUpdate.fallback != 'Never'",message="rollout.maxAge must be absent if strategy.inPlaceUpdate.fallback is Never: it replaces Machines"
// +kubebuilder:validation:XValidation:rule="self.selector.matchLabels.all(k, k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",message="selector.matchLabels must match template.metadata.labels"
type MachineDeploymentSpec struct {
	// Replicas is the number of Machines wanted.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas"`

	// Selector of the deployment's Machines. It cannot change.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="selector is immutable"
	Selector Selector `json:"selector"`

	// Template of the Machines.
	Template MachineTemplate `json:"template"`

	// Strategy of replacement when the template changes.
	// +kubebuilder:default={}
	Strategy Strategy `json:"strategy,omitempty,omitzero"`

	// MinReadySeconds is for how long a Machine's Node must have been Ready, in
	// seconds, until the Machine counts as available.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// Deletion selects which Machines a scale-down deletes first.
	// +kubebuilder:default={}
	Deletion Deletion `json:"deletion,omitempty,omitzero"`

	// Paused holds rollouts: Machines are neither replaced nor updated because of a
	// change of the template. Scaling, and replacing those that failed, go on.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ProgressDeadlineSeconds is for how long a rollout may make no progress, in
	// seconds, until the condition Progressing is False with the reason
	// ProgressDeadlineExceeded. The rollout continues nevertheless. The default is
	// longer than a Machine's creationTimeout. A rollout makes progress when it has more
	// available Machines of the current template, or fewer of other ones, than it ever had: a
	// Machine that fails and is created again is no progress. A Machine that is Ready for the
	// first time counts as well, until the deadline is exceeded.
	// +kubebuilder:default=1800
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds int32 `json:"progressDeadlineSeconds,omitempty"`

	// Rollout of a template that did not change.
	// +optional
	Rollout Rollout `json:"rollout,omitempty,omitzero"`

	// RollbackTo rolls back to an earlier revision. While it is set, the fields of that revision
	// replace the fields of the template that would start a rollout. To roll forward again, remove
	// it together with a correction of the template.
	// +optional
	RollbackTo *RollbackTo `json:"rollbackTo,omitempty"`

	// Remediation configures how Failed Machines are replaced, of all MachineSets
	// together.
	// +kubebuilder:default={}
	Remediation Remediation `json:"remediation,omitempty,omitzero"`

	// AutoPreserveFailedMachineMax is how many Failed Machines are preserved for
	// analysis, instead of replaced, without a request of a user.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	AutoPreserveFailedMachineMax int32 `json:"autoPreserveFailedMachineMax,omitempty"`

	// RevisionHistoryLimit is how many revisions before the current one
	// status.revisions keeps, to roll back to.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit int32 `json:"revisionHistoryLimit,omitempty"`
}

// A RevisionOutcome is what became of the rollout of a revision.
// +kubebuilder:validation:Enum=InProgress;Complete;ProgressDeadlineExceeded;Superseded;Rejected
type RevisionOutcome string

// Outcomes of rollouts.
const (
	RevisionInProgress       RevisionOutcome = "InProgress"
	RevisionComplete         RevisionOutcome = "Complete"
	RevisionDeadlineExceeded RevisionOutcome = "ProgressDeadlineExceeded"
	RevisionSuperseded       RevisionOutcome = "Superseded"
	RevisionRejected         RevisionOutcome = "Rejected"
)

// A Revision is a template that once was rolled out, or is: all of it that starts a
// rollout when it changes.
type Revision struct {
	// Revision is the number of the revision; the current one has the highest.
	Revision int64 `json:"revision"`
	// After is the spec.rollout.after that it was rolled out for.
	// +optional
	After *metav1.Time `json:"after,omitempty"`
	// StartTime is when the rollout of the revision began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when the rollout was complete, or superseded by another revision.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// Outcome of the rollout: InProgress, Complete, ProgressDeadlineExceeded while it made
	// no progress for too long, Superseded by another revision before it was complete, or
	// Rejected.
	// +optional
	Outcome RevisionOutcome `json:"outcome,omitempty"`
	// LastCompleteRevision is the number that the template had when a rollout of it was complete last. It is 0 if
	// none was since the template was rejected, and if the rollout of this revision is complete.
	// +optional
	LastCompleteRevision int64 `json:"lastCompleteRevision,omitempty"`
	// ChangeCause is the value of the annotation kubernetes.io/change-cause.
	// +optional
	ChangeCause string `json:"changeCause,omitempty"`
	// ClassRef of the revision.
	ClassRef ClassReference `json:"classRef"`
	// Version of the revision.
	Version string `json:"version"`
	// ClusterRef of the revision.
	ClusterRef ClusterReference `json:"clusterRef,omitempty,omitzero"`
	// FailureDomain of the revision.
	// +optional
	FailureDomain *string `json:"failureDomain,omitempty"`
	// Labels of the revision's Machines.
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// Annotations of the revision's Machines.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A Rollback is one that is in force.
type Rollback struct {
	// Requested is spec.rollbackTo.revision.
	Requested int64 `json:"requested"`
	// Revision that it was found to be. It got a new number, as the current one.
	Revision int64 `json:"revision"`
}

// MachineSetReplicas is how many Machines a MachineSet shall have.
type MachineSetReplicas struct {
	// Name of the MachineSet.
	Name string `json:"name"`
	// Replicas is the number of Machines that it shall have.
	Replicas int32 `json:"replicas"`
	// Most is how many Machines it may still come to have, as long as it has not
	// acted on Replicas: the previous number.
	// +optional
	Most int32 `json:"most,omitempty"`
	// MaxInFlight is its part of spec.remediation.maxInFlight.
	// +optional
	MaxInFlight *int32 `json:"maxInFlight,omitempty"`
}

// RolloutProgress is how far the rollout of a revision ever came. A Machine that is created, or
// is Ready again, is no progress.
type RolloutProgress struct {
	// UpdatedReplicas, ReadyReplicas and AvailableReplicas are the largest numbers of Machines of
	// the current template, of Ready ones and of available ones, that there were at a time.
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// +optional
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`
	// OutdatedReplicas is the smallest number of Machines of other templates that there were to be
	// at a time.
	// +optional
	OutdatedReplicas int32 `json:"outdatedReplicas,omitempty"`
	// OutdatedTotal is the smallest number with those that are terminating.
	// +optional
	OutdatedTotal int32 `json:"outdatedTotal,omitempty"`
}

// MachineDeploymentStatus counts the Machines of a deployment.
type MachineDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about,
	// its conditions included.
	// It is -1 until a spec was observed.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Selector in the form of the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Replicas is the number of Machines, without those that are terminating.
	Replicas int32 `json:"replicas"`

	// DesiredReplicas is spec.replicas as the MachineSets were last scaled for. A
	// change during a rollout is spread over all of them.
	// +optional
	DesiredReplicas *int32 `json:"desiredReplicas,omitempty"`

	// UpdatedReplicas is the number of Machines of the current template.
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// ReadyReplicas is the number of Machines with a Ready Node.
	ReadyReplicas int32 `json:"readyReplicas"`

	// AvailableReplicas is the number of Machines whose Node is Ready for at
	// least minReadySeconds.
	AvailableReplicas int32 `json:"availableReplicas"`

	// UnavailableReplicas is how many available Machines are missing from replicas.
	UnavailableReplicas int32 `json:"unavailableReplicas"`

	// TerminatingReplicas is the number of Machines that are being deleted: their
	// VMs may still be there.
	TerminatingReplicas int32 `json:"terminatingReplicas"`

	// UnhealthyReplicas is the number of Machines that are Unknown or Failed, or that
	// cannot be created, without those that are kept for analysis.
	// +optional
	UnhealthyReplicas int32 `json:"unhealthyReplicas,omitempty"`

	// Revision of the current template.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// Revisions that there were, oldest first. The last one is the current one.
	// +optional
	// +listType=map
	// +listMapKey=revision
	// +kubebuilder:validation:MaxItems=102
	Revisions []Revision `json:"revisions,omitempty"`

	// Rollback that is in force.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// LastProgressTime is the time at which the rollout last made progress: see progress. It is
	// also the time at which a revision, or the rollout after a pause or invalid input, began.
	// +optional
	LastProgressTime *metav1.Time `json:"lastProgressTime,omitempty"`

	// FrozenSince is the time at which a freeze, or a hold of status.rollout, interrupted the
	// rollout. That time does not count for spec.progressDeadlineSeconds: when it ends,
	// lastProgressTime is later by that time.
	// +optional
	FrozenSince *metav1.Time `json:"frozenSince,omitempty"`

	// Rollout has the step, the hold and the rejection of a rollout. It is absent without any of them.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Aging has the Machine that spec.rollout.maxAge replaces next. It is absent without that field, and
	// during a rollout.
	// +optional
	Aging *AgingMachine `json:"aging,omitempty"`

	// Progress is how far the rollout of the revision ever came. Only a rollout that comes
	// further makes progress.
	// +optional
	Progress *RolloutProgress `json:"progress,omitempty"`

	// PreservedFailedReplicas is the number of Failed Machines that are kept for
	// analysis.
	// +optional
	PreservedFailedReplicas int32 `json:"preservedFailedReplicas,omitempty"`

	// Exhausted failure domains: the cloud has no room there for another VM of this
	// deployment.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Exhausted []Exhaustion `json:"exhausted,omitempty"`

	// MachineSets and how many Machines each shall have. A decision is written
	// here first and carried out when it is read back, so that a view that lags
	// behind can neither repeat nor contradict an executed decision.
	// +optional
	// +listType=atomic
	MachineSets []MachineSetReplicas `json:"machineSets,omitempty"`

	// Replacements are the last ten Machines with a Node that were deleted although the deployment did not
	// shrink, the latest one last: those that failed, that a rollout or a user replaced, and those
	// that another client deleted. Scale-downs are not among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Replacements []ReplacedMachine `json:"replacements,omitempty"`

	// Safety has the numbers that decide about an overshoot of the deployment.
	// +optional
	Safety *SafetyStatus `json:"safety,omitempty"`

	// Conditions of the deployment.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// A MachineDeployment keeps a number of Machines, and rolls them over when their
// template changes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:scope=Namespaced,shortName=md,categories=drover
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`,priority=1
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthyReplicas`,priority=1
// +kubebuilder:printcolumn:name="Terminating",type=integer,JSONPath=`.status.terminatingReplicas`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.template.spec.version`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.spec.strategy.type`,priority=1
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`,priority=1
// +kubebuilder:printcolumn:name="Progressing",type=string,JSONPath=`.status.conditions[?(@.type=='Progressing')].reason`,priority=1
type MachineDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	stored.Undecoded  `json:"-"`

	Spec   MachineDeploymentSpec   `json:"spec"`
	Status MachineDeploymentStatus `json:"status,omitempty"`
}

// A MachineDeploymentList is a list of MachineDeployments.
//
// +kubebuilder:object:root=true
type MachineDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineDeployment `json:"items"`
}
