package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// stuckAfter is how long a Machine may be in a stage before it counts as stuck: no cloud takes as long, and a
// user who set a longer timeout wants to see that it is used.
const stuckAfter = 30 * time.Minute

var (
	machinesDesc = prometheus.NewDesc("drover_machines",
		"Machines by their phase.", []string{"namespace", "deployment", "set", "phase"}, nil)
	failedDesc = prometheus.NewDesc("drover_machines_failed",
		"Machines in the phase Failed, by their failureReason.", []string{"namespace", "deployment", "set", "reason"}, nil)
	stuckDesc = prometheus.NewDesc("drover_machines_stuck",
		"Machines that are for more than 30 minutes on their way to their Node, or in one stage of their deletion, by phase or stage.",
		[]string{"namespace", "deployment", "set", "stage"}, nil)
	frozenDesc = prometheus.NewDesc("drover_frozen",
		"1 for each MachineDeployment (set is empty) and MachineSet that is frozen, by the reason of its condition Frozen.",
		[]string{"namespace", "deployment", "set", "reason"}, nil)
	heldDesc = prometheus.NewDesc("drover_rollout_held",
		"1 for each MachineDeployment whose rollout waits for a user, a window or a gate, or whose template was rejected, by the reason of its condition Progressing.",
		[]string{"namespace", "deployment", "reason"}, nil)
	waveDesc = prometheus.NewDesc("drover_rollout_wave",
		"1 for each wave of a RolloutPolicy, by its state.", []string{"policy", "wave", "state"}, nil)
	reachableDesc = prometheus.NewDesc("drover_target_cluster_reachable",
		"1 if the API server of the cluster that a configuration describes can be reached, 0 if not; none while that is not known.",
		[]string{"kind", "namespace", "name"}, nil)
)

// gauges are computed from caches.
type gauges struct {
	// views has MachineSets and MachineDeployments.
	views client.Reader
	// manager reads Machines, RolloutPolicies, and the configurations of target clusters, from the manager's
	// cache.
	manager client.Reader
	now     func() time.Time
}

func (g gauges) describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{machinesDesc, failedDesc, stuckDesc, frozenDesc, heldDesc, waveDesc, reachableDesc} {
		c <- d
	}
}

func (g gauges) collect(ctx context.Context, c chan<- prometheus.Metric) error {
	for _, f := range []func(context.Context, chan<- prometheus.Metric) error{g.machines, g.frozen, g.waves, g.targets} {
		if err := f(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// A series of one metric, by the values of its labels.
type series [4]string

func send(c chan<- prometheus.Metric, d *prometheus.Desc, counts map[series]int) {
	for s, n := range counts {
		c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), s[:]...)
	}
}

func (g gauges) machines(ctx context.Context, c chan<- prometheus.Metric) error {
	l := &v1alpha1.MachineList{}
	if err := g.manager.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	phases, failed, stuck := map[series]int{}, map[series]int{}, map[series]int{}
	for i := range l.Items {
		m := &l.Items[i]
		of := func(value string) series {
			return series{m.GetNamespace(), m.GetLabels()[v1alpha1.LabelDeployment], m.GetLabels()[v1alpha1.LabelSet], value}
		}
		p := phaseOf(m)
		phases[of(string(p))]++
		if p == v1alpha1.MachineFailed {
			failed[of(string(m.Status.FailureReason))]++
		}
		if stage, since := stageOf(m, p); stage != "" && g.now().Sub(since) > stuckAfter {
			stuck[of(stage)]++
		}
	}
	send(c, machinesDesc, phases)
	send(c, failedDesc, failed)
	send(c, stuckDesc, stuck)
	return nil
}

func phaseOf(m *v1alpha1.Machine) v1alpha1.MachinePhase {
	switch {
	case m.GetDeletionTimestamp() != nil:
		return v1alpha1.MachineTerminating
	case m.Status.Phase == "":
		return v1alpha1.MachinePending
	}
	return m.Status.Phase
}

// stageOf returns the stage that a Machine is in, and its start; "" if the Machine is in its final state, or
// its phase is the stage.
func stageOf(m *v1alpha1.Machine, p v1alpha1.MachinePhase) (string, time.Time) {
	switch {
	case p.IsOnItsWay():
		return string(p), m.GetCreationTimestamp().Time
	case p == v1alpha1.MachineTerminating:
		if d := m.Status.Deletion; d != nil {
			return string(d.Stage), d.Since.Time
		}
		if t := m.GetDeletionTimestamp(); t != nil {
			return string(p), t.Time
		}
	}
	return "", time.Time{}
}

func (g gauges) frozen(ctx context.Context, c chan<- prometheus.Metric) error {
	deployments, machineSets, err := owners(ctx, g.views)
	if err != nil {
		return err
	}
	frozen := map[series]int{}
	note := func(o *Owner, deployment, set string) {
		if f := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionFrozen); f != nil && f.Status == metav1.ConditionTrue {
			frozen[series{o.GetNamespace(), deployment, set, f.Reason}] = 1
		}
	}
	for i := range deployments {
		d := &deployments[i]
		note(&d.Owner, d.GetName(), "")
		if p := meta.FindStatusCondition(d.Status.Conditions, v1alpha1.ConditionProgressing); p != nil && (p.Reason == v1alpha1.ReasonMachineDeploymentPaused || deployment.IsGate(p.Reason)) {
			c <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, 1, d.GetNamespace(), d.GetName(), p.Reason)
		}
	}
	for i := range machineSets {
		note(&machineSets[i].Owner, machineSets[i].GetLabels()[v1alpha1.LabelDeployment], machineSets[i].GetName())
	}
	send(c, frozenDesc, frozen)
	return nil
}

// waves of policies as their controller recorded them. A policy that it has not seen yet has none.
func (g gauges) waves(ctx context.Context, c chan<- prometheus.Metric) error {
	l := &v1alpha1.RolloutPolicyList{}
	if err := g.manager.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range l.Items {
		for _, w := range l.Items[i].Status.Waves {
			c <- prometheus.MustNewConstMetric(waveDesc, prometheus.GaugeValue, 1, l.Items[i].GetName(), w.Name, string(w.State))
		}
	}
	return nil
}

func owners(ctx context.Context, views client.Reader) ([]Deployment, []Set, error) {
	d, s := &DeploymentList{}, &SetList{}
	if err := views.List(ctx, d, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	err := views.List(ctx, s, client.UnsafeDisableDeepCopy)
	return d.Items, s.Items, err
}

func (g gauges) targets(ctx context.Context, c chan<- prometheus.Metric) error {
	shared, own := &clusterv1alpha1.ClusterProviderConfigList{}, &clusterv1alpha1.ProviderConfigList{}
	if err := g.manager.List(ctx, shared); err != nil {
		return err
	}
	if err := g.manager.List(ctx, own); err != nil {
		return err
	}
	count := func(kind string, o client.Object, s *clusterv1alpha1.ProviderConfigStatus) {
		value, known := map[corev1.ConditionStatus]float64{corev1.ConditionTrue: 1, corev1.ConditionFalse: 0}[s.GetCondition(clusterv1alpha1.ConditionReachable).Status]
		if known {
			c <- prometheus.MustNewConstMetric(reachableDesc, prometheus.GaugeValue, value, kind, o.GetNamespace(), o.GetName())
		}
	}
	for i := range shared.Items {
		count(clusterv1alpha1.ClusterProviderConfigGroupVersionKind.Kind, &shared.Items[i], &shared.Items[i].Status)
	}
	for i := range own.Items {
		count(clusterv1alpha1.ProviderConfigGroupVersionKind.Kind, &own.Items[i], &own.Items[i].Status)
	}
	return nil
}
