package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// failureReasons are all reasons: if a series started with its first failure, rate and increase would miss that
// one.
var failureReasons = []v1alpha1.FailureReason{
	v1alpha1.FailureCreateFailed, v1alpha1.FailureCreateUnknown, v1alpha1.FailureCapacityTimeout, v1alpha1.FailureVMLost, v1alpha1.FailureVMFailed,
	v1alpha1.FailureNodeDeleted, v1alpha1.FailureJoinTimeout, v1alpha1.FailureNodeUnhealthy,
}

// An owner is a MachineDeployment, or a MachineSet without one: the sets of a MachineDeployment are created and
// deleted by its rollouts.
type owner struct{ namespace, deployment, set string }

func (o owner) labels() prometheus.Labels {
	return prometheus.Labels{"namespace": o.namespace, "deployment": o.deployment, "set": o.set}
}

// ownerOf returns the owner of a Machine, false if it has none.
func ownerOf(m *v1alpha1.Machine) (owner, bool) {
	o := owner{namespace: m.GetNamespace(), deployment: m.GetLabels()[v1alpha1.LabelDeployment]}
	if o.deployment == "" {
		o.set = m.GetLabels()[v1alpha1.LabelSet]
	}
	return o, o.deployment != "" || o.set != ""
}

// transitions counts the transitions of Machines.
type transitions struct {
	replacements *prometheus.CounterVec
	reboots      *prometheus.CounterVec
	ready, drain *prometheus.HistogramVec

	mu    sync.Mutex
	known map[owner]bool
}

func newTransitions() *transitions {
	by := []string{"namespace", "deployment", "set"}
	return &transitions{
		known: map[owner]bool{},
		replacements: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_machine_replacements_total",
			Help: "Failed Machines that were given up, for another to take their place as long as it is wanted, by their failureReason.",
		}, append(by[:len(by):len(by)], "reason")),
		reboots: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "drover_machine_reboots_total",
			Help: "Reboots of Machines that have ended, by who requested them and by their result: the Node proved the reboot, or it failed.",
		}, append(by[:len(by):len(by)], "by", "result")),
		ready: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "drover_machine_ready_seconds",
			Help:    "Time from the creation of a Machine until it runs for the first time.",
			Buckets: []float64{15, 30, 60, 90, 120, 180, 300, 450, 600, 900, 1200, 1800},
		}, by),
		drain: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "drover_node_drain_seconds",
			Help:    "Time from the beginning of the drain of a Node that goes until the Node is gone.",
			Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400},
		}, by),
	}
}

// A vector has a series for each combination of its labels.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func (t *transitions) vectors() []vector {
	return []vector{t.replacements, t.reboots, t.ready, t.drain}
}

func (t *transitions) describe(c chan<- *prometheus.Desc) {
	for _, v := range t.vectors() {
		v.Describe(c)
	}
}

// collect sends the series of the owners that still exist.
func (t *transitions) collect(deployments []Deployment, sets []Set, c chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	there := map[owner]bool{}
	for i := range deployments {
		there[owner{namespace: deployments[i].GetNamespace(), deployment: deployments[i].GetName()}] = true
	}
	for i := range sets {
		if sets[i].GetLabels()[v1alpha1.LabelDeployment] == "" {
			there[owner{namespace: sets[i].GetNamespace(), set: sets[i].GetName()}] = true
		}
	}
	for o := range t.known {
		if !there[o] {
			delete(t.known, o)
			for _, v := range t.vectors() {
				v.DeletePartialMatch(o.labels())
			}
		}
	}
	for o := range there {
		t.know(o)
	}
	for _, v := range t.vectors() {
		v.Collect(c)
	}
}

// know adds the series of an owner, all zero.
func (t *transitions) know(o owner) {
	if t.known[o] {
		return
	}
	t.known[o] = true
	t.ready.With(o.labels())
	t.drain.With(o.labels())
	for _, reason := range failureReasons {
		t.replacement(o, reason)
	}
	for _, by := range []string{byHealth, byUser} {
		for _, result := range []v1alpha1.RebootState{v1alpha1.RebootSucceeded, v1alpha1.RebootFailed} {
			t.reboot(o, by, result)
		}
	}
}

// Who requested a reboot.
const byHealth, byUser = "health", "user"

func (t *transitions) reboot(o owner, by string, result v1alpha1.RebootState) prometheus.Counter {
	l := o.labels()
	l["by"], l["result"] = by, string(result)
	return t.reboots.With(l)
}

// hasRebooted reports whether a reboot ended in an update of a Machine.
func hasRebooted(was, is *v1alpha1.Machine) bool {
	before, r := was.Status.Reboot, is.Status.Reboot
	return r.IsDone() && (!before.IsDone() || before.ID != r.ID)
}

func (t *transitions) replacement(o owner, reason v1alpha1.FailureReason) prometheus.Counter {
	l := o.labels()
	l["reason"] = string(reason)
	return t.replacements.With(l)
}

// machine counts the transitions in an update of a Machine: that it runs for the first time, that a Failed one
// was deleted, that a reboot ended, and that its Node is gone.
func (t *transitions) machine(was, is *v1alpha1.Machine, now time.Time) {
	o, ok := ownerOf(is)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if was.Status.Phase.IsOnItsWay() && is.Status.Phase == v1alpha1.MachineRunning {
		t.know(o)
		t.ready.With(o.labels()).Observe(ranAt(is).Sub(is.GetCreationTimestamp().Time).Seconds())
	}
	if was.GetDeletionTimestamp() == nil && is.GetDeletionTimestamp() != nil && was.Status.Phase == v1alpha1.MachineFailed {
		t.know(o)
		t.replacement(o, was.Status.FailureReason).Inc()
	}
	if hasRebooted(was, is) {
		by := byUser
		if is.Status.Reboot.ByHealth != "" {
			by = byHealth
		}
		t.know(o)
		t.reboot(o, by, is.Status.Reboot.State).Inc()
	}
	if !hasLeftNode(was) && hasLeftNode(is) {
		t.drained(o, is, now)
	}
}

// machineGone counts the drain of a Machine whose deletion never reported a stage after the Node, because it
// had no VM any more.
func (t *transitions) machineGone(m *v1alpha1.Machine, now time.Time) {
	o, ok := ownerOf(m)
	if !ok || hasLeftNode(m) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drained(o, m, now)
}

// drained observes the drain of a Machine that is being deleted, if it ever had a Node.
func (t *transitions) drained(o owner, m *v1alpha1.Machine, now time.Time) {
	began := m.GetDeletionTimestamp()
	if began == nil || m.Status.NodeRef == nil {
		return
	}
	if d := m.Status.Drain; d != nil && d.StartTime.After(began.Time) {
		began = &d.StartTime // Hooks held the drain until then.
	}
	t.know(o)
	t.drain.With(o.labels()).Observe(now.Sub(began.Time).Seconds())
}

// hasLeftNode reports whether the deletion of a Machine is past its Node.
func hasLeftNode(m *v1alpha1.Machine) bool {
	return m.Status.Deletion != nil && m.Status.Deletion.Stage.IsPastNode()
}

// ranAt returns when the Machine first ran, which is the time of its operation Join.
func ranAt(m *v1alpha1.Machine) time.Time {
	if op := m.Status.LastOperation; op != nil && op.Type == v1alpha1.OperationJoin && op.LastUpdateTime != nil {
		return op.LastUpdateTime.Time
	}
	return time.Now()
}
