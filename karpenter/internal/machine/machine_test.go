package machine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/capacity"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

var small = offer.Offering{
	Class: drover.Reference{Kind: "MachineClass", Name: "small"}, InstanceType: "s1", CapacityType: "spot", Zone: "a", FailureDomain: "domain-a", Price: 1,
	Node: capacity.Node{Capacity: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}, Architecture: "arm64", OperatingSystem: "linux"},
}

func claim() *karpenterv1.NodeClaim {
	c := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-x7k2p", UID: "0f6c"}}
	c.Labels = map[string]string{karpenterv1.NodePoolLabelKey: "pool", "example.org/team": "a", corev1.LabelArchStable: "amd64", "node-restriction.kubernetes.io/x": "y"}
	c.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	c.Spec.StartupTaints = []corev1.Taint{
		{Key: "network", Effect: corev1.TaintEffectNoExecute}, {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}, {Key: "network", Value: "twice", Effect: corev1.TaintEffectNoExecute},
	}
	return c
}

func TestTheMachineOfANodeClaim(t *testing.T) {
	class := v1alpha1.DroverNodeClassSpec{Version: "v1.35.4", ClusterRef: v1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}}
	m := New("nodes", "cluster-uid", claim(), class, small)
	domain := "domain-a"
	want := &drover.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "nodes", Name: "karpenter-0f6c",
			Labels:      map[string]string{"karpenter.drover.dev/cluster": "cluster-uid", "karpenter.drover.dev/nodeclaim": "pool-x7k2p"},
			Annotations: map[string]string{"karpenter.drover.dev/nodeclaim-uid": "0f6c", "pre-drain.hook.machine.drover.dev/karpenter": "true"},
			Finalizers:  []string{"machine.drover.dev/terminator"},
		},
		Spec: drover.MachineSpec{
			ClassRef: drover.Reference{Kind: "MachineClass", Name: "small"}, Version: "v1.35.4", ClusterRef: drover.Reference{Kind: "ProviderConfig", Name: "target"},
			Metadata: drover.NodeMetadata{Labels: map[string]string{
				"node.kubernetes.io/instance-type": "s1", "topology.kubernetes.io/zone": "a", "karpenter.sh/capacity-type": "spot",
				"karpenter.sh/nodepool": "pool", "example.org/team": "a",
			}},
			Taints: []drover.Taint{{Key: "dedicated", Value: "a", Effect: "NoSchedule"}},
			// A startup taint must not repeat a taint, nor be there twice.
			StartupTaints: []drover.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}, {Key: "network", Effect: "NoExecute"}},
			FailureDomain: &domain,
		},
	}
	if d := cmp.Diff(want, m); d != "" {
		t.Error(d)
	}
}

func TestAZoneWithoutAFailureDomainLeavesThePlaceToTheClass(t *testing.T) {
	of := small
	of.FailureDomain = ""
	m := New("nodes", "c", claim(), v1alpha1.DroverNodeClassSpec{}, of)
	if m.Spec.FailureDomain != nil || ZoneOf(m) != "a" || KeyOf(m) != of.Key() {
		t.Errorf("failure domain %v, zone %s, key %v", m.Spec.FailureDomain, ZoneOf(m), KeyOf(m))
	}
}

func TestALongNameOfANodeClaimFitsIntoALabel(t *testing.T) {
	c := claim()
	c.Name = strings.Repeat("a", 62) + ".b"
	m := New("nodes", "c", c, v1alpha1.DroverNodeClassSpec{}, small)
	if got := m.Labels[drover.LabelNodeClaim]; got != strings.Repeat("a", 62) {
		t.Errorf("label %q", got)
	}
}

func TestKarpenterSeesTheMachine(t *testing.T) {
	m := New("nodes", "c", claim(), v1alpha1.DroverNodeClassSpec{}, small)
	m.Status = &drover.MachineStatus{ProviderID: "local://vm-1", NodeRef: &drover.NodeReference{Name: "node-1"}}
	c := Claim(m, offer.Offer{Offerings: []offer.Offering{small}})
	if c.Status.ProviderID != "local://vm-1" || c.Status.NodeName != "node-1" || c.Labels[corev1.LabelArchStable] != "arm64" || c.Labels[karpenterv1.CapacityTypeLabelKey] != "spot" {
		t.Errorf("NodeClaim %+v", c)
	}
	if c.Status.Capacity.Cpu().String() != "2" || c.Status.Allocatable.Memory().String() != "4Gi" {
		t.Errorf("capacity %v, allocatable %v", c.Status.Capacity, c.Status.Allocatable)
	}
	if c := Claim(m, offer.Offer{}); c.Status.Capacity != nil || c.Labels[corev1.LabelTopologyZone] != "a" {
		t.Errorf("without its class, the NodeClaim is %+v", c)
	}
}

// machineOf decodes a Machine.
func machineOf(t *testing.T, text string) *drover.Machine {
	t.Helper()
	m := &drover.Machine{}
	if err := yaml.UnmarshalStrict([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheVerdictOnACreation(t *testing.T) {
	for name, c := range map[string]struct {
		machine string
		want    Verdict
	}{
		"ANewMachineIsBeingCreated":      {`{}`, Verdict{Progress: Creating}},
		"AVMWithAProviderIDIsCreated":    {`status: {providerID: "local://a", phase: Joining}`, Verdict{Progress: Created}},
		"AWaitForInputsIsNoRefusal":      {`status: {phase: Pending, lastOperation: {type: Create, state: Processing, description: waits for its token}, conditions: [{type: Valid, status: "True", reason: Valid, message: "", lastTransitionTime: null}, {type: InfrastructureReady, status: "False", reason: Waiting, message: m, lastTransitionTime: null}]}`, Verdict{Creating, "", "waits for its token"}},
		"NoRoomIsExhausted":              {`status: {phase: Provisioning, lastOperation: {type: Create, state: Processing, errorCode: CapacityExhausted, description: no room in a}}`, Verdict{Exhausted, "CapacityExhausted", "no room in a"}},
		"NoQuotaIsExhausted":             {`status: {phase: Provisioning, lastOperation: {type: Create, state: Processing, errorCode: QuotaExceeded, description: 10 VMs}}`, Verdict{Exhausted, "QuotaExceeded", "10 VMs"}},
		"ATimeoutOfCapacityIsExhausted":  {`status: {phase: Failed, failureReason: CapacityTimeout, failureMessage: no room}`, Verdict{Exhausted, "CapacityTimeout", "no room"}},
		"AVMThatCameAfterAllIsCreated":   {`status: {providerID: "local://a", phase: Provisioning, lastOperation: {type: Create, state: Processing, errorCode: CapacityExhausted}}`, Verdict{Progress: Created}},
		"ThrottlingIsRetriedByDrover":    {`status: {phase: Provisioning, lastOperation: {type: Create, state: Processing, errorCode: Throttled, description: later}}`, Verdict{Creating, "Throttled", "later"}},
		"AnInvalidMachineIsRefused":      {`status: {phase: Pending, conditions: [{type: Valid, status: "False", reason: ClassNotFound, message: there is no class, lastTransitionTime: null}]}`, Verdict{Refused, "ClassNotFound", "there is no class"}},
		"ARefusedRequestIsRefused":       {`status: {phase: Provisioning, lastOperation: {type: Create, state: Processing, errorCode: PermissionDenied}, conditions: [{type: InfrastructureReady, status: "False", reason: PermissionDenied, message: bad token, lastTransitionTime: null}]}`, Verdict{Refused, "PermissionDenied", "bad token"}},
		"AFailedCreationIsFailed":        {`status: {phase: Failed, failureReason: CreateFailed, failureMessage: boom}`, Verdict{Failed, "CreateFailed", "boom"}},
		"ALostVMIsFailed":                {`status: {phase: Failed, providerID: "local://a", failureReason: VMLost, failureMessage: gone}`, Verdict{Failed, "VMLost", "gone"}},
		"AMachineThatIsDeletedHasNoNode": {`{metadata: {name: m, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {providerID: "local://a"}}`, Verdict{Failed, "MachineDeleted", "the Machine m is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, Judge(machineOf(t, c.machine))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheFateOfMachinesAndNodeClaims(t *testing.T) {
	const hooked = `metadata: {annotations: {pre-drain.hook.machine.drover.dev/karpenter: "true"}`
	deleted := claim()
	deleted.DeletionTimestamp = &metav1.Time{}
	for name, c := range map[string]struct {
		machine string
		claim   *karpenterv1.NodeClaim
		want    Fate
	}{
		"BothStay":                                     {hooked + `}`, claim(), Keep},
		"WithoutItsNodeClaimTheMachineGoes":            {hooked + `}`, nil, DeleteMachine},
		"WithoutItsNodeClaimNothingHoldsTheDrain":      {hooked + `, deletionTimestamp: "2026-01-01T00:00:00Z"}`, nil, DeleteMachine},
		"AMachineThatGoesIsLeftAlone":                  {`metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}`, nil, Keep},
		"KarpenterDeletesTheMachineOfItsNodeClaim":     {hooked + `}`, deleted, Keep},
		"WithItsMachineTheNodeClaimGoes":               {hooked + `, deletionTimestamp: "2026-01-01T00:00:00Z"}`, claim(), DeleteClaim},
		"WithALostVMTheNodeClaimGoes":                  {`status: {phase: Failed, failureReason: VMLost, lossConfirmed: true}`, claim(), DeleteClaim},
		"ALossThatTheNodeDoesNotConfirmChangesNothing": {`status: {phase: Failed, failureReason: VMLost}`, claim(), Keep},
		"WithAFailedVMTheNodeClaimGoes":                {`status: {phase: Failed, failureReason: VMFailed}`, claim(), DeleteClaim},
		"WithANodeThatNeverJoinedTheNodeClaimGoes":     {`status: {phase: Failed, failureReason: JoinTimeout}`, claim(), DeleteClaim},
		"WithANodeThatSomebodyDeletedTheNodeClaimGoes": {`status: {phase: Failed, failureReason: NodeDeleted}`, claim(), DeleteClaim},
		"OfAnUnhealthyNodeTheNodeRepairDecides":        {`status: {phase: Failed, failureReason: NodeUnhealthy}`, claim(), Keep},
		"WhereTheCloudHasNoRoomTheCreationDecides":     {`status: {phase: Failed, failureReason: CapacityTimeout}`, claim(), Keep},
		"AMachineWhoseFailureIsTakenBackKeepsItsClaim": {`status: {phase: Running, failureReason: JoinTimeout}`, claim(), Keep},
		"ANodeClaimThatGoesIsNotDeletedASecondTime":    {`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}}`, deleted, Keep},
	} {
		t.Run(name, func(t *testing.T) {
			if got, cause := Decide(machineOf(t, c.machine), c.claim); got != c.want || (cause == "") != (c.want == Keep) {
				t.Errorf("%s, %q", got, cause)
			}
		})
	}
}

func TestWhoWaitsForWhomAtTheNode(t *testing.T) {
	const deleting = `metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}` + "\n"
	for name, c := range map[string]struct {
		machine string
		want    bool
	}{
		"AMachineThatStaysKeepsItsNode":        {`status: {deletion: {stage: DeletingNode, finalizers: [karpenter.sh/termination]}}`, false},
		"ADeletionThatHasNotBegunKeepsTheNode": {deleting, false},
		"ADrainKeepsTheNode":                   {deleting + `status: {deletion: {stage: Draining}}`, false},
		"VolumesKeepTheNode":                   {deleting + `status: {deletion: {stage: DetachingVolumes}}`, false},
		"ANodeThatOnlyKarpenterHoldsIsLetGo":   {deleting + `status: {deletion: {stage: DeletingNode, finalizers: [karpenter.sh/termination]}}`, true},
		"ANodeThatOthersHoldTooIsNot":          {deleting + `status: {deletion: {stage: DeletingNode, finalizers: [karpenter.sh/termination, example.org/x]}}`, false},
		"ANodeWhoseFinalizersAreNotKnownIsNot": {deleting + `status: {deletion: {stage: DeletingNode}}`, false},
		"ANodeThatDroverLeftBehindIsLetGo":     {deleting + `status: {deletion: {stage: DeletingVM}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LetsNodeGo(machineOf(t, c.machine)); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}

func TestDrift(t *testing.T) {
	other := small
	other.Class.Name, other.InstanceType = "large", "l1"
	elsewhere := small
	elsewhere.Zone, elsewhere.FailureDomain = "b", "domain-b"
	m := New("nodes", "c", claim(), v1alpha1.DroverNodeClassSpec{Version: "v1.35.4"}, small)
	for name, c := range map[string]struct {
		version string
		offer   offer.Offer
		want    cloudprovider.DriftReason
	}{
		"AMachineLikeItsClassHasNotDrifted": {"v1.35.4", offer.Offer{Offerings: []offer.Offering{small}}, ""},
		"AnotherVersionDrifts":              {"v1.35.5", offer.Offer{Offerings: []offer.Offering{small}}, VersionDrifted},
		"AClassThatIsOfferedNoMoreDrifts":   {"v1.35.4", offer.Offer{Offerings: []offer.Offering{other}}, ClassDrifted},
		"AZoneThatIsOfferedNoMoreDrifts":    {"v1.35.4", offer.Offer{Offerings: []offer.Offering{elsewhere, other}}, ZoneDrifted},
		"WithProblemsNothingDrifts":         {"v1.35.5", offer.Offer{Offerings: []offer.Offering{other}, Problems: []offer.Problem{{}}}, ""},
		"WithoutAnyOfferingNothingDrifts":   {"v1.35.5", offer.Offer{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Drift(m, v1alpha1.DroverNodeClassSpec{Version: c.version}, c.offer); got != c.want {
				t.Errorf("%q", got)
			}
		})
	}
}
