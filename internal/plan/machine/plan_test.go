package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

var (
	created = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	soon    = created.Add(time.Minute)
	late    = created.Add(21 * time.Minute)
)

const id = "test:///1"

func machine(status machinev1alpha1.MachineStatus) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{Status: status}
	m.Namespace, m.Name, m.UID, m.Generation = "ns", "m", "6f8e9d10", 3
	m.CreationTimestamp = metav1.NewTime(created)
	m.Spec.CreationTimeout.Duration = 20 * time.Minute
	return m
}

func phaseIs(p machinev1alpha1.MachinePhase) machinev1alpha1.MachineStatus {
	return machinev1alpha1.MachineStatus{Phase: p}
}

// workerNodeThat returns a Node of the name whose Ready condition has the status. Without a status
// the Node is deleted, and without a name there never was one.
func workerNodeThat(node, status string) *workernode.WorkerNode {
	wn := &workernode.WorkerNode{Parameters: workernode.Parameters{ProviderID: id}}
	wn.Observation.NodeName = node
	if status != "" {
		wn.Observation.Present = true
		wn.Observation.Conditions = []workernode.Condition{{Type: "Ready", Status: status, Since: &metav1.Time{Time: soon}}}
	}
	return wn
}

// starting returns a Node that waits for its network plugin.
func starting() *workernode.WorkerNode {
	wn := readyNode()
	wn.Observation.StartupTaints = []string{"cni:NoSchedule"}
	return wn
}

func readyNode() *workernode.WorkerNode { return workerNodeThat("m", "True") }

// unreachable makes a Node one that can no longer be observed.
func unreachable(wn *workernode.WorkerNode) *workernode.WorkerNode {
	wn.Observation.Error, wn.Observation.Synced = "unreachable", false
	return wn
}

// nodeGone returns the status of a Machine whose Node is gone since the given time.
func nodeGone(p machinev1alpha1.MachinePhase, since time.Time) machinev1alpha1.MachineStatus {
	return machinev1alpha1.MachineStatus{Phase: p, NodeRef: &machinev1alpha1.NodeReference{Name: "m"}, NodeGoneSince: &metav1.Time{Time: since}}
}

func TestPhase(t *testing.T) {
	running := plan.VM{State: plan.VMRunning, ProviderID: id}
	creating := plan.VM{State: plan.VMCreating, Name: "m"}
	absent := plan.VM{State: plan.VMAbsent}
	awaiting := plan.VM{State: plan.VMCreating, ProviderID: id, AwaitsCompanion: true, ErrorCode: "QuotaExceeded", Message: "no disk left"}
	problem := &plan.Problem{Reason: "ClassNotFound", Message: "no class"}

	type want struct {
		Phase      machinev1alpha1.MachinePhase
		Failure    machinev1alpha1.FailureReason
		Message    string
		NodeReady  string
		InfraReady string
		Valid      string
		Events     []string
		CallAgain  time.Duration
	}
	cases := map[string]struct {
		now  time.Time
		o    Observed
		want want
	}{
		"WaitsForItsJoinToken": {
			soon, Observed{Machine: machine(phaseIs("")), VM: absent, Bootstrap: plan.Bootstrap{Waiting: "waiting for the join token"}},
			want{Phase: "Pending", NodeReady: "NodeNotJoined", InfraReady: "Waiting", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"WaitsForItsClass": {
			soon, Observed{Machine: machine(phaseIs("")), VM: absent, Bootstrap: plan.Bootstrap{Problem: problem}},
			want{Phase: "Pending", NodeReady: "NodeNotJoined", InfraReady: "Waiting", Valid: "ClassNotFound", Events: []string{"ClassNotFound"}, CallAgain: plan.InFlight},
		},
		"IsProvisioningWhenItsVMIsAskedFor": {
			soon, Observed{Machine: machine(phaseIs("Pending")), VM: creating},
			want{Phase: "Provisioning", NodeReady: "NodeNotJoined", InfraReady: "VMCreating", Valid: "Valid", Events: []string{"VMRequested"}, CallAgain: plan.InFlight},
		},
		"TellsOfAnErrorOfTheProvider": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMCreating, ErrorCode: "Throttled", Message: "slow down"}},
			want{Phase: "Provisioning", NodeReady: "NodeNotJoined", InfraReady: "Throttled", Valid: "Valid", Events: []string{"Throttled"}, CallAgain: plan.InFlight},
		},
		"JoinsWhenItsVMRuns": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: running},
			want{Phase: "Joining", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"VMRunning"}, CallAgain: plan.InFlight},
		},
		"JoinsUntilItsVMIsCompleteAlthoughItsNodeIsReady": {
			soon, Observed{Machine: machine(phaseIs("Joining")), VM: awaiting, WorkerNode: readyNode()},
			want{Phase: "Joining", NodeReady: "NodeReady", InfraReady: "QuotaExceeded", Valid: "Valid", Events: []string{"QuotaExceeded"}, CallAgain: plan.InFlight},
		},
		"FailsIfItsVMIsNotCompleteInTime": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: awaiting, WorkerNode: readyNode()},
			want{Phase: "Failed", Failure: "JoinTimeout", Message: "the VM was not complete within 20m0s: no disk left; last milestone: NodeReady", NodeReady: "NodeReady", InfraReady: "QuotaExceeded", Valid: "Valid", Events: []string{"JoinTimeout"}, CallAgain: plan.AtRest},
		},
		"JoinsUntilItsNodeIsReady": {
			soon, Observed{Machine: machine(phaseIs("Joining")), VM: running, WorkerNode: workerNodeThat("m", "False")},
			want{Phase: "Joining", NodeReady: "NodeNotReady", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"RunsWhenItsNodeIsReady": {
			soon, Observed{Machine: machine(phaseIs("Joining")), VM: running, WorkerNode: readyNode()},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeReady"}, CallAgain: plan.AtRest},
		},
		"RunsFromWhateverStatusIsFound": {
			soon, Observed{Machine: machine(phaseIs("Nonsense")), VM: running, WorkerNode: readyNode()},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeReady"}, CallAgain: plan.AtRest},
		},
		"RunsOnAlthoughItsClassIsGone": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMRunning, ProviderID: id, Problem: problem}, WorkerNode: readyNode()},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "ClassNotFound", Events: []string{"ClassNotFound"}, CallAgain: plan.AtRest},
		},
		"IsUnknownWhenItsNodeIsNotReadyAnyMore": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: running, WorkerNode: workerNodeThat("m", "False")},
			want{Phase: "Unknown", NodeReady: "NodeNotReady", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeNotReady"}, CallAgain: plan.InFlight},
		},
		"IsUnknownWhenItsNodeStopsReporting": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: running, WorkerNode: workerNodeThat("m", "Unknown")},
			want{Phase: "Unknown", NodeReady: "NodeUnknown", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeUnknown"}, CallAgain: plan.InFlight},
		},
		"WaitsForItsStartupTaintsToGo": {
			soon, Observed{Machine: machine(phaseIs("Joining")), VM: running, WorkerNode: starting()},
			want{Phase: "Joining", NodeReady: "NodeStarting", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"ButNotForEver": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: running, WorkerNode: starting()},
			want{
				Phase: "Failed", Failure: "JoinTimeout", Message: "the Node was not healthy within 20m0s: The Node m still has the startup taints cni:NoSchedule; last milestone: NodeReady",
				NodeReady: "NodeStarting", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"JoinTimeout"}, CallAgain: plan.AtRest,
			},
		},
		"RunsOnWhenAStartupTaintComesBack": {
			late, Observed{Machine: machine(phaseIs("Running")), VM: running, WorkerNode: starting()},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.AtRest},
		},
		"IsUnknownForAMomentWhenItsNodeIsDeleted": {
			soon.Add(nodeGoneGrace - time.Second), Observed{Machine: machine(nodeGone("Running", soon)), VM: running, WorkerNode: workerNodeThat("m", "")},
			want{Phase: "Unknown", NodeReady: "NodeGone", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeGone"}, CallAgain: time.Second},
		},
		"ThenItIsFailed": {
			soon.Add(nodeGoneGrace), Observed{Machine: machine(nodeGone("Unknown", soon)), VM: running, WorkerNode: workerNodeThat("m", "")},
			want{Phase: "Failed", Failure: "NodeDeleted", Message: "The Node m is gone from the target cluster", NodeReady: "NodeGone", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeDeleted"}, CallAgain: plan.AtRest},
		},
		"OrWhenNoNodeIsFoundOfOneThatRan": {
			late, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Running", NodeGoneSince: &metav1.Time{Time: soon}}), VM: running, WorkerNode: workerNodeThat("", "")},
			want{Phase: "Failed", Failure: "NodeDeleted", Message: "No Node of the VM test:///1 has joined yet", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeDeleted"}, CallAgain: plan.AtRest},
		},
		"ButNotWhileTheClusterCannotBeAsked": {
			late, Observed{Machine: machine(nodeGone("Unknown", soon)), VM: running, WorkerNode: unreachable(workerNodeThat("m", ""))},
			want{Phase: "Unknown", NodeReady: "NodeNotObserved", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"IsUnknownWhenItsNodeIsGone": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: running, WorkerNode: workerNodeThat("m", "")},
			want{Phase: "Unknown", NodeReady: "NodeGone", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeGone"}, CallAgain: nodeGoneGrace},
		},
		"StaysUnknownWithinItsHealthTimeout": {
			late, Observed{Machine: machine(phaseIs("Unknown")), VM: running, WorkerNode: workerNodeThat("m", "Unknown")},
			want{Phase: "Unknown", NodeReady: "NodeUnknown", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"KeepsRunningWhileItsNodeCannotBeObserved": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: running, WorkerNode: unreachable(readyNode())},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.AtRest},
		},
		"FailsWhenItsVMIsLost": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMLost, ProviderID: id, Message: "gone"}, WorkerNode: readyNode()},
			want{Phase: "Failed", Failure: "VMLost", Message: "gone", NodeReady: "NodeReady", InfraReady: "VMLost", Valid: "Valid", Events: []string{"VMLost"}, CallAgain: plan.AtRest},
		},
		"FailsWhenItsProviderGivesUp": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMFailed, ErrorCode: "CapacityExhausted", Message: "full"}},
			want{Phase: "Failed", Failure: "CreateFailed", Message: "full", NodeReady: "NodeNotJoined", InfraReady: "VMFailed", Valid: "Valid", Events: []string{"CreateFailed"}, CallAgain: plan.AtRest},
		},
		"FailsWhenItsVMFailed": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMFailed, ProviderID: id, ErrorCode: "CapacityExhausted", Message: "full"}},
			want{Phase: "Failed", Failure: "VMFailed", Message: "full", NodeReady: "NodeNotJoined", InfraReady: "VMFailed", Valid: "Valid", Events: []string{"VMFailed"}, CallAgain: plan.AtRest},
		},
		"FailsWhenNobodyKnowsWhetherItsVMWasCreated": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMCreateUnknown, Message: "who knows"}},
			want{Phase: "Failed", Failure: "CreateResultUnknown", Message: "who knows", NodeReady: "NodeNotJoined", InfraReady: "CreateResultUnknown", Valid: "Valid", Events: []string{"CreateResultUnknown"}, CallAgain: plan.AtRest},
		},
		"FailsWhenNoNodeJoinsInTime": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: running, WorkerNode: workerNodeThat("", "")},
			want{Phase: "Failed", Failure: "JoinTimeout", Message: "no Node joined within 20m0s: No Node of the VM test:///1 has joined yet; last milestone: VMRunning; missing: CertificateRequested, no certificate request with the join token was seen: read the console of the VM", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"JoinTimeout"}, CallAgain: plan.AtRest},
		},
		"IsNotFailedForItsNodeWhileTheClusterIsUnreachable": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: running, TargetUnreachable: true},
			want{Phase: "Joining", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"NorBeforeNodesCouldReportAgain": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: running, JudgeAfter: late.Add(5 * time.Second)},
			want{Phase: "Joining", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", CallAgain: 5 * time.Second},
		},
		"NorForANodeThatIsGone": {
			late, Observed{Machine: machine(nodeGone("Unknown", soon)), VM: running, WorkerNode: workerNodeThat("m", ""), TargetUnreachable: true},
			want{Phase: "Unknown", NodeReady: "NodeGone", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"ButForItsVMInAnyCase": {
			soon, Observed{Machine: machine(phaseIs("Running")), VM: plan.VM{State: plan.VMLost, ProviderID: id, Message: "gone"}, WorkerNode: readyNode(), TargetUnreachable: true},
			want{Phase: "Failed", Failure: "VMLost", Message: "gone", NodeReady: "NodeReady", InfraReady: "VMLost", Valid: "Valid", Events: []string{"VMLost"}, CallAgain: plan.AtRest},
		},
		"SaysThatItsVMIsReadyWithoutAProviderID": {
			soon, Observed{Machine: machine(phaseIs("Provisioning")), VM: plan.VM{State: plan.VMCreating, Name: "m", Unidentified: true}},
			want{Phase: "Provisioning", NodeReady: "NodeNotJoined", InfraReady: "ProviderIDEmpty", Valid: "Valid", CallAgain: plan.InFlight},
		},
		"FailsWhenNobodySaysWhyItHasNoVM": {
			late, Observed{Machine: machine(phaseIs("Provisioning")), VM: creating},
			want{Phase: "Failed", Failure: "JoinTimeout", Message: "no Node joined within 20m0s: waiting for VM m to run", NodeReady: "NodeNotJoined", InfraReady: "VMCreating", Valid: "Valid", Events: []string{"JoinTimeout"}, CallAgain: plan.AtRest},
		},
		"WaitsUntilTheProblemIsMended": {
			late, Observed{Machine: machine(phaseIs("Pending")), VM: absent, Bootstrap: plan.Bootstrap{Problem: problem}},
			want{Phase: "Pending", NodeReady: "NodeNotJoined", InfraReady: "Waiting", Valid: "ClassNotFound", Events: []string{"ClassNotFound"}, CallAgain: plan.InFlight},
		},
		"FailsWhateverTheProblemOnceThereIsAVM": {
			late, Observed{Machine: machine(phaseIs("Joining")), VM: running, Bootstrap: plan.Bootstrap{Problem: problem}},
			want{Phase: "Failed", Failure: "JoinTimeout", Message: "no Node joined within 20m0s: no class; last milestone: VMRunning; missing: CertificateRequested, no certificate request with the join token was seen: read the console of the VM", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "ClassNotFound", Events: []string{"ClassNotFound", "JoinTimeout"}, CallAgain: plan.AtRest},
		},
		"FailsWhenItsNodeCameAndWentInTime": {
			late, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Joining", NodeRef: &machinev1alpha1.NodeReference{Name: "m"}}), VM: running},
			want{
				Phase: "Failed", Failure: "JoinTimeout", Message: "the Node was not healthy within 20m0s: waiting for the Node of VM test:///1; last milestone: VMRunning; missing: CertificateRequested, no certificate request with the join token was seen: read the console of the VM",
				NodeReady: "NodeNotObserved", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"JoinTimeout"}, CallAgain: plan.AtRest,
			},
		},
		"RunsAfterAllWhenItsNodeJoinsLate": {
			late, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "JoinTimeout", FailureMessage: "too late"}), VM: running, WorkerNode: readyNode()},
			want{Phase: "Running", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", Events: []string{"NodeReady"}, CallAgain: plan.AtRest},
		},
		"StaysFailedWhenItsVMFailed": {
			soon, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "VMLost", FailureMessage: "gone"}), VM: running, WorkerNode: readyNode()},
			want{Phase: "Failed", Failure: "VMLost", Message: "gone", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.AtRest},
		},
		"StaysFailedWhenItJoinsWithoutVM": {
			late, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "JoinTimeout", FailureMessage: "too late"}), VM: plan.VM{State: plan.VMLost, ProviderID: id}, WorkerNode: readyNode()},
			want{Phase: "Failed", Failure: "JoinTimeout", Message: "too late", NodeReady: "NodeReady", InfraReady: "VMLost", Valid: "Valid", CallAgain: plan.AtRest},
		},
		"StaysFailedWhenItsNodeWasDeleted": {
			soon, Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "NodeDeleted", FailureMessage: "gone"}), VM: running, WorkerNode: readyNode()},
			want{Phase: "Failed", Failure: "NodeDeleted", Message: "gone", NodeReady: "NodeReady", InfraReady: "VMRunning", Valid: "Valid", CallAgain: plan.AtRest},
		},
		"IsCalledAgainWhenItsTimeIsOver": {
			created.Add(20*time.Minute - 2*time.Second), Observed{Machine: machine(phaseIs("Joining")), VM: running},
			want{Phase: "Joining", NodeReady: "NodeNotJoined", InfraReady: "VMRunning", Valid: "Valid", CallAgain: 2 * time.Second},
		},
		"SaysThatAVMOfANodeDoesNotRun": {
			soon, Observed{Machine: machine(phaseIs("Unknown")), VM: plan.VM{State: plan.VMCreating, ProviderID: id}, WorkerNode: workerNodeThat("m", "Unknown")},
			want{Phase: "Unknown", NodeReady: "NodeUnknown", InfraReady: "VMNotRunning", Valid: "Valid", CallAgain: plan.InFlight},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.now, tc.o)
			got := want{Phase: d.Status.Phase, Failure: d.Status.FailureReason, Message: d.Status.FailureMessage, CallAgain: d.CallAgain}
			for _, c := range d.Conditions {
				switch c.Type {
				case machinev1alpha1.ConditionNodeReady:
					got.NodeReady = c.Reason
				case machinev1alpha1.ConditionInfrastructureReady:
					got.InfraReady = c.Reason
				case machinev1alpha1.ConditionValid:
					got.Valid = c.Reason
				}
			}
			for _, e := range d.Events {
				got.Events = append(got.Events, e.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParametersForTheNodeAreWantedForEver(t *testing.T) {
	remembered := machinev1alpha1.MachineStatus{ProviderID: id}
	cases := map[string]struct {
		o    Observed
		want string
	}{
		"NotBeforeTheProviderIDIsKnown": {Observed{Machine: machine(phaseIs("")), VM: plan.VM{State: plan.VMCreating}}, ""},
		"OnceTheVMHasAProviderID":       {Observed{Machine: machine(phaseIs("")), VM: plan.VM{State: plan.VMCreating, ProviderID: id}}, id},
		"WhenTheVMIsGone":               {Observed{Machine: machine(remembered), VM: plan.VM{State: plan.VMAbsent}}, id},
		"WithTheProviderIDThatTheVMHas": {
			Observed{Machine: machine(remembered), VM: plan.VM{ProviderID: "test:///2"}, WorkerNode: readyNode()}, "test:///2",
		},
		"WhenTheMachineFailed": {
			Observed{Machine: machine(machinev1alpha1.MachineStatus{Phase: "Failed", ProviderID: id}), VM: plan.VM{State: plan.VMLost}}, id,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if wn := Plan(soon, tc.o).WorkerNode; wn != nil {
				got = wn.ProviderID
			}
			if got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

func TestTheDrainIsSkippedWhenTheMachineSaysSo(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "": false} {
		m := machine(phaseIs("Running"))
		m.Annotations = map[string]string{machinev1alpha1.AnnotationSkipDrain: value}
		wn := Plan(soon, Observed{Machine: m, VM: plan.VM{ProviderID: id}}).WorkerNode
		if wn.Drain.Skip != want {
			t.Errorf("%q: want %v", value, want)
		}
	}
}

func TestTheTimeOfTheLastOperationMovesOnlyWithIt(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Pending")), VM: plan.VM{State: plan.VMCreating, Name: "m"}}
	first := Plan(soon, o).Status
	o.Machine.Status = first
	if diff := cmp.Diff(first, Plan(soon.Add(time.Minute), o).Status); diff != "" {
		t.Errorf("the status changes with the clock alone:\n%s", diff)
	}
	o.VM.ErrorCode, o.VM.Message = "Throttled", "slow down"
	second := Plan(soon.Add(time.Minute), o).Status.LastOperation
	if !second.LastUpdateTime.Equal(&metav1.Time{Time: soon.Add(time.Minute)}) || second.ErrorCode != "Throttled" {
		t.Errorf("lastOperation: %+v", second)
	}
}

func TestWhatWasKnownOfTheNodeStays(t *testing.T) {
	m := machine(machinev1alpha1.MachineStatus{
		Phase: "Running", ProviderID: id,
		NodeRef:    &machinev1alpha1.NodeReference{Kind: "Node", Name: "m"},
		NodeInfo:   &machinev1alpha1.NodeInfo{KubeletVersion: "v1.35.4"},
		Addresses:  []machinev1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.1"}},
		ReadySince: &metav1.Time{Time: soon},
	})
	got := Plan(soon, Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: id}}).Status
	if got.NodeRef == nil || got.NodeInfo == nil || len(got.Addresses) != 1 {
		t.Errorf("forgotten: %+v", got)
	}
	if got.ReadySince != nil {
		t.Errorf("readySince of a Node that is not Ready: %s", got.ReadySince)
	}
}

func TestTheNodeHasTheAddressesThatTheCloudReports(t *testing.T) {
	reported := []workernode.Address{{Type: "InternalIP", Address: "10.0.0.1"}}
	node := readyNode()
	node.Observation.Addresses = []workernode.Address{{Type: "InternalIP", Address: "10.0.0.66"}}
	o := Observed{
		Machine: machine(machinev1alpha1.MachineStatus{Addresses: []machinev1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.66"}}}),
		VM:      plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: node,
	}
	if got := Plan(soon, o).WorkerNode.Addresses; len(got) > 0 {
		t.Errorf("%v are what the Node says of itself", got)
	}
	o.VM.Addresses = []workernode.Address{{Type: "InternalIP", Address: "10.0.0.1"}}
	d := Plan(soon, o)
	if diff := cmp.Diff(reported, d.WorkerNode.Addresses); diff != "" {
		t.Error(diff)
	}
	o.VM.Addresses, o.WorkerNode = nil, &workernode.WorkerNode{Parameters: *d.WorkerNode}
	d = Plan(soon, o)
	if diff := cmp.Diff(reported, d.WorkerNode.Addresses); diff != "" {
		t.Errorf("forgotten when the cloud cannot be asked: %s", diff)
	}
	if len(d.Status.Addresses) != 1 || d.Status.Addresses[0].Address != "10.0.0.1" {
		t.Errorf("the Machine has %v", d.Status.Addresses)
	}
}

func TestAPlanIsTheSameForTheSameView(t *testing.T) {
	o := Observed{Machine: machine(phaseIs("Joining")), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: readyNode()}
	o.Machine.Spec.Metadata.Labels = map[string]string{"a": "b", "c": "d", "e": "f"}
	if diff := cmp.Diff(Plan(soon, o), Plan(soon, o)); diff != "" {
		t.Error(diff)
	}
	// The output shares no memory with the view.
	Plan(soon, o).WorkerNode.Labels["a"] = "x"
	if o.Machine.Spec.Metadata.Labels["a"] != "b" {
		t.Error("the view was changed")
	}
}

func TestTheStatusIsOfTheGenerationThatWasSeen(t *testing.T) {
	for _, wn := range []*workernode.WorkerNode{nil, readyNode()} {
		o := Observed{Machine: machine(machinev1alpha1.MachineStatus{ObservedGeneration: 2}), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn}
		if got := Plan(soon, o).Status.ObservedGeneration; got != 3 {
			t.Errorf("the status is of generation %d, want 3", got)
		}
	}
}

// refusedWith returns a status that was recorded while the VM was refused with an error code.
func refusedWith(code string) machinev1alpha1.MachineStatus {
	s := phaseIs("Provisioning")
	s.LastOperation = &machinev1alpha1.LastOperation{
		Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing,
		ErrorCode: code, Description: "no", LastUpdateTime: &metav1.Time{Time: soon},
	}
	return s
}

// invalidSince returns a status that was recorded while the input was invalid.
func invalidSince() machinev1alpha1.MachineStatus {
	s := refusedWith("")
	s.Phase = "Pending"
	s.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionValid, Status: metav1.ConditionFalse, Reason: "ClassNotFound"}}
	return s
}

func TestAMachineWaitsAsLongAsItsVMIsRefused(t *testing.T) {
	for _, code := range []string{"QuotaExceeded", "CapacityExhausted", "InvalidRequest", "PermissionDenied", "Throttled", "Transient"} {
		t.Run(code, func(t *testing.T) {
			refusal := plan.VM{State: plan.VMCreating, ErrorCode: code, Message: "no"}
			d := Plan(late, Observed{Machine: machine(refusedWith(code)), VM: refusal})
			if d.Status.Phase != "Provisioning" || d.Status.RefusedUntil != nil || d.CallAgain != plan.InFlight || len(d.Events) != 0 {
				t.Errorf("phase %s, refused until %v, calls again after %s, events %v", d.Status.Phase, d.Status.RefusedUntil, d.CallAgain, d.Events)
			}
			if got := infrastructureReady(factsOf(late, Observed{Machine: machine(refusedWith(code)), VM: refusal})); got.Reason != code || got.Message != "no" {
				t.Errorf("condition %+v", got)
			}
		})
	}
}

func TestCreationTimeoutCountsFromTheEndOfARefusal(t *testing.T) {
	running := plan.VM{State: plan.VMRunning, ProviderID: id}
	after := func(s machinev1alpha1.MachineStatus, until time.Time) machinev1alpha1.MachineStatus {
		s.Phase, s.RefusedUntil = "Joining", &metav1.Time{Time: until}
		s.LastOperation = nil
		return s
	}
	cases := map[string]struct {
		now    time.Time
		status machinev1alpha1.MachineStatus
		vm     plan.VM
		phase  machinev1alpha1.MachinePhase
		until  time.Time
		again  time.Duration
	}{
		"WhichIsNotedWhenTheVMComes": {late, refusedWith("Throttled"), running, "Joining", late, plan.InFlight},
		"OrTheErrorGoes":             {late, refusedWith("Throttled"), plan.VM{State: plan.VMCreating}, "Provisioning", late, plan.InFlight},
		"AndNotEachTime":             {late.Add(time.Minute), after(machinev1alpha1.MachineStatus{}, late), running, "Joining", late, plan.InFlight},
		"ThenItsNodeHasTimeToJoin":   {late.Add(19*time.Minute + 50*time.Second), after(machinev1alpha1.MachineStatus{}, late), running, "Joining", late, 10 * time.Second},
		"AndNoMore":                  {late.Add(20 * time.Minute), after(machinev1alpha1.MachineStatus{}, late), running, "Failed", late, plan.AtRest},
		"ASecondRefusalCountsAnew": {late.Add(time.Hour), func() machinev1alpha1.MachineStatus {
			s := refusedWith("Throttled")
			s.RefusedUntil = &metav1.Time{Time: late}
			return s
		}(), running, "Joining", late.Add(time.Hour), plan.InFlight},
		"OrWhatWasInvalidIsMended":         {late, invalidSince(), plan.VM{State: plan.VMCreating}, "Provisioning", late, plan.InFlight},
		"AlsoWhereAStepStillWaits":         {late, invalidSince(), plan.VM{State: plan.VMAbsent}, "Pending", late, plan.InFlight},
		"AnErrorAfterTheVMCameIsNoRefusal": {late, func() machinev1alpha1.MachineStatus { s := refusedWith("Throttled"); s.ProviderID = id; return s }(), running, "Failed", time.Time{}, plan.AtRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.now, Observed{Machine: machine(tc.status), VM: tc.vm})
			got := time.Time{}
			if d.Status.RefusedUntil != nil {
				got = d.Status.RefusedUntil.Time
			}
			if d.Status.Phase != tc.phase || !got.Equal(tc.until) || d.CallAgain != tc.again {
				t.Errorf("phase %s, refused until %s, calls again after %s", d.Status.Phase, got, d.CallAgain)
			}
		})
	}
}

// TestTheNodeConfirmsTheLossOfAVM plans with a VM that its provider does not find.
func TestTheNodeConfirmsTheLossOfAVM(t *testing.T) {
	const id = "local:///zone-a/vm-1"
	lost := plan.VM{State: plan.VMLost, ProviderID: id, Message: "gone"}
	gone := &workernode.WorkerNode{Observation: workernode.Observation{NodeName: "m"}}
	full := readyNode()
	full.Observation.Conditions = append(full.Observation.Conditions, workernode.Condition{Type: "KernelDeadlock", Status: "True"})
	nodeFailed := machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "NodeUnhealthy", NodeRef: &machinev1alpha1.NodeReference{Name: "m"}}
	for name, tc := range map[string]struct {
		reason string
		before machinev1alpha1.MachineStatus
		vm     plan.VM
		node   *workernode.WorkerNode
		want   bool
	}{
		"NodeIsSilent":         {"A Node that stopped reporting confirms it.", phaseIs("Running"), lost, workerNodeThat("m", "Unknown"), true},
		"NodeIsNotReady":       {"So does one that is not Ready.", phaseIs("Running"), lost, workerNodeThat("m", "False"), true},
		"NodeIsGone":           {"So does one that is deleted, by a cloud-controller-manager for example.", phaseIs("Running"), lost, gone, true},
		"NodeIsReady":          {"A Node that is Ready contradicts it.", phaseIs("Running"), lost, readyNode(), false},
		"NodeIsReadyAndSick":   {"So does one that is Ready and has another bad condition.", phaseIs("Running"), lost, full, false},
		"NodeCannotBeObserved": {"A cluster that cannot be reached confirms nothing.", phaseIs("Running"), lost, unreachable(workerNodeThat("m", "Unknown")), false},
		"NodeIsUnknown":        {"Nor does a Machine whose Node was never observed.", phaseIs("Running"), lost, nil, false},
		"VMIsBack":             {"A VM that the cloud has again is not lost.", machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "VMLost", LossConfirmed: true}, plan.VM{State: plan.VMRunning, ProviderID: id}, workerNodeThat("m", "Unknown"), false},
		"FailedForItsNode":     {"A Machine may fail for its Node before its VM is missed.", nodeFailed, lost, workerNodeThat("m", "Unknown"), true},
		"StillLost":            {"A loss stays confirmed.", machinev1alpha1.MachineStatus{Phase: "Failed", FailureReason: "VMLost", LossConfirmed: true}, lost, gone, true},
		"NotLost":              {"A Node that is not Ready loses no VM.", phaseIs("Running"), plan.VM{State: plan.VMRunning, ProviderID: id}, workerNodeThat("m", "False"), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := Plan(soon, Observed{Machine: machine(tc.before), VM: tc.vm, WorkerNode: tc.node}).Status
			if got.LossConfirmed != tc.want {
				t.Errorf("%s\nphase %s, %s: confirmed %t, want %t", tc.reason, got.Phase, got.FailureReason, got.LossConfirmed, tc.want)
			}
		})
	}
}
