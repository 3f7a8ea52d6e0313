package gitops

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/simulator"
	"github.com/drover-dev/drover/test/kit"
)

// A gated rollout is held, or its template is rejected.
type gated struct {
	name string
	// roll changes the template, and do lets time pass afterwards.
	roll func(d *machinev1alpha1.MachineDeployment)
	do   func(w *simulator.World)
	// argo and flux are the verdicts in their order, without repetitions, and message is a part of the last one of Argo CD.
	argo, flux, message string
}

// When the MachineSet of a template that is not needed any more is deleted, Crossplane raises the generation of the MachineDeployment,
// and the status follows a moment later: it is Progressing again until then.
const (
	degraded, goesOn, suspended, healthy = "Progressing → Degraded", "Progressing", "Progressing → Suspended", "Progressing → Healthy"
	failed, inProgress, current          = "InProgress → Failed", "InProgress", "InProgress → Current"
)

// TestVerdictsOnGates judges every status of a MachineDeployment that the planners write while a gate holds its rollout, and
// after its template was rejected. The clients need no control plane for that. The table of verdicts is testdata/verdicts-gates.md.
func TestVerdictsOnGates(t *testing.T) {
	version := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = kit.NewVersion }
	with := func(change func(d *machinev1alpha1.MachineDeployment)) func(d *machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) { change(d); version(d) }
	}
	step := func(s machinev1alpha1.RolloutStep) func(d *machinev1alpha1.MachineDeployment) {
		s.Updated = intstr.FromInt32(1)
		return with(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{s}
		})
	}
	analyzed := step(machinev1alpha1.RolloutStep{Analyses: []string{"pods"}})
	annotate := func(w *simulator.World, key, value string) {
		w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Annotations = map[string]string{key: value} })
	}
	for10m := func(w *simulator.World) { w.Run(10 * time.Minute) }
	asked := func(w *simulator.World) {
		w.HasPolicies = true
		w.Run(time.Minute)
		w.AnswerTurn(machinev1alpha1.RolloutTurnStatus{Held: &machinev1alpha1.RolloutHold{
			Reason: machinev1alpha1.ReasonAwaitingWave, Message: "RolloutPolicy fleet: wave production waits for wave development",
		}})
		w.Run(time.Hour)
	}
	cases := []gated{
		{"an approval is awaited", step(machinev1alpha1.RolloutStep{Approval: machinev1alpha1.ApprovalManual}), for10m, suspended, inProgress, "kubectl drover rollout approve"},
		{"the step is approved", step(machinev1alpha1.RolloutStep{Approval: machinev1alpha1.ApprovalManual}), func(w *simulator.World) {
			for10m(w)
			annotate(w, machinev1alpha1.AnnotationRolloutApprove, w.Deployment().Status.Rollout.ID+"/1")
			w.Run(time.Hour)
		}, suspended + " → " + healthy, current, "3 of 3 Machines are available"},
		{"a step soaks", step(machinev1alpha1.RolloutStep{Soak: &metav1.Duration{Duration: time.Hour}}), for10m, goesOn, inProgress, "step 1 of 1"},
		{"no window is open", with(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 23 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
		}), for10m, suspended, inProgress, "2026-01-01T23:00:00Z"},
		{"a user holds the rollout", with(func(d *machinev1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{machinev1alpha1.AnnotationRolloutHold: "incident 42"}
		}), for10m, suspended, inProgress, "incident 42"},
		{"a step of the pipeline holds it", version, func(w *simulator.World) {
			w.Gate = &plan.RolloutGate{Hold: true, Reason: "EtcdUpgrade", Message: "etcd is being upgraded"}
			for10m(w)
		}, suspended, inProgress, "etcd is being upgraded"},
		{"the RolloutPolicies were not asked yet", version, func(w *simulator.World) {
			w.HasPolicies = true
			w.Run(time.Minute)
		}, goesOn, inProgress, "waits for provider-drover to ask the RolloutPolicies"},
		{"provider-drover does not answer", version, func(w *simulator.World) {
			w.HasPolicies = true
			w.Run(time.Hour)
		}, suspended, inProgress, "provider-drover"},
		{"an earlier wave is awaited", version, asked, suspended, inProgress, "wave production waits for wave development"},
		{"the wave may begin", version, func(w *simulator.World) {
			asked(w)
			w.AnswerTurn(machinev1alpha1.RolloutTurnStatus{})
			w.Run(time.Hour)
		}, suspended + " → " + healthy, current, "3 of 3 Machines are available"},
		{"a step is analyzed", analyzed, func(w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisInconclusive
			for10m(w)
		}, goesOn, inProgress, "analyses without a verdict yet: pods"},
		{"the analysis passes", analyzed, func(w *simulator.World) { w.Run(time.Hour) }, healthy, current, "3 of 3 Machines are available"},
		{"the analysis fails, onFailure: Hold", analyzed, func(w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisFail
			w.Run(time.Hour)
		}, degraded, failed, "crashingPods: 4 of 5 pods"},
		{"the analysis has no verdict in its time", analyzed, func(w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisInconclusive
			w.Run(2 * time.Hour)
		}, degraded, failed, "connection refused"},
		{"the analysis fails, onFailure: Rollback", with(func(d *machinev1alpha1.MachineDeployment) {
			analyzed(d)
			d.Spec.Rollout.OnFailure = machinev1alpha1.FailureRollback
		}), func(w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisFail
			w.Run(time.Hour)
		}, degraded + " → Progressing → Degraded", failed + " → InProgress → Failed", "was rejected at"},
		{"a user aborts the rollout", step(machinev1alpha1.RolloutStep{Approval: machinev1alpha1.ApprovalManual}), func(w *simulator.World) {
			for10m(w)
			annotate(w, machinev1alpha1.AnnotationRolloutAbort, w.Deployment().Status.Rollout.ID)
			w.Run(time.Hour)
		}, suspended + " → Degraded → Progressing → Degraded", failed + " → InProgress → Failed", "was rejected at"},
		{"the rejected template is corrected", analyzed, func(w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisFail
			w.Run(time.Hour)
			w.Finds = machinev1alpha1.AnalysisPass
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.0" })
			w.Run(time.Hour)
		}, degraded + " → " + healthy, failed + " → " + current, "3 of 3 Machines are available"},
	}
	table := newTable("held MachineDeployment")
	var histories []recorded
	for _, tc := range cases {
		histories = append(histories, tc.live(t))
	}
	verdicts := judgeAll(t, histories)
	for i, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { tc.check(t, histories[i], verdicts[i], table) })
	}
	wantTable(t, table, "verdicts-gates.md")
}

// Recorded are all versions of a MachineDeployment since the change of its template, and what Git had then.
type recorded struct {
	versions  []version
	manifests []map[string]any
}

// live through the case, in a simulation that begins with three Machines that run.
func (g gated) live(t *testing.T) recorded {
	t.Helper()
	w := simulator.NewWorld(workers(), simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the first Machines do not run")
	}
	w.Update(g.roll)
	h, seen, generation := recorded{}, "", int64(0)
	var manifest map[string]any
	w.OnTick = func() {
		d := w.Deployment()
		if d.ResourceVersion == seen {
			return
		}
		seen = d.ResourceVersion
		// Only a user changes the generation: a field that a planner wrote to the spec is not in Git.
		if d.Generation != generation {
			generation, manifest = d.Generation, manifestOf(t, d.DeepCopy(), "MachineDeployment")
			manifest["metadata"] = map[string]any{"name": d.Name, "namespace": d.Namespace}
		}
		v := version{Unstructured: unstructuredOf(t, d, "MachineDeployment")}
		for _, m := range w.Machines() {
			v.machines = append(v.machines, unstructuredOf(t, m, "Machine"))
		}
		h.versions, h.manifests = append(h.versions, v), append(h.manifests, manifest)
	}
	g.do(w)
	return h
}

// judgeAll versions of all histories by one process.
func judgeAll(t *testing.T, histories []recorded) [][]verdict {
	t.Helper()
	var objects, manifests []map[string]any
	for _, h := range histories {
		for _, v := range h.versions {
			objects = append(objects, v.Object)
		}
		manifests = append(manifests, h.manifests...)
	}
	verdicts := judge(t, objects, manifests, nil)
	var out [][]verdict
	for _, h := range histories {
		out, verdicts = append(out, verdicts[:len(h.versions)]), verdicts[len(h.versions):]
	}
	return out
}

func (g gated) check(t *testing.T, h recorded, verdicts []verdict, table *table) {
	var argo, flux []string
	table.last = version{}
	for i, v := range h.versions {
		got := verdicts[i]
		if got.OutOfSync {
			t.Errorf("version %d is out of sync with Git: %v", i, v.Object["spec"])
		}
		if isWrong := mistake(v, got, strings.Contains(g.argo, "Degraded")); isWrong != "" {
			t.Errorf("Argo CD says %s %q, Flux %s, kstatus %s: %s\n  status: %v", got.Argo, got.ArgoMessage, got.Flux, got.Kstatus, isWrong, v.Object["status"])
		}
		table.add(g.name, v, got)
		argo, flux = push(argo, got.Argo), push(flux, got.Flux)
	}
	last := verdicts[len(verdicts)-1]
	if a, f := strings.Join(argo, " → "), strings.Join(flux, " → "); a != g.argo || f != g.flux || !strings.Contains(last.ArgoMessage, g.message) {
		t.Errorf("Argo CD says %s %q, and Flux %s, want %s with %q, and %s", a, last.ArgoMessage, f, g.argo, g.message, g.flux)
	}
}

// workers are three Machines in a rolling update with a surge of 1.
func workers() machinev1alpha1.MachineDeploymentSpec {
	labels := map[string]machinev1alpha1.LabelValue{"pool": "workers"}
	s := machinev1alpha1.MachineDeploymentSpec{
		Replicas: 3,
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: kit.OldVersion},
		},
		ProgressDeadlineSeconds: 1800, RevisionHistoryLimit: 10,
	}
	s.Strategy.Type = machinev1alpha1.RollingUpdate
	s.Strategy.RollingUpdate.MaxSurge, s.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0))
	return s
}
