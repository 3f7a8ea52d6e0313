package metrics

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

type machineOption func(*v1alpha1.Machine)

func machine(name, deployment, set string, phase v1alpha1.MachinePhase, options ...machineOption) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: ago(time.Hour), Labels: map[string]string{}}}
	if deployment != "" {
		m.Labels[v1alpha1.LabelDeployment] = deployment
	}
	if set != "" {
		m.Labels[v1alpha1.LabelSet] = set
	}
	m.Status.Phase = phase
	for _, o := range options {
		o(m)
	}
	return m
}

func failedWith(r v1alpha1.FailureReason) machineOption {
	return func(m *v1alpha1.Machine) { m.Status.FailureReason = r }
}

func created(d time.Duration) machineOption {
	return func(m *v1alpha1.Machine) { m.CreationTimestamp = ago(d) }
}

func deleted(stage v1alpha1.DeletionStage, since time.Duration) machineOption {
	return func(m *v1alpha1.Machine) {
		m.DeletionTimestamp = ptr.To(ago(2 * since))
		m.Finalizers = []string{v1alpha1.FinalizerTerminator}
		if stage != "" {
			m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: stage, Since: ago(since)}
		}
	}
}

func joined(after time.Duration) machineOption {
	return func(m *v1alpha1.Machine) {
		at := metav1.NewTime(m.CreationTimestamp.Add(after))
		m.Status.LastOperation = &v1alpha1.LastOperation{Type: v1alpha1.OperationJoin, State: v1alpha1.OperationSuccessful, LastUpdateTime: &at}
	}
}

func ownerNamed(name, frozen string) Owner {
	o := Owner{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if frozen != "" {
		o.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionFrozen, Status: metav1.ConditionTrue, Reason: frozen}}
	} else {
		o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFrozen, Status: metav1.ConditionFalse, Reason: "NotFrozen"}}
	}
	return o
}

// deploymentWith has a condition Progressing.
func deploymentWith(name string, status metav1.ConditionStatus, reason string) *Deployment {
	d := &Deployment{ownerNamed(name, "")}
	d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: status, Reason: reason})
	return d
}

func setOf(deployment, name, frozen string) *Set {
	s := &Set{ownerNamed(name, frozen)}
	if deployment != "" {
		s.Labels = map[string]string{v1alpha1.LabelDeployment: deployment}
	}
	return s
}

// policyWith has waves.
func policyWith(name string, waves ...v1alpha1.WaveStatus) *v1alpha1.RolloutPolicy {
	p := &v1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.Waves = waves
	return p
}

func config(o client.Object, status *xpv2.ConditionedStatus, name string, reachable corev1.ConditionStatus) client.Object {
	o.SetName(name)
	if reachable != "" {
		status.SetConditions(xpv2.Condition{Type: clusterv1alpha1.ConditionReachable, Status: reachable})
	}
	return o
}

// newCollector returns a collector of a cluster with these objects.
func newCollector(t *testing.T, objects ...client.Object) (*collector, client.Client) {
	t.Helper()
	s := runtime.NewScheme()
	s.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.Machine{}, &v1alpha1.MachineList{}, &v1alpha1.RolloutPolicy{}, &v1alpha1.RolloutPolicyList{})
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	cl := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
	elected := make(chan struct{})
	close(elected)
	return &collector{
		gauges:      gauges{views: cl, manager: cl, now: func() time.Time { return now }},
		transitions: newTransitions(), elected: elected, log: func(err error) { t.Error(err) },
	}, cl
}

func expect(t *testing.T, c *collector, want string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestGauges(t *testing.T) {
	shared, own := &clusterv1alpha1.ClusterProviderConfig{}, &clusterv1alpha1.ProviderConfig{}
	fresh := &clusterv1alpha1.ClusterProviderConfig{}
	own.Namespace = "ns"
	c, cl := newCollector(t,
		machine("a", "md", "md-1", v1alpha1.MachineRunning),
		machine("b", "md", "md-1", v1alpha1.MachineRunning),
		machine("c", "md", "md-2", v1alpha1.MachineJoining, created(31*time.Minute)),
		machine("d", "md", "md-2", v1alpha1.MachineJoining, created(29*time.Minute)),
		machine("e", "", "lone", v1alpha1.MachineFailed, failedWith(v1alpha1.FailureVMLost)),
		machine("f", "", "lone", v1alpha1.MachineRunning, deleted(v1alpha1.DeletionDraining, time.Hour)),
		machine("g", "", "lone", v1alpha1.MachineTerminating, deleted(v1alpha1.DeletionDraining, time.Minute)),
		machine("h", "", "", ""),
		machine("i", "", "", v1alpha1.MachineFailed, failedWith(v1alpha1.FailureJoinTimeout), deleted("", time.Hour)),
		&Deployment{ownerNamed("md", "Overshoot")}, &Deployment{ownerNamed("other", "")},
		deploymentWith("canary", "Unknown", "AwaitingApproval"), deploymentWith("bad", "False", "RolloutRejected"), deploymentWith("soaks", "True", "Soaking"),
		policyWith("fleet", v1alpha1.WaveStatus{Name: "development", State: v1alpha1.WaveFailed}, v1alpha1.WaveStatus{Name: "production", State: v1alpha1.WaveComplete}),
		policyWith("zones", v1alpha1.WaveStatus{Name: "development", State: v1alpha1.WaveOverdue}), policyWith("unseen"),
		setOf("md", "md-1", "DeploymentFrozen"), setOf("", "lone", "TargetUnreachable"),
		config(shared, &shared.Status.ConditionedStatus, "up", corev1.ConditionTrue),
		config(own, &own.Status.ConditionedStatus, "down", corev1.ConditionFalse),
		config(fresh, &fresh.Status.ConditionedStatus, "fresh", ""),
	)
	expect(t, c, `
# HELP drover_frozen 1 for each MachineDeployment (set is empty) and MachineSet that is frozen, by the reason of its condition Frozen.
# TYPE drover_frozen gauge
drover_frozen{deployment="",namespace="ns",reason="TargetUnreachable",set="lone"} 1
drover_frozen{deployment="md",namespace="ns",reason="DeploymentFrozen",set="md-1"} 1
drover_frozen{deployment="md",namespace="ns",reason="Overshoot",set=""} 1
# HELP drover_machines Machines by their phase.
# TYPE drover_machines gauge
drover_machines{deployment="",namespace="ns",phase="Failed",set="lone"} 1
drover_machines{deployment="",namespace="ns",phase="Pending",set=""} 1
drover_machines{deployment="",namespace="ns",phase="Terminating",set=""} 1
drover_machines{deployment="",namespace="ns",phase="Terminating",set="lone"} 2
drover_machines{deployment="md",namespace="ns",phase="Joining",set="md-2"} 2
drover_machines{deployment="md",namespace="ns",phase="Running",set="md-1"} 2
# HELP drover_machines_failed Machines in the phase Failed, by their failureReason.
# TYPE drover_machines_failed gauge
drover_machines_failed{deployment="",namespace="ns",reason="VMLost",set="lone"} 1
# HELP drover_machines_stuck Machines that are for more than 30 minutes on their way to their Node, or in one stage of their deletion, by phase or stage.
# TYPE drover_machines_stuck gauge
drover_machines_stuck{deployment="",namespace="ns",set="",stage="Pending"} 1
drover_machines_stuck{deployment="",namespace="ns",set="",stage="Terminating"} 1
drover_machines_stuck{deployment="",namespace="ns",set="lone",stage="Draining"} 1
drover_machines_stuck{deployment="md",namespace="ns",set="md-2",stage="Joining"} 1
# HELP drover_rollout_held 1 for each MachineDeployment whose rollout waits for a user, a window or a gate, or whose template was rejected, by the reason of its condition Progressing.
# TYPE drover_rollout_held gauge
drover_rollout_held{deployment="bad",namespace="ns",reason="RolloutRejected"} 1
drover_rollout_held{deployment="canary",namespace="ns",reason="AwaitingApproval"} 1
# HELP drover_rollout_wave 1 for each wave of a RolloutPolicy, by its state.
# TYPE drover_rollout_wave gauge
drover_rollout_wave{policy="fleet",state="Complete",wave="production"} 1
drover_rollout_wave{policy="fleet",state="Failed",wave="development"} 1
drover_rollout_wave{policy="zones",state="Overdue",wave="development"} 1
# HELP drover_target_cluster_reachable 1 if the API server of the cluster that a configuration describes can be reached, 0 if not; none while that is not known.
# TYPE drover_target_cluster_reachable gauge
drover_target_cluster_reachable{kind="ClusterProviderConfig",name="up",namespace=""} 1
drover_target_cluster_reachable{kind="ProviderConfig",name="down",namespace="ns"} 0
`, "drover_frozen", "drover_machines", "drover_machines_failed", "drover_machines_stuck", "drover_rollout_held", "drover_rollout_wave", "drover_target_cluster_reachable")

	t.Run("NothingIsLeftOfWhatIsGone", func(t *testing.T) {
		for _, o := range []client.Object{shared, own, fresh, &Deployment{ownerNamed("md", "")}, &Deployment{ownerNamed("other", "")}, &Deployment{ownerNamed("canary", "")}, &Deployment{ownerNamed("bad", "")}, &Deployment{ownerNamed("soaks", "")}, policyWith("fleet"), policyWith("zones"), policyWith("unseen"), setOf("", "md-1", ""), setOf("", "lone", "")} {
			if err := cl.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range strings.Split("abcdefghi", "") {
			m := machine(name, "", "", "")
			if err := cl.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if err := cl.Delete(t.Context(), m); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		if n := testutil.CollectAndCount(c); n != 0 {
			t.Errorf("%d series are left", n)
		}
	})
}

func TestOnlyTheLeaderReports(t *testing.T) {
	c, _ := newCollector(t, machine("a", "md", "md-1", v1alpha1.MachineRunning))
	c.elected = make(chan struct{})
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d series", n)
	}
}

func TestTransitions(t *testing.T) {
	failed := machine("a", "md", "md-1", v1alpha1.MachineFailed, failedWith(v1alpha1.FailureVMLost))
	joining, running := machine("b", "md", "md-1", v1alpha1.MachineJoining), machine("b", "md", "md-1", v1alpha1.MachineRunning, joined(100*time.Second))
	unknown := machine("b", "md", "md-1", v1alpha1.MachineUnknown, joined(100*time.Second))
	terminating := func(m *v1alpha1.Machine) *v1alpha1.Machine {
		out := *m
		deleted("", time.Minute)(&out)
		return &out
	}
	for name, tc := range map[string]struct {
		changes      [][2]*v1alpha1.Machine
		replacements map[string]float64
		ready        int
	}{
		"AFailedMachineThatIsGivenUpCountsOnce": {
			[][2]*v1alpha1.Machine{{failed, terminating(failed)}, {terminating(failed), terminating(failed)}},
			map[string]float64{"VMLost": 1}, 0,
		},
		"OneThatIsScaledDownDoesNot": {[][2]*v1alpha1.Machine{{running, terminating(running)}}, nil, 0},
		"AMachineIsReadyOnce": {
			[][2]*v1alpha1.Machine{{joining, running}, {running, running}, {running, unknown}, {unknown, running}}, nil, 1,
		},
		"OneThatWasThereAlreadyReportsNothing": {[][2]*v1alpha1.Machine{{running, running}}, nil, 0},
		"AMachineThatStandsAloneIsNobodys": {
			[][2]*v1alpha1.Machine{{machine("x", "", "", v1alpha1.MachineJoining), machine("x", "", "", v1alpha1.MachineRunning, joined(time.Minute))}}, nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCollector(t, &Deployment{ownerNamed("md", "")})
			for _, ch := range tc.changes {
				c.transitions.machine(ch[0], ch[1], now)
			}
			md := owner{namespace: "ns", deployment: "md"}
			c.collectAll(t)
			for _, reason := range failureReasons {
				if got, want := testutil.ToFloat64(c.replacement(md, reason)), tc.replacements[string(reason)]; got != want {
					t.Errorf("%s: %v replacements, want %v", reason, got, want)
				}
			}
			if got := samples(t, c, "drover_machine_ready_seconds"); got.count != tc.ready || tc.ready > 0 && got.sum != 100 {
				t.Errorf("ready: %+v", got)
			}
		})
	}
}

func TestReboots(t *testing.T) {
	r := func(id, byHealth string, state v1alpha1.RebootState) *v1alpha1.Machine {
		m := machine("a", "md", "md-1", v1alpha1.MachineRunning)
		m.Status.Reboot = &v1alpha1.RebootStatus{ID: id, State: state, ByHealth: byHealth}
		return m
	}
	none := machine("a", "md", "md-1", v1alpha1.MachineRunning)
	const rebooting, succeeded, failed = v1alpha1.RebootRebooting, v1alpha1.RebootSucceeded, v1alpha1.RebootFailed
	for name, tc := range map[string]struct {
		changes [][2]*v1alpha1.Machine
		want    map[string]float64
	}{
		"OneThatEndsCountsOnce": {
			[][2]*v1alpha1.Machine{{none, r("1", "", rebooting)}, {r("1", "", rebooting), r("1", "", succeeded)}, {r("1", "", succeeded), r("1", "", succeeded)}},
			map[string]float64{"user Succeeded": 1},
		},
		"HealthIsNotAUser":                        {[][2]*v1alpha1.Machine{{r("1", "bad", rebooting), r("1", "bad", failed)}}, map[string]float64{"health Failed": 1}},
		"TheNextOneCountsAlsoIfItIsRefusedAtOnce": {[][2]*v1alpha1.Machine{{r("1", "", succeeded), r("2", "", failed)}}, map[string]float64{"user Failed": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCollector(t, &Deployment{ownerNamed("md", "")})
			for _, ch := range tc.changes {
				c.transitions.machine(ch[0], ch[1], now)
			}
			c.collectAll(t)
			for _, by := range []string{byHealth, byUser} {
				for _, result := range []v1alpha1.RebootState{succeeded, failed} {
					if got, want := testutil.ToFloat64(c.reboot(owner{namespace: "ns", deployment: "md"}, by, result)), tc.want[by+" "+string(result)]; got != want {
						t.Errorf("by %s, %s: %v, want %v", by, result, got, want)
					}
				}
			}
		})
	}
}

func TestDrained(t *testing.T) {
	m := func(stage v1alpha1.DeletionStage, options ...machineOption) *v1alpha1.Machine {
		out := machine("m", "md", "md-1", v1alpha1.MachineTerminating, deleted(stage, 150*time.Second))
		out.Status.NodeRef = &v1alpha1.NodeReference{Kind: "Node", Name: "n"}
		for _, o := range options {
			o(out)
		}
		return out
	}
	began := func(d time.Duration) machineOption {
		return func(m *v1alpha1.Machine) { m.Status.Drain = &v1alpha1.DrainStatus{StartTime: ago(d)} }
	}
	noNode := func(m *v1alpha1.Machine) { m.Status.NodeRef = nil }
	alone := func(m *v1alpha1.Machine) { m.Labels = nil }
	kept := func(m *v1alpha1.Machine) { m.DeletionTimestamp = nil }
	for name, tc := range map[string]struct {
		stages  []v1alpha1.DeletionStage
		options []machineOption
		want    sample
	}{
		"ADrainLastsFromTheDeletionOn":     {want: sample{1, 300}},
		"HooksThatHeldItDoNotCount":        {options: []machineOption{began(time.Minute)}, want: sample{1, 60}},
		"ADrainBeforeTheDeletionDoesNot":   {options: []machineOption{began(time.Hour)}, want: sample{1, 300}},
		"WhatNeverHadANodeIsNotDrained":    {options: []machineOption{noNode}},
		"NorIsAMachineThatStandsAlone":     {options: []machineOption{alone}},
		"NorWhatSomebodyForcedAway":        {options: []machineOption{kept}},
		"OnlyTheEndOfItCounts":             {stages: []v1alpha1.DeletionStage{v1alpha1.DeletionPreDrainHooks, v1alpha1.DeletionDraining, v1alpha1.DeletionDetachingVolumes, v1alpha1.DeletionDeletingNode}},
		"AndOnce":                          {stages: []v1alpha1.DeletionStage{v1alpha1.DeletionDeletingNode, v1alpha1.DeletionPreTerminateHooks, v1alpha1.DeletionDeletingVM, v1alpha1.DeletionDeletingCompanions}, want: sample{1, 300}},
		"AStageThatTakesNoTimeIsNotMissed": {stages: []v1alpha1.DeletionStage{"", v1alpha1.DeletionDeletingCompanions}, want: sample{1, 300}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCollector(t, &Deployment{ownerNamed("md", "")})
			stages := tc.stages
			if stages == nil {
				stages = []v1alpha1.DeletionStage{v1alpha1.DeletionDraining, v1alpha1.DeletionDeletingVM}
			}
			for i := range stages[1:] {
				c.transitions.machine(m(stages[i], tc.options...), m(stages[i+1], tc.options...), now)
			}
			if got := samples(t, c, "drover_node_drain_seconds"); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		stage   v1alpha1.DeletionStage
		options []machineOption
		want    sample
	}{
		"WithoutAVMTheNodeGoesWithTheMachine": {stage: v1alpha1.DeletionDeletingNode, want: sample{1, 300}},
		"EvenIfNoStageWasReported":            {want: sample{1, 300}},
		"ADrainThatWasCountedIsNotCounted":    {stage: v1alpha1.DeletionDeletingVM},
		"AMachineWithoutANodeHadNone":         {stage: v1alpha1.DeletionDraining, options: []machineOption{noNode}},
		"AMachineThatStandsAloneIsNobodys":    {stage: v1alpha1.DeletionDraining, options: []machineOption{alone}},
		"WhatSomebodyForcedAwayIsNotDrained":  {stage: v1alpha1.DeletionDraining, options: []machineOption{kept}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newCollector(t, &Deployment{ownerNamed("md", "")})
			c.transitions.machineGone(m(tc.stage, tc.options...), now)
			if got := samples(t, c, "drover_node_drain_seconds"); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestWhatOwnersHadGoesWithThem includes events that arrive after the owner is gone.
func TestWhatOwnersHadGoesWithThem(t *testing.T) {
	md := &Deployment{ownerNamed("md", "")}
	c, cl := newCollector(t, md, setOf("", "lone", ""), setOf("md", "md-1", ""))
	// Two histograms, the counters of reboots and those of each reason, of a deployment and a set.
	if got, want := testutil.CollectAndCount(c), 2*(2+4+len(failureReasons)); got != want {
		t.Errorf("%d series, want %d", got, want)
	}
	if err := cl.Delete(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	if got, want := testutil.CollectAndCount(c), 2+4+len(failureReasons); got != want {
		t.Errorf("%d series, want %d", got, want)
	}
	c.transitions.machine(machine("a", "md", "md-1", v1alpha1.MachineJoining), machine("a", "md", "md-1", v1alpha1.MachineRunning, joined(time.Minute)), now)
	if got, want := testutil.CollectAndCount(c), 2+4+len(failureReasons); got != want {
		t.Errorf("%d series, want %d", got, want)
	}
}

func TestNamesAndHelpFollowTheConventions(t *testing.T) {
	c, _ := newCollector(t, machine("a", "md", "md-1", v1alpha1.MachineRunning), &Deployment{ownerNamed("md", "Overshoot")})
	problems, err := testutil.CollectAndLint(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
