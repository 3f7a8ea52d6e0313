package v1alpha1

// Condition types. An object also carries Synced and Ready, which Crossplane defines.
const (
	// ConditionReady is the condition of Crossplane that sums up an object.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool, OrphanCollector, VirtualMachine
	//   - Polarity: True is good
	//   - True: All that the spec asks for is there. The observedGeneration of the condition is
	//     the generation of the spec that this was decided for.
	//   - False: Something is missing. The other conditions name it.
	//   - Do: Read the other conditions.
	ConditionReady = "Ready"
	// ConditionValid reports whether the input of the user can be carried out.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is good
	//   - True: No input keeps the object from its work.
	//   - False: A field, a class or an annotation keeps Machines from being created or continued.
	//     The message names the field, its value and the allowed values.
	//   - Do: Correct the field that the message names.
	ConditionValid = "Valid"
	// ConditionInfrastructureReady reports whether the VM runs.
	//   - Kinds: Machine
	//   - Polarity: True is good
	//   - True: The VM runs.
	//   - False: The VM is waited for, is being created, does not run, or is lost. While the
	//     provider reports an error, the reason is the code of the error.
	//   - Do: Read the message and the events of the VM resource.
	ConditionInfrastructureReady = "InfrastructureReady"
	// ConditionNodeReady reports whether the Node is Ready and has no startup taint.
	//   - Kinds: Machine
	//   - Polarity: True is good
	//   - True: The Node of the Machine is Ready.
	//   - False: The Node has not joined, is starting or is not Ready. It is Unknown while the
	//     Node cannot be observed.
	//   - Do: If the Node does not join, read the console of the VM and the logs of its kubelet.
	ConditionNodeReady = "NodeReady"
	// ConditionNodeHealthy reports whether the Node of a Machine that has run is healthy. A
	// Machine whose Node never was unhealthy does not have it.
	//   - Kinds: Machine
	//   - Polarity: True is good
	//   - True: No condition of spec.health.conditions applies to the Node.
	//   - False: The Node is unhealthy. The Machine fails when this lasts for spec.health.timeout.
	//   - Do: Repair the Node, or let the Machine be replaced.
	ConditionNodeHealthy = "NodeHealthy"
	// ConditionNodeIdentified reports whether only one Node claims to be the Node of the Machine.
	// A Machine that never had another claim does not have it.
	//   - Kinds: Machine
	//   - Polarity: True is good
	//   - True: The Node of the Machine is proven.
	//   - False: Other Nodes claim the identity of the Machine, or several Nodes fit it. Drover
	//     leaves them alone.
	//   - Do: Find out how those Nodes registered, and delete those that are not the Machine's.
	ConditionNodeIdentified = "NodeIdentified"
	// ConditionUpdated reports whether an update in place is finished. Objects that never were
	// updated in place do not have it.
	//   - Kinds: Machine, MachineSet
	//   - Polarity: True is good
	//   - True: The Node, or each Machine of the set, has the version of the template.
	//   - False: An update is requested, runs or has failed. The reason is its state.
	//   - Do: If an update failed, repair the Node and set the annotation
	//     machine.drover.dev/update-retry of the Machine to a new value.
	ConditionUpdated = "Updated"
	// ConditionRebooted reports how the last reboot of the Machine ended, or how far the current one is. Of a VM resource, it
	// reports the answer of the cloud to the last request. Objects that never were rebooted do not have it.
	//   - Kinds: Machine, VirtualMachine
	//   - Polarity: True is good
	//   - True: The Node proved the reboot: it reported another boot ID, and was healthy. Of a VM resource: the
	//     cloud accepted the request.
	//   - False: A reboot waits, is in progress or has failed. The reason is its state.
	//   - Do: If a reboot failed, read the message, and replace the Machine or request another reboot.
	ConditionRebooted = "Rebooted"
	// ConditionPreserved reports whether the Machine is preserved for analysis. Machines that
	// never were preserved do not have it.
	//   - Kinds: Machine
	//   - Polarity: neither is better
	//   - True: The Machine is preserved: it is not replaced until the preservation ends.
	//   - False: The preservation has ended.
	//   - Do: To end a preservation, remove its annotation.
	ConditionPreserved = "Preserved"
	// ConditionAnnotationsValid reports whether the annotations of Drover and crossplane.io/paused have
	// values that are understood, and are on an object of a kind that they have an effect on. Objects
	// that never had a wrong one do not have it.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is good
	//   - True: All annotations are understood.
	//   - False: The annotations that the message names are ignored.
	//   - Do: Correct the annotations that the message names.
	ConditionAnnotationsValid = "AnnotationsValid"
	// ConditionHealthValid reports whether spec.health can be carried out as it is written. Machines run and are judged by
	// the rest otherwise. Objects whose health always could be do not have it.
	//   - Kinds: Machine, MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is good
	//   - True: All profiles exist, and each condition leads to the action that it names.
	//   - False: A part of spec.health, which the message names, has no effect or another one.
	//   - Do: Correct the part of spec.health that the message names.
	ConditionHealthValid = "HealthValid"
	// ConditionUserDataComplete reports whether user data of the class's own has a placeholder for
	// the join token. Machines whose user data always had one, or was written by Drover, do not
	// have it.
	//   - Kinds: Machine
	//   - Polarity: True is good
	//   - True: The placeholder was filled in.
	//   - False: The VM gets no join token. It joins only with a credential of its own.
	//   - Do: Add a placeholder such as <<BOOTSTRAP_TOKEN>> to the Secret that the message names.
	//     Replace the Machine to use it.
	ConditionUserDataComplete = "UserDataComplete"
	// ConditionReplicaFailure reports whether Machines cannot be created.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is bad
	//   - True: The creation of Machines fails. The reason is the code of the provider's error, the
	//     reason of the failure, or that of Valid=False of a Machine. It is ReconcileError,
	//     ProviderIDEmpty or UserDataRefused if that keeps a Machine from running.
	//   - False: No creation fails.
	//   - Do: Read the message. If Stalled is True too, a user must act. Otherwise the creation is
	//     repeated, and may succeed.
	ConditionReplicaFailure = "ReplicaFailure"
	// ConditionCapacityExhausted reports whether a failure domain has no room for another VM.
	// Objects that never met an exhausted one do not have it.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is bad
	//   - True: The cloud has no room in a failure domain. The reason is the code of the
	//     provider's error.
	//   - False: There is room again, or it is worth another try.
	//   - Do: Add a set in another failure domain, or raise the quota.
	ConditionCapacityExhausted = "CapacityExhausted"
	// ConditionScalesFromZero reports whether the cluster-autoscaler can know the capacity of the
	// Nodes before there are any. Objects whose template has no infrastructureRef of the kind
	// NodeTemplate do not have it.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Polarity: True is good
	//   - True: The NodeTemplate has the capacity of the class.
	//   - False: The autoscaler does not scale up from zero.
	//   - Do: Read the message. It names the field.
	ConditionScalesFromZero = "ScalesFromZero"
	// ConditionSelectorExclusive reports whether only the set controls the Machines that its
	// selector matches. Sets that never shared Machines with other sets do not have it.
	//   - Kinds: MachineSet
	//   - Polarity: True is good
	//   - True: The set controls all Machines that match its selector.
	//   - False: Machines that match the selector have another controller. The message names them.
	//   - Do: Change the selector, or the labels of the Machines.
	ConditionSelectorExclusive = "SelectorExclusive"
	// ConditionRemediationAllowed reports whether Machines that are to be replaced are. Objects
	// that never had a reason to replace one do not have it.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Polarity: True is good
	//   - True: Machines are replaced.
	//   - False: Machines wait to be replaced. The reason is the limit that holds them.
	//   - Do: If the reason is TooManyUnhealthy or NoBudget, repair the Machines, or raise the
	//     limit in spec.remediation.
	ConditionRemediationAllowed = "RemediationAllowed"
	// ConditionFrozen reports whether a freeze holds the creation and the replacement of Machines.
	//   - Kinds: MachineSet, MachineDeployment
	//   - Polarity: True is bad
	//   - True: Nothing is created or replaced. The reason is the cause of the freeze.
	//   - False: Nothing is held.
	//   - Do: If the reason is ManualFreeze, remove the label machine.drover.dev/freeze. Other
	//     freezes end by themselves.
	ConditionFrozen = "Frozen"
	// ConditionAvailable reports whether as many Machines are available as the strategy promises.
	//   - Kinds: MachineDeployment, NodePool
	//   - Polarity: True is good
	//   - True: At least that many Machines are available.
	//   - False: Fewer Machines are available, or the deployment is being deleted.
	//   - Do: Read the other conditions.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether a rollout proceeds.
	//   - Kinds: MachineDeployment
	//   - Polarity: True is good
	//   - True: The rollout proceeds, or is complete.
	//   - False: The rollout is frozen, invalid or over its deadline. It is Unknown while the
	//     deployment is paused.
	//   - Do: Read the reason and the message.
	ConditionProgressing = "Progressing"
	// ConditionReconciling is the condition of kstatus that Flux reads, and kubectl wait on request
	// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Polarity: True means work
	//   - True: A change to the state of the spec is in progress.
	//   - False: Nothing is on its way: the object is settled, frozen or stalled.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is the condition of kstatus that is True when nothing proceeds until a user
	// acts.
	//   - Kinds: MachineSet, MachineDeployment, NodePool
	//   - Polarity: True is bad
	//   - True: A user must act. The message has the sentence that helps.
	//   - False: The object settles by itself.
	//   - Do: Follow the message.
	ConditionStalled = "Stalled"
	// ConditionApplied is the only condition of a MachineGroup.
	//   - Kinds: MachineGroup
	//   - Polarity: True is good
	//   - True: All Machines of the group are written.
	//   - False: A Machine cannot be written. The message has the error.
	//   - Do: Correct the fields that the API server refuses. The condition ReplicaFailure of the set has the
	//     same message.
	ConditionApplied = "Applied"
	// ConditionOrphansFound reports whether VMs exist without a Machine. It is Unknown while the
	// inventory of the cloud is not known.
	//   - Kinds: OrphanCollector
	//   - Polarity: True is bad
	//   - True: VMs have no Machine. The reason is the action taken.
	//   - False: Each VM has a Machine.
	//   - Do: Check the VMs that status.virtualMachines names.
	ConditionOrphansFound = "OrphansFound"
	// ConditionLastAsyncOperation is the condition of upjet with the result of the last call of
	// the cloud. Drover reads it.
	//   - Kinds: VirtualMachine
	//   - Polarity: True is good
	//   - True: The last call succeeded.
	//   - False: The last call failed. The message has the error of the cloud.
	//   - Do: Read the message.
	ConditionLastAsyncOperation = "LastAsyncOperation"
	// ConditionAsyncOperation is the condition of upjet that reports whether it calls the cloud now. Drover reads it.
	//   - Kinds: VirtualMachine
	//   - Polarity: neither is better
	//   - True: The last call ended.
	//   - False: The cloud is being called.
	//   - Do: Wait until the call ends.
	ConditionAsyncOperation = "AsyncOperation"
)
