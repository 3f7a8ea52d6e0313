package diagnosis_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan/simulator"
)

// world with three Machines that run.
func world(t *testing.T) *simulator.World {
	t.Helper()
	labels := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	s := machinev1alpha1.MachineDeploymentSpec{
		Replicas: 3,
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1.35.3"},
		},
		ProgressDeadlineSeconds: 600, RevisionHistoryLimit: 10,
	}
	s.Strategy.Type = machinev1alpha1.RollingUpdate
	s.Strategy.RollingUpdate.MaxSurge, s.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0))
	w := simulator.NewWorld(s, simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the world did not settle")
	}
	return w
}

// viewOf returns the view of a world. The simulator has no fields that the API server or Crossplane sets.
func viewOf(w *simulator.World) *view.View {
	v := &view.View{Time: metav1.NewTime(w.Now)}
	d := w.Deployment()
	d.Namespace = "team"
	v.Deployments = append(v.Deployments, *d)
	for _, s := range w.Sets() {
		s = s.DeepCopy()
		s.Namespace, s.OwnerReferences[0].Kind = "team", view.MachineDeployment
		v.Sets = append(v.Sets, *s)
	}
	for _, m := range w.Machines() {
		m = m.DeepCopy()
		m.Namespace, m.OwnerReferences[0].Kind = "team", view.MachineSet
		v.Machines = append(v.Machines, *m)
	}
	return v
}

// TestEachStateOfARolloutIsShown renders the status in states that the planners themselves report.
func TestEachStateOfARolloutIsShown(t *testing.T) {
	roll := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.35.4" }
	// canary rolls with a step of one Machine that must be approved.
	canary := func(w *simulator.World) {
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Approval: machinev1alpha1.ApprovalManual}}
			roll(d)
		})
		w.Run(10 * time.Minute)
	}
	// analyzed rolls with a step of one Machine, whose analysis must pass.
	analyzed := func(w *simulator.World) {
		w.Update(func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Analyses: []string{"pods"}}}
			roll(d)
		})
		w.Run(15 * time.Minute)
	}
	annotate := func(key, value string) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) { d.Annotations = map[string]string{key: value} }
	}
	cases := map[string]struct {
		reason string
		until  func(t *testing.T, w *simulator.World)
		state  diagnosis.State
	}{
		"Complete": {"all Machines are of the template and available", func(*testing.T, *simulator.World) {}, diagnosis.Complete},
		"Rolling": {"a rollout is under way", func(_ *testing.T, w *simulator.World) {
			w.Update(roll)
			w.Run(2 * time.Minute)
		}, diagnosis.InProgress},
		"NotObserved": {"the change was not decided on yet", func(_ *testing.T, w *simulator.World) { w.Update(roll) }, diagnosis.InProgress},
		"ScalingUp": {"Machines are created", func(_ *testing.T, w *simulator.World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 5 })
			w.Run(20 * time.Second)
		}, diagnosis.InProgress},
		"Paused": {"a pause holds a rollout in the middle", func(_ *testing.T, w *simulator.World) {
			w.Update(roll)
			w.Run(2 * time.Minute)
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
			w.Run(10 * time.Minute)
		}, diagnosis.NeedsUser},
		"AwaitingApproval": {"a step waits for a user", func(_ *testing.T, w *simulator.World) { canary(w) }, diagnosis.NeedsUser},
		"Approved": {"the approval of the step is not observed yet", func(_ *testing.T, w *simulator.World) {
			canary(w)
			w.Update(annotate(machinev1alpha1.AnnotationRolloutApprove, w.Deployment().Status.Rollout.ID+"/1"))
		}, diagnosis.InProgress},
		"ApprovedAnotherRollout": {"the approval is for another rollout", func(_ *testing.T, w *simulator.World) {
			canary(w)
			w.Update(annotate(machinev1alpha1.AnnotationRolloutApprove, "1-other/1"))
			w.Run(time.Minute)
		}, diagnosis.NeedsUser},
		"Analyzing": {"a step is analyzed", func(_ *testing.T, w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisInconclusive
			analyzed(w)
		}, diagnosis.InProgress},
		"AnalysisFailed": {"an analysis failed", func(_ *testing.T, w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisFail
			analyzed(w)
		}, diagnosis.NeedsUser},
		"AnalysisInconclusive": {"an analysis has no verdict after its timeout", func(_ *testing.T, w *simulator.World) {
			w.Finds = machinev1alpha1.AnalysisInconclusive
			analyzed(w)
			w.Run(time.Hour)
		}, diagnosis.NeedsUser},
		"Held": {"a user holds the rollout", func(_ *testing.T, w *simulator.World) {
			w.Update(annotate(machinev1alpha1.AnnotationRolloutHold, "we look at the first Machine"))
			w.Update(roll)
			w.Run(10 * time.Minute)
		}, diagnosis.NeedsUser},
		"Aborted": {"a user rejected the template, and the Machines of it are gone", func(_ *testing.T, w *simulator.World) {
			canary(w)
			w.Update(annotate(machinev1alpha1.AnnotationRolloutAbort, w.Deployment().Status.Rollout.ID))
			w.Run(20 * time.Minute)
		}, diagnosis.NeedsUser},
		"OutsideWindow": {"no window is open", func(_ *testing.T, w *simulator.World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 23 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
				roll(d)
			})
			w.Run(10 * time.Minute)
		}, diagnosis.InProgress},
		"AwaitingTurn": {"the RolloutPolicies were not asked yet", func(_ *testing.T, w *simulator.World) {
			w.HasPolicies = true
			w.Update(roll)
			w.Run(time.Minute)
		}, diagnosis.InProgress},
		"AwaitingWave": {"a RolloutPolicy holds the rollout", func(_ *testing.T, w *simulator.World) {
			w.HasPolicies = true
			w.Update(roll)
			w.Run(time.Minute)
			w.AnswerTurn(machinev1alpha1.RolloutTurnStatus{Held: &machinev1alpha1.RolloutHold{
				Reason: machinev1alpha1.ReasonAwaitingWave, Message: "RolloutPolicy fleet: wave production waits for wave development",
			}})
			w.Run(time.Minute)
		}, diagnosis.InProgress},
		"Aging": {"Machines are replaced by their age, in a window", func(_ *testing.T, w *simulator.World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Rollout.MaxAge = &metav1.Duration{Duration: 100 * time.Hour}
				d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 23 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
			})
			w.Run(10 * time.Minute)
		}, diagnosis.Complete},
		"Frozen": {"the label holds a scale-up", func(_ *testing.T, w *simulator.World) {
			w.Update(func(d *machinev1alpha1.MachineDeployment) {
				d.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
				d.Spec.Replicas = 5
			})
			w.Run(time.Minute)
		}, diagnosis.NeedsUser},
		"DeadlineExceeded": {"no Node of the new template joins", func(_ *testing.T, w *simulator.World) {
			w.Cloud.NoJoin = true
			w.Update(roll)
			w.Run(15 * time.Minute)
		}, diagnosis.NeedsUser},
		"NoRoom": {"the cloud has no room for another Machine", func(_ *testing.T, w *simulator.World) {
			w.Cloud.Refuses = "CapacityExhausted"
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 5 })
			w.Run(time.Minute)
		}, diagnosis.InProgress},
		"NoRoomThatNobodyNeeds": {"no Machine waits for room any more", func(t *testing.T, w *simulator.World) {
			w.Cloud.Refuses = "CapacityExhausted"
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 5 })
			w.Run(time.Minute)
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 3 })
			w.Run(time.Minute)
			if e := w.Deployment().Status.Exhausted; len(e) != 1 || e[0].Until == nil {
				t.Errorf("exhausted are %+v", e)
			}
		}, diagnosis.Complete},
		"Outage": {"the API of the cloud answers no creation", func(_ *testing.T, w *simulator.World) {
			w.Cloud.Refuses = "Transient"
			w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 5 })
			w.Run(15 * time.Second)
		}, diagnosis.InProgress},
		"VMVanished": {"a VM is gone", func(_ *testing.T, w *simulator.World) {
			w.LoseVM(w.Machines()[0].Name)
			w.Run(15 * time.Second)
		}, diagnosis.InProgress},
		"KubeletStopped": {"a kubelet stopped, and its Node is not Ready", func(_ *testing.T, w *simulator.World) {
			w.KillNode(w.Machines()[0].Name)
			w.Run(15 * time.Second)
		}, diagnosis.InProgress},
		"NodeDeleted": {"a user deleted a Node", func(_ *testing.T, w *simulator.World) {
			w.DeleteNode(w.Machines()[0].Name)
			w.Run(10 * time.Second)
		}, diagnosis.InProgress},
		"MachineDeleted": {"a user deleted a Machine, and its set did not count yet", func(_ *testing.T, w *simulator.World) {
			w.DeleteByUser(w.Machines()[0].Name)
			w.Run(time.Second)
		}, diagnosis.InProgress},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := world(t)
			tc.until(t, w)
			v := viewOf(w)
			r, err := diagnosis.Status(v, nil, w.Now)
			if err != nil {
				t.Fatal(err)
			}
			if r.State != tc.state {
				t.Errorf("%s: state %s, want %s", tc.reason, r.State, tc.state)
			}
			golden(t, "testdata/states/"+name+".txt", render.Plain(width, w.Now).Status(r))
		})
	}
}

// TestWhatStopsCrossplaneIsNamed: before the pipeline runs, only Synced has the reason, for example a Composition of another
// kind. The other conditions are those of the generation before.
func TestWhatStopsCrossplaneIsNamed(t *testing.T) {
	w := world(t)
	v := viewOf(w)
	d := &v.Deployments[0]
	d.Generation++
	d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{
		Type: "Synced", Status: metav1.ConditionFalse, Reason: "ReconcileError", LastTransitionTime: metav1.NewTime(w.Now),
		Message: "cannot configure composite resource: referenced composition is not compatible with this composite resource",
	})
	r, err := diagnosis.Status(v, nil, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/states/CompositionOfAnotherKind.txt", render.Plain(width, w.Now).Status(r))
}

func TestAnObjectThatIsNotThereIsAnError(t *testing.T) {
	ref := view.Ref{Kind: view.Machine, Namespace: "team", Name: "none"}
	const want = `Machine "none" not found in namespace "team"`
	if _, err := diagnosis.Status(&view.View{}, &ref, time.Time{}); err == nil || err.Error() != want {
		t.Errorf("status: %v", err)
	}
	if _, err := diagnosis.Why(&view.View{}, ref, time.Time{}); err == nil || err.Error() != want {
		t.Errorf("why: %v", err)
	}
	if _, err := diagnosis.Tree(&view.View{}, &ref, time.Time{}); err == nil || err.Error() != want {
		t.Errorf("tree: %v", err)
	}
}
