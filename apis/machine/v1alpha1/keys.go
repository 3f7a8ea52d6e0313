package v1alpha1

import "strings"

// Labels that Drover sets on the objects that it composes.
const (
	// LabelNodePool names the NodePool of a MachineDeployment, Machine or Node.
	LabelNodePool = Group + "/node-pool"

	// LabelDeployment names the MachineDeployment of a MachineSet or Machine.
	LabelDeployment = Group + "/deployment"

	// LabelSet names the MachineSet of a Machine.
	LabelSet = Group + "/set"

	// LabelMachine names the Machine of a VM, of its companions and of the Secret with its
	// user data.
	LabelMachine = Group + "/machine"

	// LabelTemplateHash identifies a revision of a MachineDeployment. It is
	// part of a composed MachineSet's selector and of its Machines' labels.
	LabelTemplateHash = Group + "/template-hash"

	// LabelOrphanCollector on the VM resource of an orphan is the name of the inventory
	// of its OrphanCollector.
	LabelOrphanCollector = Group + "/orphan-collector"

	// LabelFreeze, "true" on a MachineDeployment or MachineSet, prevents it from creating and
	// replacing Machines. Scaling down continues. "false" prevents an automatic freeze. A
	// MachineDeployment copies the label to its sets.
	LabelFreeze = Group + "/freeze"

	// LabelProvider selects the Composition of a Machine by its class's provider.
	LabelProvider = "provider"

	// LabelAutoscalerDeployment is read from MachineSets by the
	// cluster-autoscaler, whatever its CAPI_GROUP is.
	LabelAutoscalerDeployment = "cluster.x-k8s.io/deployment-name"
)

// Annotations.
const (
	// AnnotationRevision is the revision of a MachineSet, an integer that grows.
	// The cluster-autoscaler reads this very key, "clusters" included.
	AnnotationRevision = "machinedeployment.clusters.x-k8s.io/revision"

	// AnnotationDeleteMachine is set by the cluster-autoscaler on the Machines
	// that shall go first when their set is scaled down.
	AnnotationDeleteMachine = Group + "/delete-machine"

	// AnnotationExhausted on a Machine that a MachineSet creates while the cloud has no room
	// for it is the code of the cloud's error. No VM is requested for the Machine, and it is
	// Failed, so that the cluster-autoscaler takes another group. Drover sets it.
	AnnotationExhausted = Group + "/exhausted"

	// AnnotationDeletionCost is an integer, 0 if absent. Among the equally available Machines of a
	// set that is scaled down, those of lower cost are deleted first. It is for Machines what
	// controller.kubernetes.io/pod-deletion-cost is for Pods.
	AnnotationDeletionCost = Group + "/deletion-cost"

	// AnnotationPreserve on a Machine or its Node keeps it for analysis: now, when-failed or false.
	// The Node's annotation takes precedence over the Machine's.
	AnnotationPreserve = Group + "/preserve"

	// AnnotationClassProven, "true" on a MachineSet, means that another MachineSet of its
	// MachineDeployment had available Machines of its class when the set was created: the
	// set does not try the class with one Machine first. Drover sets it.
	AnnotationClassProven = Group + "/class-proven"

	// AnnotationPoolDecision on a MachineDeployment is the number of the decision of its NodePool
	// that its replicas and sizes follow. Drover sets it.
	AnnotationPoolDecision = Group + "/pool-decision"

	// AnnotationPoolTemplate on a MachineDeployment identifies the template that its NodePool composed, if
	// strategy.failureDomains of the pool is OneByOne. Drover sets it.
	AnnotationPoolTemplate = Group + "/pool-template"

	// AnnotationFreezeReason on a MachineSet has the reason why the MachineDeployment that put
	// LabelFreeze there is frozen.
	AnnotationFreezeReason = Group + "/freeze-reason"

	// AnnotationReplace, "true" on a Machine or its Node, asks its MachineSet for another
	// Machine in its place, be it healthy or not, within the budget of spec.remediation.
	// That of a Node counts for Machines that are five minutes old, and cannot be called off
	// but by "false" on the Machine.
	AnnotationReplace = Group + "/replace"

	// AnnotationReplaceRequestedBy on a Machine is the name of the user who set AnnotationReplace
	// with kubectl drover. It only informs: the policy drover-requesters refuses the name of another user.
	AnnotationReplaceRequestedBy = Group + "/replace-requested-by"

	// AnnotationReboot on a Machine requests a reboot of its VM. The value is an ID of the request: the
	// Machine is rebooted once for each. On the VM resource it is the request to the provider: see
	// RebootRequest. It is empty if none is in force.
	AnnotationReboot = Group + "/reboot"

	// AnnotationRebootDrain, "Never" on a Machine, reboots it without a drain of its Node, which is only
	// cordoned. It counts when the reboot begins.
	AnnotationRebootDrain = Group + "/reboot-drain"

	// AnnotationRebootGranted on a Machine is the ID in status.unhealthy.rebootID whose reboot may begin. Its
	// MachineSet sets it.
	AnnotationRebootGranted = Group + "/reboot-granted"

	// AnnotationRebooted on a VM resource is the last value of AnnotationReboot that its provider began to carry
	// out. The provider writes it before it calls the cloud, so that no request is carried out twice.
	AnnotationRebooted = Group + "/rebooted"

	// AnnotationSkipRemediation, "true" on a Machine or its Node, keeps the Machine from
	// becoming Failed because of its Node, and takes that back if it is.
	AnnotationSkipRemediation = Group + "/skip-remediation"

	// AnnotationChangeCause of a MachineDeployment has the reason of its change. It is
	// kept with the revision.
	AnnotationChangeCause = "kubernetes.io/change-cause"

	// AnnotationRolloutHold on a MachineDeployment holds its rollouts until it is removed: no Machine is
	// replaced or updated because of a template. The value is the cause, for users.
	AnnotationRolloutHold = Group + "/rollout-hold"

	// AnnotationRolloutApprove on a MachineDeployment approves a step of a rollout and those before it: the ID in
	// status.rollout.id, a slash, and the number of the step. A change of the template voids it.
	AnnotationRolloutApprove = Group + "/rollout-approve"

	// AnnotationRolloutAbort on a MachineDeployment rejects the template of the rollout whose ID it has.
	AnnotationRolloutAbort = Group + "/rollout-abort"

	// AnnotationRolloutRetry on a MachineDeployment withdraws the rejection of the rollout whose ID it
	// has: the template is rolled out again. With an ID, an @ and a time in seconds, the step that has been complete since
	// that time begins again, with its analyses.
	AnnotationRolloutRetry = Group + "/rollout-retry"

	// AnnotationPassWave on a RolloutPolicy lets the rollouts of later waves begin although a wave is not complete, until it is
	// complete: the ID in its status.waves.
	AnnotationPassWave = Group + "/pass-wave"

	// AnnotationPaused is read from MachineDeployments and MachineSets by the
	// cluster-autoscaler, whatever its CAPI_GROUP is.
	AnnotationPaused = "cluster.x-k8s.io/paused"

	// AnnotationScaleDownDisabled on a Node keeps the cluster-autoscaler from
	// removing it.
	AnnotationScaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"

	// AnnotationUpdateRetry on a Machine restarts a failed update in place, each
	// time that its value changes.
	AnnotationUpdateRetry = Group + "/update-retry"

	// AnnotationSkipDrain, "true" on a Machine or its Node, deletes without drain.
	AnnotationSkipDrain = Domain + "/skip-drain"

	// AnnotationForceDelete, "true" on a Machine, completes its deletion although its VM resource
	// cannot be deleted: the finalizers of the VM resource are removed when the Node is deleted and
	// the provider had some time to delete the VM. If the VM still exists at its cloud then, Drover
	// no longer deletes it, and it continues to cost money.
	AnnotationForceDelete = Domain + "/force-delete"

	// AnnotationConfirmDeletion, "true" on a Machine or MachineSet, continues a deletion that is
	// held because its MachineSet or MachineDeployment does not exist any more.
	AnnotationConfirmDeletion = Domain + "/confirm-deletion"

	// AnnotationForceDrain, "true" on a Machine or its Node, drains as after the
	// drain's timeout, also in the middle of a drain.
	AnnotationForceDrain = Domain + "/force-drain"

	// AnnotationMachine, AnnotationNamespace and AnnotationCluster on a Node name
	// the Machine that it belongs to, as the cluster-autoscaler expects.
	AnnotationMachine   = Group + "/machine"
	AnnotationNamespace = Group + "/cluster-namespace"
	AnnotationCluster   = Group + "/cluster-name"

	// AnnotationOrphanNamespace, AnnotationOrphanMachine and AnnotationOrphanMachineUID
	// on an OrphanCollector's VM name the Machine that the VM was made for,
	// AnnotationOrphanVMName is the name of the VM, by which the Machine is known if nothing
	// else names it, and
	// AnnotationOrphanProviderID is the VM's providerID, if it is known.
	// AnnotationOrphanInstallation is the installation that made the VM, and
	// AnnotationOrphanCluster the name of the configuration of its target cluster.
	AnnotationOrphanNamespace    = Group + "/orphan-of-namespace"
	AnnotationOrphanMachine      = Group + "/orphan-of-machine"
	AnnotationOrphanMachineUID   = Group + "/orphan-of-uid"
	AnnotationOrphanVMName       = Group + "/orphan-of-vm"
	AnnotationOrphanProviderID   = Group + "/orphan-provider-id"
	AnnotationOrphanInstallation = Group + "/orphan-of-installation"
	AnnotationOrphanCluster      = Group + "/orphan-of-cluster"

	// LabelUserData on a Secret lets classes name it in spec.userData: its content is brought
	// onto VMs, and into the namespaces of their Machines.
	LabelUserData = Group + "/user-data"
	// UserDataOfNamespace is the value for MachineClasses of the Secret's namespace.
	UserDataOfNamespace = "true"
	// UserDataOfCluster is the value for ClusterMachineClasses.
	UserDataOfCluster = "cluster"

	// ResourceNodeTemplate is the name of the NodeTemplate among composed resources.
	ResourceNodeTemplate = "node-template"

	// AnnotationTemplate on a Machine of a MachineSet is the name of the template in the
	// MachineGroup that it was last made like.
	AnnotationTemplate = Group + "/template"

	// AnnotationOrder on a companion of a VM is its place among them: a number from 0.
	// The last one is deleted first.
	AnnotationOrder = Group + "/order"

	// AnnotationAfterVM on a companion of a VM is "true" if it depends on the VM, such as the
	// attachment of a disk. It is deleted before the VM.
	AnnotationAfterVM = Group + "/after-vm"

	// AnnotationCompanions on a VM are the names of the companions that it was made with,
	// with commas between them.
	AnnotationCompanions = Group + "/companions"

	// AnnotationInstanceType on a VM is the name of the entry in spec.instanceTypes of its class that
	// it was requested with. VMs of a class without a list do not have it.
	AnnotationInstanceType = Group + "/instance-type"

	// AnnotationAppliedHash on a VM, or a companion, is the hash of the last applied fields: by
	// it the Machine's controller knows, also after a restart, whether fields were removed.
	AnnotationAppliedHash = Group + "/applied-hash"

	// AnnotationReadConsole on a VM is "true" while its provider shall report the VM's console,
	// because its Machine is late to join, and "false" afterwards. A VM that joins in time does
	// not have it.
	AnnotationReadConsole = Group + "/read-console"

	// AnnotationMachineUID and AnnotationNodeName on a VM are the UID of the Machine that it was
	// made for, and the name that its Node was given. AnnotationInstallation is the installation
	// of Drover that it belongs to. A Machine needs them to take over a VM whose Machine does not exist.
	AnnotationMachineUID   = Group + "/machine-uid"
	AnnotationNodeName     = Group + "/node-name"
	AnnotationInstallation = Group + "/installation"

	// AnnotationImported is on the objects of machine-controller-manager that kubectl drover import mcm took over, and on the
	// MachineSet that gets their Machines meanwhile. Its JSON has the former owners, labels and replicas, which the way back restores.
	AnnotationImported = Group + "/imported"

	// AnnotationReleased is changed on a VM, or a companion, in the same patch that removes
	// FinalizerDrain: crossplane-runtime ignores a change of finalizers alone.
	AnnotationReleased = Group + "/released"
)

// Finalizers. See the package docs of internal/finalizer and internal/controller/machine.
const (
	// FinalizerTerminator keeps a MachineDeployment, MachineSet or Machine until the last of its
	// VMs and Nodes is deleted.
	FinalizerTerminator = Group + "/terminator"

	// FinalizerDrain keeps a VM from being deleted until its Node is drained, and a companion until
	// its VM is deleted.
	FinalizerDrain = Group + "/drain"
)

// TaintUninitialized is the taint that a kubelet registers with, with the effect NoSchedule: no pod
// is scheduled to a Node before it has its labels and taints.
const TaintUninitialized = Group + "/uninitialized"

// TaintUninitializedByClusterAPI is the taint that bootstrap providers of Cluster API have a kubelet
// register with, for the same purpose. It is removed together with TaintUninitialized.
const TaintUninitializedByClusterAPI = "node.cluster.x-k8s.io/uninitialized"

// TaintOutdated is put, with the effect PreferNoSchedule, on Nodes of old templates
// during a rollout, and on those that wait for an update in place, so that pods do not
// move twice.
const TaintOutdated = Group + "/outdated-revision"

// TaintPreserved is put, with the effect NoSchedule, on the Node of a Failed Machine that
// is preserved for analysis.
const TaintPreserved = Group + "/preserved"

// TaintCordoned is put, with the effect PreferNoSchedule, on a Node that Drover cordons and
// that stays: a Node without it is never uncordoned. Neither a kubelet nor a Machine's spec
// or status can add it to a Node that is there.
const TaintCordoned = Group + "/cordoned"

// Labels and annotations of a Node by which an update in place is agreed with the
// node's agent.
const (
	// LabelUpdate is set by Drover: UpdateLabelCandidate or UpdateLabelReady.
	LabelUpdate = Group + "/update"
	// UpdateLabelCandidate is a Node that waits to be selected.
	UpdateLabelCandidate = "candidate"
	// UpdateLabelReady is a Node that is drained: the agent may begin.
	UpdateLabelReady = "ready"

	// LabelUpdateTo is set by Drover: the ID of the update that is wanted.
	LabelUpdateTo = Group + "/update-to"
	// AnnotationUpdateVersion is set by Drover: the kubelet version that is wanted.
	AnnotationUpdateVersion = Group + "/update-version"
	// AnnotationUpdateClass is set by Drover: the class that is wanted: the name
	// of a MachineClass, or ClusterMachineClass/ and the name.
	AnnotationUpdateClass = Group + "/update-class"

	// LabelUpdateSelected on a Node, or as an annotation of its Machine, selects it for
	// an update whose orchestration is Manual: for the one whose ID is the value, or
	// for all to come if that is "true".
	LabelUpdateSelected = Group + "/update-selected"

	// LabelUpdatedTo is set by the agent: the ID of the update that it has done.
	LabelUpdatedTo = Group + "/updated-to"
	// LabelUpdateFailed is set by the agent: the ID of the update that failed.
	LabelUpdateFailed = Group + "/update-failed"
	// AnnotationUpdateMessage is set by the agent: why it failed.
	AnnotationUpdateMessage = Group + "/update-message"
)

// SelectsUpdate reports whether the value of LabelUpdateSelected selects the update.
func SelectsUpdate(value, id string) bool { return value == id || value == "true" }

// Names of the resources that a Machine composes, and, where a composed
// resource has a counterpart of the same name, the role they play.
const (
	ResourceVM = "vm"
	// ResourceUserData is the Secret with the user data, which the Machine's controller
	// makes itself: the pipeline observes it, and does not compose it.
	ResourceUserData = "user-data"
	// ResourceBootstrap is the Bootstrap of clusterapi.drover.dev, if a bootstrap provider of
	// Cluster API makes the user data.
	ResourceBootstrap = "bootstrap"
	// ResourceCompanionPrefix has the name of the companion after it.
	ResourceCompanionPrefix = "companion-"
)

// IsInfrastructure reports whether a Machine's resource of that name is its VM or a companion.
func IsInfrastructure(resource string) bool { return resource == ResourceVM || IsCompanion(resource) }

// IsCompanion reports whether a Machine's resource of that name is a companion of its VM.
func IsCompanion(resource string) bool { return strings.HasPrefix(resource, ResourceCompanionPrefix) }

// Names of the resources that an OrphanCollector composes: the inventory of VMs, that of the
// Nodes of orphans, and a VM for each orphan that is deleted, by a hash of its external name.
const (
	ResourceInventory     = "inventory"
	ResourceNodeInventory = "nodes"
	ResourceOrphanPrefix  = "orphan-"
)

// ResourceAnalysisRun is the name of the RolloutAnalysisRun among the resources that a MachineDeployment composes. Its
// MachineSets have their own names, which have no underscore.
const ResourceAnalysisRun = "analysis_run"

// ResourceTurn is the name of the RolloutTurn among the resources that a MachineDeployment composes.
const ResourceTurn = "rollout_turn"

// DefinitionOfInstallation is the name of the CompositeResourceDefinition whose UID is
// the ID of an installation of Drover. It is there as long as Machines can be, and
// everywhere another.
const DefinitionOfInstallation = "orphancollectors." + Group

// The ConfigMap with the record of the installations that a control cluster had: see the
// package installations.
const (
	NamespaceOfInstallations = "crossplane-system"
	ConfigMapOfInstallations = "drover-installations"
)

// ResourceMachines is the MachineGroup that a MachineSet composes.
const ResourceMachines = "machines"

// TagsOfVM are put on every VM, so that it can be found without its Machine.
const (
	// TagInstallation distinguishes the VMs of several control planes at one account.
	TagInstallation = "drover-installation"

	// TagCluster names the configuration of the cluster that the VM joins.
	TagCluster = "drover-cluster"
	// TagNamespace, TagMachine and TagMachineUID are namespace, name and UID of the Machine that the VM
	// was made for.
	TagNamespace  = "drover-namespace"
	TagMachine    = "drover-machine"
	TagMachineUID = "drover-machine-uid"
)
