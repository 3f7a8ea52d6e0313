package v1alpha1

// Reasons of Valid, which are also those of the warnings that report the problem. Ready, Synced
// and their reasons are those of Crossplane.
//
// A Machine that is not valid gets no VM, so that each reason of Valid=False of a Machine is one
// of ReplicaFailure and of Stalled of its MachineSet and its MachineDeployment too.
const (
	// ReasonValid means that nothing that a user wrote keeps the object from its work.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Of: Valid=True, AnnotationsValid=True, HealthValid=True
	ReasonValid = "Valid"
	// ReasonClassNotFound means that the MachineClass or ClusterMachineClass does not exist.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Create the class, or name another one in spec.classRef.
	ReasonClassNotFound = "ClassNotFound"
	// ReasonClusterNotFound means that the configuration of the cluster that Machines join does not exist.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Create the configuration, or name another one in spec.template.spec.clusterRef. If it was deleted by
	//     mistake, create it again: the Machines that exist are kept.
	ReasonClusterNotFound = "ClusterNotFound"
	// ReasonClassNotAllowed means that the ClusterMachineClass does not serve the namespace of the
	// Machine.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Add the namespace to spec.allowedNamespaces of the class, or name another class in
	//     spec.classRef.
	ReasonClassNotAllowed = "ClassNotAllowed"
	// ReasonNodeCapacityKnown means that the cpu and the memory of the Nodes are known from the class.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: ScalesFromZero=True
	ReasonNodeCapacityKnown = "NodeCapacityKnown"
	// ReasonNodeCapacityUnknown means that the class lacks the cpu or the memory of its Nodes. They
	// cannot be derived from its fields for the cloud.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: ScalesFromZero=False
	//   - Do: Create a class with spec.nodeCapacity.capacity, and name it in the template.
	ReasonNodeCapacityUnknown = "NodeCapacityUnknown"
	// ReasonInfrastructureRefInvalid means that the template names a NodeTemplate that is not the
	// object's own.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: ScalesFromZero=False
	//   - Do: Correct the name in spec.template.spec.infrastructureRef, or rename the object.
	ReasonInfrastructureRefInvalid = "InfrastructureRefInvalid"
	// ReasonCompositionNotFound means that no Composition of Machines has the label of the
	// provider of the class.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Install the Composition of the provider, or create a class with another spec.provider and name it: a class is
	//     immutable.
	ReasonCompositionNotFound = "CompositionNotFound"
	// ReasonInstallationUnknown means that Drover's own CompositeResourceDefinitions are missing,
	// whose UID marks its VMs.
	//   - Kinds: Machine, MachineSet, MachineDeployment, OrphanCollector
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True, OrphansFound=Unknown
	//   - Do: Install the Configuration drover.
	ReasonInstallationUnknown = "InstallationUnknown"
	// ReasonRestoredWithoutVM means that the Machine has a spec.providerID, but neither a status nor
	// a VM resource: it was restored from a backup. No other VM is created for it.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Restore the VM resource, or delete the Machine.
	ReasonRestoredWithoutVM = "RestoredWithoutVM"
	// ReasonVMOfAnotherInstallation means that a VM resource that waits for the Machine belongs to
	// another installation of Drover, which may still run the VM.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: If the other control cluster is gone, run the command in the message. It marks the installation as Lost.
	ReasonVMOfAnotherInstallation = "VMOfAnotherInstallation"
	// ReasonVMNotIdentified means that a VM resource that waits for the Machine lacks an annotation
	// that identifies its VM or Node, or that another Machine has that VM.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Correct the annotations of the VM resource that the message names, or delete the resource.
	ReasonVMNotIdentified = "VMNotIdentified"
	// ReasonProviderMismatch means that the class is of another provider than the pipeline.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Select the Composition of the provider of the class.
	ReasonProviderMismatch = "ProviderMismatch"
	// ReasonBindingInvalid means that an expression of the Composition fails.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Correct the expression that the message names.
	ReasonBindingInvalid = "BindingInvalid"
	// ReasonProviderNotInstalled means that the API server does not have the kind of the VM or of a companion: its
	// provider is not installed, or the kind is not activated.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Install the provider by the command in the message, or activate the kind by a ManagedResourceActivationPolicy.
	//     If the kind is not of a package and exists, annotate its CustomResourceDefinition: Crossplane then looks again.
	ReasonProviderNotInstalled = "ProviderNotInstalled"
	// ReasonProviderConfigNotFound means that the configuration of the cloud's provider, which the class names in
	// spec.providerConfigRef, does not exist. It is checked before there is a VM resource.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Create it, or name another one in a class of its own: a class is immutable.
	ReasonProviderConfigNotFound = "ProviderConfigNotFound"
	// ReasonForProviderInvalid means that the fields of the class do not fit the VM resource.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Create a class with the correct fields and name it in classRef: a class is immutable.
	ReasonForProviderInvalid = "ForProviderInvalid"
	// ReasonManagementPoliciesDisabled means that the provider of the VM resource runs without
	// management policies, by which Drover keeps it from changing a VM.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Start the provider with --enable-management-policies, by a DeploymentRuntimeConfig.
	ReasonManagementPoliciesDisabled = "ManagementPoliciesDisabled"
	// ReasonUserDataInvalid means that no user data can be made from the class and the Secret that
	// it names.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Create a class with the correct fields and name it in classRef, or correct the Secret that the message
	//     names: a class is immutable.
	ReasonUserDataInvalid = "UserDataInvalid"
	// ReasonUserDataNotFound means that the Secret that spec.userData of the class names does not
	// exist, or lacks the key.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Create the Secret, or add the key. Drover looks again within 15 seconds.
	ReasonUserDataNotFound = "UserDataNotFound"
	// ReasonUserDataNotAllowed means that the Secret that spec.userData of the class names lacks
	// the label machine.drover.dev/user-data, or has another value than the kind of the class needs.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: If the Secret is meant to be brought onto VMs, label it. Drover looks again within
	//     15 seconds.
	ReasonUserDataNotAllowed = "UserDataNotAllowed"
	// ReasonBootstrapTemplateInvalid means that no BootstrapConfig of Cluster API can be created: the template that
	// spec.userData of the class names does not exist, is not allowed, has a wrong field, or is of a kind without a
	// contract of Cluster API.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Create or correct the object that the message names. Drover looks again within 30 seconds.
	ReasonBootstrapTemplateInvalid = "BootstrapTemplateInvalid"
	// ReasonBootstrapConfigFailed means that a bootstrap provider of Cluster API cannot make the user data of a Machine.
	// The message has its words.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Correct the template that the message names, or what its provider lacks. Delete the Machine if its BootstrapConfig
	//     was made from a wrong template: the next one is made from the corrected template.
	ReasonBootstrapConfigFailed = "BootstrapConfigFailed"
	// ReasonProfileNotFound means that the OperatingSystemProfile of the class does not exist.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Create the profile, or use a class that names a built-in one.
	ReasonProfileNotFound = "ProfileNotFound"
	// ReasonUserDataTooLarge means that the user data is larger than the cloud takes.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True
	//   - Do: Shorten or remove the files that the message names.
	ReasonUserDataTooLarge = "UserDataTooLarge"
	// ReasonVersionSkew means that the API server of the target cluster does not support the kubelet
	// version: the kubelet is newer, or more than three minor versions older. The message has both
	// versions.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Valid=False, ReplicaFailure=True, Stalled=True
	//   - Do: Change spec.version, or upgrade the API server.
	ReasonVersionSkew = "VersionSkew"
	// ReasonNotOffered means that the platform does not offer a value that the pool requests.
	//   - Kinds: NodePool
	//   - Of: Valid=False, Stalled=True
	//   - Do: Correct the field that the message names. The offer is in the Composition of the pool.
	ReasonNotOffered = "NotOffered"
	// ReasonInvalidStrategy means that spec.strategy has a number that is not allowed.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Correct the field that the message names.
	ReasonInvalidStrategy = "InvalidStrategy"
	// ReasonInvalidWindow means that spec.rollout.windows or blackouts have a value that is not allowed: a
	// schedule that never comes, an unknown time zone, or blackouts that leave no time.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Correct the field that the message names. Meanwhile no healthy Machine is replaced.
	ReasonInvalidWindow = "InvalidWindow"
	// ReasonInvalidMaxAge means that spec.rollout.maxAge is too short: Machines would be due before they are
	// available.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Correct the field that the message names. Meanwhile no healthy Machine is replaced.
	ReasonInvalidMaxAge = "InvalidMaxAge"
	// ReasonCannotUpdateInPlace means that the template cannot be reached by updates in place, and
	// spec.strategy.inPlaceUpdate.fallback is Never. No Machine is replaced or updated.
	//   - Kinds: MachineDeployment
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Revert the field that the message names. To replace the Machines, set spec.strategy.inPlaceUpdate.fallback to Replace.
	ReasonCannotUpdateInPlace = "CannotUpdateInPlace"
	// ReasonAnalysisNotFound means that a step of spec.strategy.rollingUpdate.steps names a RolloutAnalysis that does not
	// exist in the namespace.
	//   - Kinds: MachineDeployment
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Create the RolloutAnalysis, or name one that the message lists. Meanwhile no healthy Machine is replaced.
	ReasonAnalysisNotFound = "AnalysisNotFound"
	// ReasonAnalysisInvalid means that a RolloutAnalysis that a step names cannot be carried out: its condition is no
	// expression of CEL, or its Secret is missing or of another type.
	//   - Kinds: MachineDeployment
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Correct the field of the RolloutAnalysis that the message names. Meanwhile no healthy Machine is replaced.
	ReasonAnalysisInvalid = "AnalysisInvalid"
	// ReasonRevisionNotFound means that spec.rollbackTo names a revision that is not kept.
	//   - Kinds: MachineDeployment
	//   - Of: Valid=False, Progressing=False, Stalled=True
	//   - Do: Name a revision that status.revisions has.
	ReasonRevisionNotFound = "RevisionNotFound"
)

// Reasons of ReplicaFailure that come from other conditions of a Machine than Valid.
const (
	// ReasonReconcileError means that the object cannot be reconciled or, as the reason of ReplicaFailure and Stalled, that an
	// error has kept a Machine from being reconciled for a minute, before its Node has joined. The message has the error.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: ReplicaFailure=True, Stalled=True
	//   - Do: Correct what the message names: install the Function, grant the right, or correct the Composition in
	//     spec.crossplane, the credentials, or the class of new Machines.
	ReasonReconcileError = "ReconcileError"
)

// Reasons of InfrastructureReady. VMFailed, VMLost and CreateResultUnknown are failures of
// Machines (FailureReason), and the codes of the provider's errors are reasons too (ErrorCode).
const (
	// ReasonWaiting means that the Machine waits for something before its VM is created. The
	// message names it.
	//   - Kinds: Machine
	//   - Of: InfrastructureReady=False
	ReasonWaiting = "Waiting"
	// ReasonVMCreating means that the provider creates the VM.
	//   - Kinds: Machine
	//   - Of: InfrastructureReady=False
	ReasonVMCreating = "VMCreating"
	// ReasonProviderIDEmpty means that the VM resource is Ready, and the expression status.providerID of the step
	// infrastructure yields nothing. A path behind ".?" that the resource does not have yields nothing, too.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: InfrastructureReady=False (Machine), ReplicaFailure=True, Stalled=True
	//   - Do: If it lasts, compare the expression in the Machine's Composition with the status of the VM resource, and
	//     correct it.
	ReasonProviderIDEmpty = "ProviderIDEmpty"
	// ReasonVMNotRunning means that the VM of a Machine that has joined does not run.
	//   - Kinds: Machine
	//   - Of: InfrastructureReady=False
	//   - Do: Find out at the cloud why the VM stopped.
	ReasonVMNotRunning = "VMNotRunning"
	// ReasonVMRunning means that the VM runs. An event with the reason reports the first time.
	//   - Kinds: Machine
	//   - Of: InfrastructureReady=True
	ReasonVMRunning = "VMRunning"
)

// Reasons of NodeReady, NodeHealthy and NodeIdentified.
const (
	// ReasonNodeNotJoined means that the Node has not joined the target cluster yet.
	//   - Kinds: Machine
	//   - Of: NodeReady=False
	//   - Do: If it lasts, read the console of the VM.
	ReasonNodeNotJoined = "NodeNotJoined"
	// ReasonBootstrapFailing means that a step of drover-bootstrap failed on the VM, which tries it
	// again. The message has the step, its exit code and the end of its output, as the VM's
	// console shows them. An event with the reason reports the first time.
	//   - Kinds: Machine
	//   - Of: NodeReady=False
	//   - Do: Correct the prerequisites of the step, such as the mirror, or the step in its OperatingSystemProfile.
	ReasonBootstrapFailing = "BootstrapFailing"
	// ReasonUserDataRefused means that cloud-init or Ignition reports on the VM's console that it
	// cannot read or apply the user data. The message has its report. An event with the reason
	// reports the first time.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: NodeReady=False (Machine), ReplicaFailure=True, Stalled=True
	//   - Do: Create a class with the correct user data, or with an image that reads its format, and name it: a class is
	//     immutable.
	ReasonUserDataRefused = "UserDataRefused"
	// ReasonNodeStarting means that the Node has joined and is not Ready for the first time yet,
	// or has a startup taint.
	//   - Kinds: Machine
	//   - Of: NodeReady=False
	ReasonNodeStarting = "NodeStarting"
	// ReasonNodeReady means that the Node is Ready. An event with the reason reports the first
	// time.
	//   - Kinds: Machine
	//   - Of: NodeReady=True
	ReasonNodeReady = "NodeReady"
	// ReasonNodeNotReady means that the kubelet reports that the Node is not Ready.
	//   - Kinds: Machine
	//   - Of: NodeReady=False
	//   - Do: Read the conditions of the Node.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNodeUnknown means that the kubelet has stopped to report.
	//   - Kinds: Machine
	//   - Of: NodeReady=Unknown
	//   - Do: Check the VM and its network.
	ReasonNodeUnknown = "NodeUnknown"
	// ReasonNodeGone means that the Node was deleted from the target cluster, although its Machine was not.
	//   - Kinds: Machine
	//   - Of: NodeReady=Unknown, NodeHealthy=False
	//   - Do: Find out which client deleted the Node. To keep the VM, restart its kubelet, which registers the Node again;
	//     otherwise the Machine is Failed, and its set replaces it.
	ReasonNodeGone = "NodeGone"
	// ReasonNodeNotObserved means that the Node cannot be observed.
	//   - Kinds: Machine
	//   - Of: NodeReady=Unknown
	//   - Do: Check the condition Reachable of the configuration of the target cluster.
	ReasonNodeNotObserved = "NodeNotObserved"
	// ReasonNodeHealthy means that the Node is healthy again.
	//   - Kinds: Machine
	//   - Of: NodeHealthy=True
	ReasonNodeHealthy = "NodeHealthy"
	// ReasonNodeConditionReported means that the Node has a condition whose action in spec.health.conditions is Report.
	// It counts as healthy.
	//   - Kinds: Machine
	//   - Of: NodeHealthy=True
	//   - Do: Read the condition of the Node, and repair what causes it.
	ReasonNodeConditionReported = "NodeConditionReported"
	// ReasonNodeUnhealthy means that a condition of spec.health.conditions applies to the Node, or
	// that it is not Ready.
	//   - Kinds: Machine
	//   - Of: NodeHealthy=False
	//   - Do: Repair the Node, or let the Machine be replaced.
	ReasonNodeUnhealthy = "NodeUnhealthy"
	// ReasonNodeProven means that the Node of the Machine is proven, and no other Node claims to
	// be it.
	//   - Kinds: Machine
	//   - Of: NodeIdentified=True
	ReasonNodeProven = "NodeProven"
	// ReasonNodeContested means that other Nodes claim the join token or the provider ID of the
	// Machine. A warning with the reason reports it.
	//   - Kinds: Machine
	//   - Of: NodeIdentified=False
	//   - Do: Find out how those Nodes registered.
	ReasonNodeContested = "NodeContested"
	// ReasonNodeUnproven means that a Node has the name of the Machine's Node, and nothing else proves
	// that it is that Node. A warning with the reason reports it.
	//   - Kinds: Machine
	//   - Of: NodeIdentified=False
	//   - Do: Let the kubelet register with the label cluster.drover.dev/join-token or, with user
	//     data of your own, with the providerID of the VM.
	ReasonNodeUnproven = "NodeUnproven"
	// ReasonNodeAmbiguous means that several Nodes fit the Machine.
	//   - Kinds: Machine
	//   - Of: NodeIdentified=False
	//   - Do: Delete the Nodes that are not the Machine's.
	ReasonNodeAmbiguous = "NodeAmbiguous"
)

// Reasons of UserDataComplete, which are also those of events.
const (
	// ReasonTokenPlaceholderMissing means that the Secret with user data has no placeholder for
	// the join token. A warning with the reason reports it.
	//   - Kinds: Machine
	//   - Of: UserDataComplete=False
	//   - Do: Add a placeholder such as <<BOOTSTRAP_TOKEN>> to the key that the message names.
	ReasonTokenPlaceholderMissing = "TokenPlaceholderMissing"
	// ReasonPlaceholdersFilled means that the join token was filled in.
	//   - Kinds: Machine
	//   - Of: UserDataComplete=True
	ReasonPlaceholdersFilled = "PlaceholdersFilled"
)

// Reasons of Updated. Those that begin with Update and name a state are those of a Machine, and
// of its events.
const (
	// ReasonUpToDate means that the Machine, or each Machine of the set, has the version of the
	// template.
	//   - Kinds: Machine, MachineSet
	//   - Of: Updated=True
	ReasonUpToDate = "UpToDate"
	// ReasonUpdating means that Machines of the set are not updated yet.
	//   - Kinds: MachineSet
	//   - Of: Updated=False
	ReasonUpdating = "Updating"
	// ReasonUpdateCandidate means that the Machine waits to be selected for the update.
	//   - Kinds: Machine
	//   - Of: Updated=False
	//   - Do: With the orchestration Manual, select it by its annotation.
	ReasonUpdateCandidate = "UpdateCandidate"
	// ReasonUpdateDraining means that the Node is drained for the update.
	//   - Kinds: Machine
	//   - Of: Updated=False
	ReasonUpdateDraining = "UpdateDraining"
	// ReasonUpdateUpdating means that the agent of the Node carries out the update.
	//   - Kinds: Machine
	//   - Of: Updated=False
	ReasonUpdateUpdating = "UpdateUpdating"
	// ReasonUpdateSucceeded means that the agent reports success, and the Machine is not Ready
	// again yet.
	//   - Kinds: Machine
	//   - Of: Updated=False
	ReasonUpdateSucceeded = "UpdateSucceeded"
	// ReasonUpdateFailed means that the agents of Nodes report failed updates.
	//   - Kinds: Machine, MachineSet, MachineDeployment
	//   - Of: Updated=False, Stalled=True
	//   - Do: Repair the Node and set the annotation machine.drover.dev/update-retry of the
	//     Machine to a new value.
	ReasonUpdateFailed = "UpdateFailed"
)

// Reasons of Rebooted. Those that begin with Reboot and name a state are also those of events of the Machine.
const (
	// ReasonRebootWaiting means that a requested reboot has not begun. The message has the cause.
	//   - Kinds: Machine
	//   - Of: Rebooted=False
	ReasonRebootWaiting = "RebootWaiting"
	// ReasonRebootDraining means that the Node is drained for a reboot.
	//   - Kinds: Machine
	//   - Of: Rebooted=False
	ReasonRebootDraining = "RebootDraining"
	// ReasonRebooting means that the reboot was requested from the provider of the VM, and that the Node has not
	// proven it yet: it must report another boot ID, and be healthy.
	//   - Kinds: Machine
	//   - Of: Rebooted=False
	ReasonRebooting = "Rebooting"
	// ReasonRebootFailed means that the last reboot was refused, or that the Node did not prove it in time.
	//   - Kinds: Machine
	//   - Of: Rebooted=False
	//   - Do: Read the message. Replace the Machine with kubectl drover replace, or request another reboot.
	ReasonRebootFailed = "RebootFailed"
	// ReasonRebooted means that the Node proved the last reboot: it reported another boot ID, and was healthy.
	//   - Kinds: Machine
	//   - Of: Rebooted=True
	ReasonRebooted = "Rebooted"
	// ReasonRebootAccepted means that the cloud accepted the request that the message names. It proves no reboot.
	//   - Kinds: VirtualMachine
	//   - Of: Rebooted=True
	ReasonRebootAccepted = "RebootAccepted"
	// ReasonRebootRefused means that the cloud refused the request that the message names, or that it is unknown
	// whether it accepted it. The request is not repeated.
	//   - Kinds: VirtualMachine
	//   - Of: Rebooted=False
	//   - Do: Read the message. The Machine requests a hard reboot after a soft one that was refused.
	ReasonRebootRefused = "RebootRefused"
	// ReasonRebootDelayed means that the cloud cannot carry out now the request that the message names, for a cause that
	// passes, such as another task of the VM. The provider repeats the request.
	//   - Kinds: VirtualMachine
	//   - Of: Rebooted=Unknown
	ReasonRebootDelayed = "RebootDelayed"
)

// Reasons of Preserved, AnnotationsValid and HealthValid.
const (
	// ReasonPreserved means that the Machine is preserved.
	//   - Kinds: Machine
	//   - Of: Preserved=True
	ReasonPreserved = "Preserved"
	// ReasonNotPreserved means that the annotation that preserved the Machine was removed, or that
	// it recovered.
	//   - Kinds: Machine
	//   - Of: Preserved=False
	ReasonNotPreserved = "NotPreserved"
	// ReasonPreservationExpired means that the Machine was preserved for as long as it may be.
	//   - Kinds: Machine
	//   - Of: Preserved=False
	ReasonPreservationExpired = "PreservationExpired"
	// ReasonAnnotationInvalid means that an annotation has a value that Drover or Crossplane ignores, or is
	// on an object of a kind that it has no effect on.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Of: AnnotationsValid=False
	//   - Do: Correct the annotation that the message names, or move it to the object that it is meant for.
	ReasonAnnotationInvalid = "AnnotationInvalid"
	// ReasonHealthProfileNotFound means that a profile of spec.health.profiles does not exist. The Nodes are judged by the
	// other profiles and conditions.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Of: HealthValid=False
	//   - Do: Create the HealthProfile that the message names, or name a built-in one.
	ReasonHealthProfileNotFound = "HealthProfileNotFound"
	// ReasonDevicesNotNamed means that spec.health judges the devices of Nodes, and the class names none: DevicesMissing has no
	// effect.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: HealthValid=False
	//   - Do: Create a class whose spec.nodeCapacity.capacity names the devices, such as nvidia.com/gpu, and name it in the template.
	ReasonDevicesNotNamed = "DevicesNotNamed"
	// ReasonRebootNotSupported means that the provider of the Machines cannot reboot VMs: conditions with the action Reboot lead
	// to a replacement at once.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: HealthValid=False
	//   - Do: To end the report, set the action Replace for the conditions that the message names.
	ReasonRebootNotSupported = "RebootNotSupported"
	// ReasonRebootTimeoutShort means that spec.health.reboot.timeout is shorter than a Machine took from its running VM to its
	// Ready Node. Its reboots have as long as that, one hour at most.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: HealthValid=False
	//   - Do: To end the report, set spec.health.reboot.timeout to more than the time that the message names.
	ReasonRebootTimeoutShort = "RebootTimeoutShort"
)

// Reasons of ReplicaFailure, CapacityExhausted and SelectorExclusive. The codes of the provider's
// errors (ErrorCode) and failures of Machines (FailureReason) are reasons too.
const (
	// ReasonNoFailure means that no creation fails.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: ReplicaFailure=False
	ReasonNoFailure = "NoFailure"
	// ReasonMachinesNotApplied means that the API server refuses a Machine or its status.
	//   - Kinds: MachineSet
	//   - Of: ReplicaFailure=True
	//   - Do: Correct the cause that the message names: a quota, an admission policy or the template.
	ReasonMachinesNotApplied = "MachinesNotApplied"
	// ReasonRoomAvailable means that no failure domain is exhausted.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: CapacityExhausted=False
	ReasonRoomAvailable = "RoomAvailable"
	// ReasonExclusive means that the set controls all Machines that match its selector.
	//   - Kinds: MachineSet
	//   - Of: SelectorExclusive=True
	ReasonExclusive = "Exclusive"
	// ReasonControlledByOthers means that Machines that match the selector have another
	// controller.
	//   - Kinds: MachineSet
	//   - Of: SelectorExclusive=False
	//   - Do: Change the selector, or the labels of the Machines.
	ReasonControlledByOthers = "ControlledByOthers"
)

// Reasons of RemediationAllowed.
const (
	// ReasonRemediationAllowed means that Machines are replaced again. An event with the reason
	// reports that a refusal has ended.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: RemediationAllowed=True
	ReasonRemediationAllowed = "RemediationAllowed"
	// ReasonInvalidRemediation means that spec.remediation has a value that is not allowed.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: RemediationAllowed=False, Stalled=True
	//   - Do: Correct the field that the message names.
	ReasonInvalidRemediation = "InvalidRemediation"
	// ReasonTooManyUnhealthy means that more Machines are unhealthy than
	// spec.remediation.maxUnhealthy.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: RemediationAllowed=False, Stalled=True
	//   - Do: Find the common cause, such as a network or an image. To replace them nevertheless,
	//     raise maxUnhealthy.
	ReasonTooManyUnhealthy = "TooManyUnhealthy"
	// ReasonNoBudget means that spec.remediation.maxInFlight is 0.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: RemediationAllowed=False, Stalled=True
	//   - Do: Raise maxInFlight.
	ReasonNoBudget = "NoBudget"
	// ReasonWaitingForMachines means that as many Machines are starting as
	// spec.remediation.maxInFlight.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: RemediationAllowed=False
	//   - Do: Find out why a starting Machine takes long. To replace sooner, delete a Machine that
	//     does not start, or raise maxInFlight.
	ReasonWaitingForMachines = "WaitingForMachines"
)

// Reasons of Frozen, which are also those of the events that report a change.
const (
	// ReasonNotFrozen means that nothing is held.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=False
	ReasonNotFrozen = "NotFrozen"
	// ReasonManualFreeze means that the label machine.drover.dev/freeze is "true".
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=True, Stalled=True
	//   - Do: To let Machines be created and replaced, remove the label.
	ReasonManualFreeze = "ManualFreeze"
	// ReasonDeploymentFrozen means that the MachineDeployment of the set is frozen.
	//   - Kinds: MachineSet
	//   - Of: Frozen=True
	//   - Do: Read the condition Frozen of the MachineDeployment.
	ReasonDeploymentFrozen = "DeploymentFrozen"
	// ReasonTargetUnreachable means that the target cluster does not answer: a new Machine could
	// not join.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=True
	//   - Do: Check the condition Reachable of the configuration of the target cluster.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonInjectedIdentityNotAllowed means that the configuration of the target cluster has the
	// source InjectedIdentity, and the flag --injected-identity-for of provider-drover does not
	// name it.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=True
	//   - Do: If Machines may join the control cluster, name the configuration in the flag.
	ReasonInjectedIdentityNotAllowed = "InjectedIdentityNotAllowed"
	// ReasonOvershoot means that more Machines exist than the spec allows.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=True
	//   - Do: It ends when the Machines are deleted. Find out which of them hang.
	ReasonOvershoot = "Overshoot"
	// ReasonFreezeOverridden means that the label machine.drover.dev/freeze is "false", which ends
	// a freeze that would hold otherwise.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=False
	//   - Do: When the cause is gone, remove the label.
	ReasonFreezeOverridden = "FreezeOverridden"
	// ReasonFreezeLabelInvalid means that the label machine.drover.dev/freeze has a value that is
	// ignored.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Frozen=False
	//   - Do: Set the label to "true" or "false", or remove it.
	ReasonFreezeLabelInvalid = "FreezeLabelInvalid"
)

// Reasons of Available and Progressing.
const (
	// ReasonMinimumReplicasAvailable means that as many Machines are available as the strategy
	// promises.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Available=True
	ReasonMinimumReplicasAvailable = "MinimumReplicasAvailable"
	// ReasonMinimumReplicasUnavailable means that fewer Machines are available than the strategy
	// promises.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Available=False
	//   - Do: Read the conditions of the Machines that are not available.
	ReasonMinimumReplicasUnavailable = "MinimumReplicasUnavailable"
	// ReasonNewMachineSetAvailable means that all Machines are of the current revision.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True
	ReasonNewMachineSetAvailable = "NewMachineSetAvailable"
	// ReasonMachineSetCreated means that the set of the revision was created.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True
	ReasonMachineSetCreated = "MachineSetCreated"
	// ReasonMachineSetUpdated means that the rollout proceeds.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True
	ReasonMachineSetUpdated = "MachineSetUpdated"
	// ReasonMachineDeploymentPaused means that spec.paused is true, or that the annotation
	// cluster.x-k8s.io/paused is set. An event with the reason reports the begin.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=Unknown
	//   - Do: To let the rollout proceed, set spec.paused to false, or remove the annotation if the message names it.
	ReasonMachineDeploymentPaused = "MachineDeploymentPaused"
	// ReasonProgressDeadlineExceeded means that the rollout made no progress for
	// spec.progressDeadlineSeconds. It continues nevertheless. A warning with the reason reports
	// it.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=False, Stalled=True
	//   - Do: Read ReplicaFailure and the conditions of the new Machines.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonSoaking means that all Machines of a step are available, and that they must be for some time
	// before the next step.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True, Reconciling=True
	ReasonSoaking = "Soaking"
	// ReasonAnalyzing means that all Machines of a step are available, and its analyses have no verdict yet. Before the first
	// step it means that provider-drover has not looked for the analyses yet.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True, Reconciling=True
	ReasonAnalyzing = "Analyzing"
	// ReasonAnalysisInconclusive means that an analysis of a step has no verdict after its timeout. The rollout is held, and the
	// analysis continues. A warning with the reason reports the begin.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=False, Stalled=True, Reconciling=False
	//   - Do: The message has what could not be measured. Correct that, or run kubectl drover rollout abort.
	ReasonAnalysisInconclusive = "AnalysisInconclusive"
	// ReasonAnalysisFailed means that an analysis of a step failed. The rollout is held, or its template is rejected if
	// spec.rollout.onFailure is Rollback. A warning with the reason reports it.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=False, Stalled=True, Reconciling=False
	//   - Do: The message has the numbers. Correct the template, or run kubectl drover rollout abort or kubectl drover rollout retry.
	ReasonAnalysisFailed = "AnalysisFailed"
	// ReasonAwaitingApproval means that a step waits for the approval of a user. An event with the
	// reason reports the begin.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Progressing=Unknown, Reconciling=False
	//   - Do: Look at the new Machines, and approve the step by kubectl drover rollout approve, or run kubectl drover rollout abort.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonOutsideWindow means that the rollout waits for one of spec.rollout.windows, or for the end of
	// a blackout. An event with the reason reports the begin.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Progressing=Unknown, Reconciling=False
	ReasonOutsideWindow = "OutsideWindow"
	// ReasonRolloutHeld means that the annotation machine.drover.dev/rollout-hold holds the rollout. An
	// event with the reason reports the begin.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Progressing=Unknown, Reconciling=False
	//   - Do: To let the rollout continue, run kubectl drover rollout hold --undo.
	ReasonRolloutHeld = "RolloutHeld"
	// ReasonGateHolds means that a step of the user's own in the pipeline holds the rollout. An event with
	// the reason reports the begin.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Progressing=Unknown, Reconciling=False
	//   - Do: The message has the cause in the words of that step.
	ReasonGateHolds = "GateHolds"
	// ReasonAwaitingTurn means that provider-drover has not asked the RolloutPolicies yet whether the rollout may begin. Each
	// rollout waits for the answer while there is a RolloutPolicy, usually for less than a second.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=True, Reconciling=True
	ReasonAwaitingTurn = "AwaitingTurn"
	// ReasonAwaitingWave means that a RolloutPolicy of the platform team holds the rollout until the waves before it are complete
	// and have soaked, or that provider-drover has not asked the policies for ten minutes. An event with the reason reports the begin.
	//   - Kinds: MachineDeployment, NodePool
	//   - Of: Progressing=Unknown, Reconciling=False
	//   - Do: The message names the policy, the wave that it waits for, and until when. Who may change the RolloutPolicy can let the wave pass, by kubectl drover rollout pass.
	ReasonAwaitingWave = "AwaitingWave"
	// ReasonRolloutRejected means that the template in the spec was rejected: a user aborted its rollout,
	// or it exceeded its deadline or failed an analysis with onFailure Rollback. The last revision that was complete is rolled
	// out instead. A warning with the reason reports it.
	//   - Kinds: MachineDeployment
	//   - Of: Progressing=False, Stalled=True, Reconciling=False
	//   - Do: Correct the template, or run kubectl drover rollout retry to roll it out again.
	ReasonRolloutRejected = "RolloutRejected"
)

// Reasons of Reconciling and Stalled. Reconciling also has the reasons of Progressing and of
// Stalled.
const (
	// ReasonScaling means that Machines are created or deleted.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	ReasonScaling = "Scaling"
	// ReasonSettled means that the object matches its spec.
	//   - Kinds: MachineSet, NodePool
	//   - Of: Reconciling=False
	ReasonSettled = "Settled"
	// ReasonFrozen means that Machines would be created or replaced without the freeze.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Reconciling=False, Progressing=False
	//   - Do: Read the condition Frozen.
	ReasonFrozen = "Frozen"
	// ReasonRollingOut means that Machines are replaced by those of another class or version.
	//   - Kinds: NodePool
	//   - Of: Reconciling=True
	ReasonRollingOut = "RollingOut"
	// ReasonRebalancing means that a number of Machines moves from one failure domain to another.
	// An event with the reason reports each step.
	//   - Kinds: NodePool
	//   - Of: Reconciling=True
	ReasonRebalancing = "Rebalancing"
	// ReasonNodePoolPaused means that spec.paused is true, and that Machines would be replaced
	// without it.
	//   - Kinds: NodePool
	//   - Of: Reconciling=False
	//   - Do: To go on, set spec.paused to false.
	ReasonNodePoolPaused = "NodePoolPaused"
	// ReasonMachineDeploymentFailing means that a MachineDeployment of the pool has the condition
	// ReplicaFailure. The message has its reason and message.
	//   - Kinds: NodePool
	//   - Of: ReplicaFailure=True
	//   - Do: Read the message. If Stalled is True too, a user must act.
	ReasonMachineDeploymentFailing = "MachineDeploymentFailing"
	// ReasonMachineDeploymentStalled means that a MachineDeployment of the pool is Stalled. The
	// message has its reason and message.
	//   - Kinds: NodePool
	//   - Of: Stalled=True
	//   - Do: Follow the message.
	ReasonMachineDeploymentStalled = "MachineDeploymentStalled"
	// ReasonNotStalled means that no user has to act.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Stalled=False
	ReasonNotStalled = "NotStalled"
	// ReasonDeleting means that the object and its Machines, or orphans, are being deleted and
	// nothing holds the deletion.
	//   - Kinds: MachineSet, MachineDeployment, NodePool, OrphanCollector
	//   - Of: Reconciling=True, Available=False, OrphansFound=True
	ReasonDeleting = "Deleting"
	// ReasonDeletionHeld means that the garbage collector deleted the object, because the
	// NodePool or MachineDeployment that composed it no longer exists, and no user requested the deletion.
	// Its Machines are kept. A warning with the reason reports it.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Of: Reconciling=False, Stalled=True, Available=True, Available=False
	//   - Do: Set the annotation drover.dev/confirm-deletion=true to delete the Machines.
	ReasonDeletionHeld = "DeletionHeld"
	// ReasonDrainBlocked means that pods stay on a Node of a Machine that is being deleted. The
	// message names them and their budgets.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	//   - Do: Let the pods be evicted, or set the annotation that the message names.
	ReasonDrainBlocked = "DrainBlocked"
	// ReasonEvictionRefused means that the target cluster refuses to evict pods of a Machine that is being deleted, by an
	// admission webhook or policy or by a missing right, and not by a budget. The message names it.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	//   - Do: Correct what refuses the evictions in the target cluster, or set the annotation that the message names.
	ReasonEvictionRefused = "EvictionRefused"
	// ReasonWaitingForFinalizers means that finalizers of other controllers hold a Machine that is being
	// deleted, its Node, its VM resource or a companion, or the object itself when all of its Machines are gone. The
	// message names them.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	//   - Do: Let the controller that owns the finalizer remove it. If that controller is gone, remove the finalizer by hand.
	ReasonWaitingForFinalizers = "WaitingForFinalizers"
	// ReasonDeletionPaused means that the annotation crossplane.io/paused holds a Machine that is being
	// deleted.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	//   - Do: Remove the annotation crossplane.io/paused of the Machine that the message names.
	ReasonDeletionPaused = "DeletionPaused"
	// ReasonWaitingForHooks means that hooks hold a Machine that is being deleted.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=True
	//   - Do: Let the owner of the hook remove it.
	ReasonWaitingForHooks = "WaitingForHooks"
	// ReasonVMNotDeleted means that the provider has not deleted a VM for ten minutes.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Of: Reconciling=False, Stalled=True
	//   - Do: Read the events of the VM resource.
	ReasonVMNotDeleted = "VMNotDeleted"
)

// Reasons of Applied of a MachineGroup.
const (
	// ReasonApplied means that all Machines are written.
	//   - Kinds: MachineGroup
	//   - Of: Applied=True
	ReasonApplied = "Applied"
	// ReasonNotApplied means that the API server refuses a Machine.
	//   - Kinds: MachineGroup
	//   - Of: Applied=False
	//   - Do: Correct the cause that the message names.
	ReasonNotApplied = "NotApplied"
)

// Reasons of OrphansFound.
const (
	// ReasonNoOrphans means that each VM has a Machine.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=False
	ReasonNoOrphans = "NoOrphans"
	// ReasonReported means that orphans exist and the policy is Report.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=True
	//   - Do: Check the VMs. With the policy Delete, Drover deletes them.
	ReasonReported = "Reported"
	// ReasonTooManyOrphans means that more orphans exist than may be deleted without confirmation.
	// A warning with the reason reports it.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=True
	//   - Do: If the VMs are of no use, name them in spec.confirmedOrphans.
	ReasonTooManyOrphans = "TooManyOrphans"
	// ReasonInstallationNotGone means that the orphans belong to an installation that is not
	// proven to be gone.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=True
	//   - Do: Confirm them in spec.confirmedOrphans if their installation is gone.
	ReasonInstallationNotGone = "InstallationNotGone"
	// ReasonOrphansInUse means that no orphan is deleted: their Nodes are Ready, or it is not
	// known whether they are.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=True
	//   - Do: Read status.virtualMachines. If a VM is of no use, drain and delete its Node.
	ReasonOrphansInUse = "OrphansInUse"
	// ReasonNodesPending means that no orphan is deleted yet: the Nodes of the orphans are being
	// looked for.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=True
	ReasonNodesPending = "NodesPending"
	// ReasonInventoryUnavailable means that the cloud or the claims cannot be read. A warning with
	// the reason reports it.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=Unknown
	//   - Do: Read the message and the conditions of the VirtualMachineInventory.
	ReasonInventoryUnavailable = "InventoryUnavailable"
	// ReasonInventoryPending means that the cloud was not read yet.
	//   - Kinds: OrphanCollector
	//   - Of: OrphansFound=Unknown
	ReasonInventoryPending = "InventoryPending"
)

// Reasons of several conditions.
const (
	// ReasonFatalResult means that a step of the pipeline failed before it set the condition. A
	// warning with the reason has the error.
	//   - Kinds: Machine
	//   - Of: Unknown
	//   - Do: Read the error, and correct the step or its input.
	ReasonFatalResult = "FatalResult"
	// ReasonNotDecodable means that the object is stored with a field that Drover cannot decode, such as a
	// duration that is too long. The object is older than the schema that refuses the field. Nothing of
	// the object is changed, and it can be deleted. The message names the field and its value. Objects
	// of all kinds have a warning with the reason.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool, OrphanCollector
	//   - Of: Valid=False, ReplicaFailure=True, Progressing=False, Stalled=True, OrphansFound=Unknown
	//   - Do: Correct the field that the message names, or delete the object.
	ReasonNotDecodable = "NotDecodable"
	// ReasonUnspecified means that a step of the pipeline set a condition without a reason.
	//   - Kinds: Machine
	//   - Of: any
	//   - Do: Set a reason in the step.
	ReasonUnspecified = "Unspecified"
)

// Reasons of conditions of VirtualMachines and of CertificateSigningRequests.
const (
	// ReasonMissing means that the VM existed and does not exist any more. A VM is never created
	// again under the same name.
	//   - Kinds: VirtualMachine
	//   - Of: Ready=False
	ReasonMissing = "Missing"
	// ReasonOngoing means that a provider of upjet calls the cloud for the resource now.
	//   - Kinds: VirtualMachine
	//   - Of: AsyncOperation=False
	ReasonOngoing = "Ongoing"
	// ReasonDroverMachine means that the kubelet of a Machine requests a certificate that it may
	// have.
	//   - Kinds: CertificateSigningRequest
	//   - Of: Approved=True
	ReasonDroverMachine = "DroverMachine"
	// ReasonNotOfDroverMachine means that the request names a Machine and exceeds the rights of
	// that Machine.
	//   - Kinds: CertificateSigningRequest
	//   - Of: Denied=True
	//   - Do: Find out which client made the request.
	ReasonNotOfDroverMachine = "NotOfDroverMachine"
)

// Reasons of the events of Machines. A reason of a condition is also the reason of an event if its
// comment mentions the event.
const (
	// EventReconcileError reports an error that keeps a Machine from being reconciled. It is
	// retried.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Correct what the message names: install the Function, grant the right, or correct the Composition.
	EventReconcileError = "ReconcileError"
	// EventComposeResources reports a result of a step of the pipeline that has no reason of its
	// own.
	//   - Kinds: Machine
	//   - Type: Normal or Warning
	EventComposeResources = "ComposeResources"
	// EventInstanceTypeRefused reports that the cloud has no capacity or no quota for an instance type of the class, and
	// which one is tried next.
	//   - Kinds: Machine
	//   - Type: Warning
	EventInstanceTypeRefused = "InstanceTypeRefused"
	// EventVMRequested reports that Drover requested the VM from the provider.
	//   - Kinds: Machine
	//   - Type: Normal
	EventVMRequested = "VMRequested"
	// EventNodeJoined reports that the Node has joined the target cluster.
	//   - Kinds: Machine
	//   - Type: Normal
	EventNodeJoined = "NodeJoined"
	// EventReplaceRequested reports that an annotation requests another Machine in place of this
	// one.
	//   - Kinds: Machine
	//   - Type: Normal
	EventReplaceRequested = "ReplaceRequested"
	// EventTokenRenewed reports that the join token was renewed, because no Node has joined yet.
	//   - Kinds: Machine
	//   - Type: Normal
	EventTokenRenewed = "TokenRenewed"
	// EventTokenReplaced reports that the join token was minted again, because its total life is
	// over.
	//   - Kinds: Machine
	//   - Type: Normal
	EventTokenReplaced = "TokenReplaced"
	// EventCertificateDenied reports that the request for a serving certificate was denied.
	//   - Kinds: Machine, Node
	//   - Type: Warning
	//   - Do: Find out which client made the request.
	EventCertificateDenied = "CertificateDenied"
	// EventCertificateWaits reports that a request for a certificate is not approved yet,
	// and why.
	//   - Kinds: Machine, Node
	//   - Type: Warning
	//   - Do: Read the message.
	EventCertificateWaits = "CertificateWaits"
	// EventNodeIdentityRestored reports that the Node had lost the label that identifies it, and
	// that Drover restored it.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Find out whether the kubelet or a user changed the label.
	EventNodeIdentityRestored = "NodeIdentityRestored"
	// EventNodeKeysKept reports labels or annotations that stay on the Node although the Machine
	// no longer has them.
	//   - Kinds: Machine
	//   - Type: Normal
	//   - Do: Remove them by hand.
	EventNodeKeysKept = "NodeKeysKept"
	// EventNodeMetadataNotAllowed reports labels, annotations or taints that the configuration of
	// the target cluster does not allow.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Allow them in the configuration, or remove them from the Machine.
	EventNodeMetadataNotAllowed = "NodeMetadataNotAllowed"
	// EventInvalidPodRule reports a rule of spec.drain.podRules that is ignored.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Correct the rule.
	EventInvalidPodRule = "InvalidPodRule"
	// EventDraining reports that the drain of the Node has started.
	//   - Kinds: Machine
	//   - Type: Normal
	EventDraining = "Draining"
	// EventDrained reports that the Node is drained.
	//   - Kinds: Machine
	//   - Type: Normal
	EventDrained = "Drained"
	// EventEvictionBlocked reports pods that cannot be evicted yet.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Check their PodDisruptionBudgets.
	EventEvictionBlocked = "EvictionBlocked"
	// EventDetachingVolumes reports volumes that are waited for.
	//   - Kinds: Machine
	//   - Type: Normal
	EventDetachingVolumes = "DetachingVolumes"
	// EventDrainTimeout reports that the drain took too long: the pods that are left are deleted
	// without regard to their budgets.
	//   - Kinds: Machine
	//   - Type: Warning
	EventDrainTimeout = "DrainTimeout"
	// EventDrainForced reports that an annotation forces the drain: the pods that are left are
	// deleted without regard to their budgets.
	//   - Kinds: Machine
	//   - Type: Warning
	EventDrainForced = "DrainForced"
	// EventHookTimeout reports that hooks are no longer waited for.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Ask the owner of the hook.
	EventHookTimeout = "HookTimeout"
	// EventDependentTimeout reports companions that depend on the VM, were not deleted in time,
	// and no longer hold the VM. The Machine still waits for them.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Read the events of the resource that the message names.
	EventDependentTimeout = "DependentTimeout"
	// EventVolumeDetachTimeout reports volumes that were not detached in time and are not waited
	// for.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Check the CSI driver of the volumes.
	EventVolumeDetachTimeout = "VolumeDetachTimeout"
	// EventVolumesUnreadable reports that the attachments of volumes cannot be read, so that they
	// are not waited for.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Grant the right that the message names.
	EventVolumesUnreadable = "VolumesUnreadable"
	// EventNodeDeleted reports that the Node was deleted from the target cluster.
	//   - Kinds: Machine
	//   - Type: Normal
	EventNodeDeleted = "NodeDeleted"
	// EventNodeHeld reports that the target cluster accepted the deletion of the Node, and that
	// finalizers of other controllers hold it.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Let the controller that owns the finalizer remove it. Otherwise the Node is left behind at the time that the message names.
	EventNodeHeld = "NodeHeld"
	// EventNodeAbandoned reports that the Node was left in the target cluster, which does not
	// answer or does not delete it.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Delete the Node by hand.
	EventNodeAbandoned = "NodeAbandoned"
	// EventTokenAbandoned reports that the join token is left to expire in the target cluster.
	//   - Kinds: Machine
	//   - Type: Warning
	EventTokenAbandoned = "TokenAbandoned"
	// EventVMUnreadable reports that the VM of a Machine that is being deleted cannot be read.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Repair the provider of the VM.
	EventVMUnreadable = "VMUnreadable"
	// EventNeverCreated reports that a VM resource or a companion was deleted without its provider,
	// because the provider never began to create anything for it.
	//   - Kinds: Machine
	//   - Type: Normal
	EventNeverCreated = "NeverCreated"
	// EventForceDeleted reports that the VM resource was released without its provider, because an
	// annotation requests it. The VM may still exist.
	//   - Kinds: Machine
	//   - Type: Warning
	//   - Do: Find the VM by the tag that the message names, and delete it.
	EventForceDeleted = "ForceDeleted"
)

// Reasons of the events of MachineSets.
const (
	// EventCreatedMachine reports Machines that the set creates.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventCreatedMachine = "CreatedMachine"
	// EventDeletedMachine reports Machines that the set deletes, and the criterion that decided.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventDeletedMachine = "DeletedMachine"
	// EventAdoptingMachine reports Machines that the set adopts, which had no controller.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventAdoptingMachine = "AdoptingMachine"
	// EventReplacingMachine reports that a Machine is being replaced. It is a warning for a Failed
	// one.
	//   - Kinds: MachineSet
	//   - Type: Normal or Warning
	EventReplacingMachine = "ReplacingMachine"
	// EventRebootingMachine reports that a Machine may reboot within spec.remediation, because its Node is
	// unhealthy.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventRebootingMachine = "RebootingMachine"
	// EventReplacedMachine reports which Machine has taken the place of another one.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventReplacedMachine = "ReplacedMachine"
	// EventSetAsideMachine reports a preserved Machine that no longer counts as a replica.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventSetAsideMachine = "SetAsideMachine"
	// EventUpdatingMachine reports Machines that were selected for an update in place.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventUpdatingMachine = "UpdatingMachine"
	// EventUpdatedMachine reports Machines that were updated in place.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventUpdatedMachine = "UpdatedMachine"
	// EventBackingOff reports that creations fail, and when the next attempt is.
	//   - Kinds: MachineSet
	//   - Type: Warning
	//   - Do: Read the error that the message has.
	EventBackingOff = "BackingOff"
	// EventCreationRecovered reports that Machines can be created again.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventCreationRecovered = "CreationRecovered"
	// EventExhaustionEnded reports that an exhausted failure domain has room again, or is worth
	// another try.
	//   - Kinds: MachineSet
	//   - Type: Normal
	EventExhaustionEnded = "ExhaustionEnded"
)

// Reasons of the events of MachineDeployments.
const (
	// EventNewMachineSet reports the set of a new revision.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventNewMachineSet = "NewMachineSet"
	// EventReadoptedMachineSet reports a set that a stale write had left out of the status.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventReadoptedMachineSet = "ReadoptedMachineSet"
	// EventScalingMachineSet reports from how many Machines to how many a set is scaled.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventScalingMachineSet = "ScalingMachineSet"
	// EventUpdatingMachineSet reports that a set is updated in place to a revision.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventUpdatingMachineSet = "UpdatingMachineSet"
	// EventDeletedMachineSet reports a set that was deleted.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventDeletedMachineSet = "DeletedMachineSet"
	// EventRolloutComplete reports that all Machines of a revision are available.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventRolloutComplete = "RolloutComplete"
	// EventAnalysisPassed reports the analyses that let a step of a rollout pass, with their numbers.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventAnalysisPassed = "AnalysisPassed"
	// EventWaveFailed reports that a rollout of a wave failed. The rollouts of all later waves are held.
	//   - Kinds: RolloutPolicy
	//   - Type: Warning
	EventWaveFailed = "WaveFailed"
	// EventWaveOverdue reports that a wave is not complete at its deadline.
	//   - Kinds: RolloutPolicy
	//   - Type: Warning
	EventWaveOverdue = "WaveOverdue"
	// EventMachineDeploymentResumed reports that a pause has ended.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventMachineDeploymentResumed = "MachineDeploymentResumed"
	// EventRolledBack reports the revision that spec.rollbackTo returns to.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventRolledBack = "RolledBack"
	// EventRollbackEnded reports that spec.rollbackTo is removed, so that spec.template is rolled
	// out.
	//   - Kinds: MachineDeployment
	//   - Type: Normal
	EventRollbackEnded = "RollbackEnded"
)

// Reasons of the events of the VMs and companions of Machines.
const (
	// EventVMTakenOver reports that a Machine took over the VM resource, and with it the VM and
	// the Node, of a Machine that does not exist any more.
	//   - Kinds: Machine
	//   - Type: Normal
	EventVMTakenOver = "VMTakenOver"
	// EventKeptWithoutMachine reports a resource that is being deleted although its Machine does
	// not exist. The resource is deleted, and its VM is kept.
	//   - Kinds: VirtualMachine
	//   - Type: Warning
	//   - Do: Find the VM in the status of an OrphanCollector.
	EventKeptWithoutMachine = "KeptWithoutMachine"
)

// Reasons of the events of OrphanCollectors.
const (
	// EventOrphanFound reports VMs that have no Machine.
	//   - Kinds: OrphanCollector
	//   - Type: Warning
	//   - Do: Check them.
	EventOrphanFound = "OrphanFound"
	// EventOrphanAdopted reports VMs that will be deleted if a last look at the cloud still finds
	// them.
	//   - Kinds: OrphanCollector
	//   - Type: Normal
	EventOrphanAdopted = "OrphanAdopted"
	// EventDeletingOrphan reports VMs that are being deleted.
	//   - Kinds: OrphanCollector
	//   - Type: Normal
	EventDeletingOrphan = "DeletingOrphan"
	// EventOrphanGone reports VMs that no longer exist.
	//   - Kinds: OrphanCollector
	//   - Type: Normal
	EventOrphanGone = "OrphanGone"
	// EventUnusedResourceFound reports network interfaces, addresses and disks of this installation
	// that nothing uses and whose Machine does not exist.
	//   - Kinds: OrphanCollector
	//   - Type: Warning
	//   - Do: Check them, and delete them at the cloud: Drover does not.
	EventUnusedResourceFound = "UnusedResourceFound"
)

// Reasons of the events of configurations, beside those in the package of their API.
const (
	// EventTokenSwept reports a join token that was deleted because its Machine no longer exists.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Type: Normal
	EventTokenSwept = "TokenSwept"
	// EventNodeSwept reports a Node that was deleted because its Machine no longer exists.
	//   - Kinds: ProviderConfig, ClusterProviderConfig
	//   - Type: Normal
	EventNodeSwept = "NodeSwept"
)

// Reasons of the events of VirtualMachines.
const (
	// EventCloning reports that a template is being cloned to the VM.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventCloning = "Cloning"
	// EventCreating reports that the cloud accepted the creation of the VM.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventCreating = "Creating"
	// EventRebootRequested reports that the cloud accepted a reboot of the VM.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventRebootRequested = "RebootRequested"
	// EventDisksDetached reports disks that are not the VM's own. They are detached before the VM
	// is deleted, and stay.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventDisksDetached = "DisksDetached"
	// EventAntiAffinityRuleKept reports that the vCenter refused to change the anti-affinity rule of a
	// VM that is being deleted. The rule may stay in the vSphere cluster without VMs.
	//   - Kinds: VirtualMachine
	//   - Type: Warning
	//   - Do: Remove the rule in the configuration of the vSphere cluster. Its name begins with "drover.".
	EventAntiAffinityRuleKept = "AntiAffinityRuleKept"
)

// Reasons of events of Crossplane that Drover does not pass on, because its own events are more precise.
const (
	// EventCreatedExternalResource is never seen: the creation of a VM has events of its own.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventCreatedExternalResource = "CreatedExternalResource"
	// EventUpdatedExternalResource is never seen: it reports nothing that the status does not
	// have.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventUpdatedExternalResource = "UpdatedExternalResource"
	// EventDeletedExternalResource is never seen: the deletion of a VM has events of its own.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventDeletedExternalResource = "DeletedExternalResource"
	// EventReconcileRequestHandled is never seen: status.lastHandledReconcileAt has the request.
	//   - Kinds: VirtualMachine
	//   - Type: Normal
	EventReconcileRequestHandled = "ReconcileRequestHandled"
)
