package deployment

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// since is the time since which the Machines of a step are available.
var since = metav1.NewTime(now.Add(-10 * time.Minute).UTC().Truncate(time.Second))

// steps of a deployment: one Machine, and then half of them.
func steps(soak time.Duration, approval machinev1alpha1.Approval) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{
			{Updated: intstr.FromInt32(1), Soak: &metav1.Duration{Duration: soak}, Approval: approval},
			{Updated: intstr.FromInt32(2), Soak: &metav1.Duration{Duration: soak}},
		}
	}
}

// inRollout has a rollout of v2, after v1 was complete.
func inRollout(revision int64) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		of := func(n int64, version string, outcome machinev1alpha1.RevisionOutcome) machinev1alpha1.Revision {
			r := rollingOf(template(version))
			return machinev1alpha1.Revision{Revision: n, Outcome: outcome, ClassRef: r.ClassRef, Version: r.Version, ClusterRef: r.ClusterRef, Labels: r.Labels, Annotations: r.Annotations}
		}
		d.Status.Revision = revision
		d.Status.Revisions = []machinev1alpha1.Revision{of(1, "v1", machinev1alpha1.RevisionComplete), of(revision, "v2", machinev1alpha1.RevisionInProgress)}
		recorded("v1", 4)(d)
		recorded("v2", 1)(d)
		last := metav1.NewTime(now.Add(-20 * time.Minute))
		d.Status.LastProgressTime = &last
	}
}

func atStep(n int32) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Rollout = &machinev1alpha1.RolloutStatus{ID: IDOf(d.Status.Revisions[1]), Step: n, ReachedTime: &since}
	}
}

// note sets an annotation. ID at its begin stands for the rollout of the second revision.
func note(key, value string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		if d.Annotations == nil {
			d.Annotations = map[string]string{}
		}
		d.Annotations[key] = value
		if rest, ok := strings.CutPrefix(value, "ID"); ok {
			d.Annotations[key] = IDOf(d.Status.Revisions[1]) + rest
		}
	}
}

// window opens at the given hour for two hours. It is noon now.
func window(hour string) deploymentOption {
	return func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 " + hour + " * * *", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
	}
}

// TestGatesOfARollout has four Machines of v1 and one of v2, which is above replicas: a rollout that goes on deletes one of v1.
func TestGatesOfARollout(t *testing.T) {
	const approve, hold, abort = machinev1alpha1.AnnotationRolloutApprove, machinev1alpha1.AnnotationRolloutHold, machinev1alpha1.AnnotationRolloutAbort
	manual := machinev1alpha1.ApprovalManual
	hour := func(n time.Duration) string { return now.Add(n * time.Hour).UTC().Format("15") }
	for name, tc := range map[string]struct {
		options []deploymentOption
		gate    *shared.RolloutGate
		new     setOption
		// old are the Machines of v1 that remain.
		old         int32
		progressing string
		step        int32
		// again is the longest delay until the next call.
		again time.Duration
	}{
		"without any it goes on":                      {old: 3, progressing: "True MachineSetUpdated"},
		"a step soaks":                                {options: []deploymentOption{steps(30*time.Minute, ""), atStep(1)}, old: 4, progressing: "True Soaking", step: 1, again: 20 * time.Minute},
		"a step has soaked":                           {options: []deploymentOption{steps(10*time.Minute, ""), atStep(1)}, old: 3, progressing: "True MachineSetUpdated", step: 2},
		"a step that soaks awaits its approval later": {options: []deploymentOption{steps(30*time.Minute, manual), atStep(1)}, old: 4, progressing: "True Soaking", step: 1},
		"a step awaits its approval":                  {options: []deploymentOption{steps(0, manual), atStep(1)}, old: 4, progressing: "Unknown AwaitingApproval", step: 1},
		"a step is approved":                          {options: []deploymentOption{steps(0, manual), atStep(1), note(approve, "ID/1")}, old: 3, progressing: "True MachineSetUpdated", step: 2},
		"an approval of a later step counts":          {options: []deploymentOption{steps(0, manual), atStep(1), note(approve, "ID/2")}, old: 3, progressing: "True MachineSetUpdated", step: 2},
		"an approval of another rollout does not":     {options: []deploymentOption{steps(0, manual), atStep(1), note(approve, "2-0000/1")}, old: 4, progressing: "Unknown AwaitingApproval", step: 1},
		"an approval without a step does not":         {options: []deploymentOption{steps(0, manual), atStep(1), note(approve, "ID")}, old: 4, progressing: "Unknown AwaitingApproval", step: 1},
		"an approval does not shorten the soak":       {options: []deploymentOption{steps(30*time.Minute, manual), atStep(1), note(approve, "ID/1")}, old: 4, progressing: "True Soaking", step: 1},
		"a step without an available Machine":         {options: []deploymentOption{steps(0, manual), atStep(1), note(approve, "ID/1")}, new: available(0), old: 4, progressing: "True MachineSetUpdated", step: 1},
		"the steps of an earlier rollout do not count": {options: []deploymentOption{steps(time.Minute, ""), func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Rollout = &machinev1alpha1.RolloutStatus{ID: "1-x", Step: 3}
		}}, old: 4, progressing: "True Soaking", step: 1},
		"in a window":                       {options: []deploymentOption{window(hour(-1))}, old: 3, progressing: "True MachineSetUpdated"},
		"outside of a window":               {options: []deploymentOption{window(hour(1))}, old: 4, progressing: "Unknown OutsideWindow", again: time.Hour},
		"a step soaks outside of a window":  {options: []deploymentOption{window(hour(1)), steps(30*time.Minute, ""), atStep(1)}, old: 4, progressing: "Unknown OutsideWindow", step: 1},
		"a user holds it":                   {options: []deploymentOption{note(hold, "incident")}, old: 4, progressing: "Unknown RolloutHeld"},
		"a user holds it in a window":       {options: []deploymentOption{window(hour(-1)), note(hold, "")}, old: 4, progressing: "Unknown RolloutHeld"},
		"a step of the pipeline holds it":   {gate: &shared.RolloutGate{Hold: true}, old: 4, progressing: "Unknown GateHolds"},
		"a step of the pipeline lets it go": {gate: &shared.RolloutGate{}, old: 3, progressing: "True MachineSetUpdated"},
		"a user aborts it":                  {options: []deploymentOption{note(abort, "ID")}, old: 4, progressing: "False RolloutRejected", again: shared.Soonest},
		"a user aborted another one":        {options: []deploymentOption{note(abort, "2-0000")}, old: 3, progressing: "True MachineSetUpdated"},
		"a user aborts one before which none was ready": {options: []deploymentOption{note(abort, "ID"), func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions[0].Outcome = machinev1alpha1.RevisionSuperseded
		}}, old: 3, progressing: "True MachineSetUpdated"},
		"a schedule that never comes": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.Blackouts = []machinev1alpha1.TimeWindow{{Schedule: "0 0 31 2 *"}}
		}}, old: 4, progressing: "False InvalidWindow"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2), func(d *machinev1alpha1.MachineDeployment) { d.Spec.ProgressDeadlineSeconds = 1800 }}, tc.options...)...)
			canary := machineSet("v2", 2, 1)
			if tc.new != nil {
				tc.new(&canary)
			}
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), canary}, ClassFound: true, Gate: tc.gate})
			if got := p.Status.MachineSets[0].Replicas; got != tc.old {
				t.Errorf("%d Machines of v1 remain, want %d", got, tc.old)
			}
			if got := condition(p, "Progressing"); got != tc.progressing {
				t.Errorf("Progressing is %q, want %q", got, tc.progressing)
			}
			step := int32(0)
			if p.Status.Rollout != nil {
				step = p.Status.Rollout.Step
			}
			if step != tc.step {
				t.Errorf("step %d, want %d", step, tc.step)
			}
			if tc.again > 0 && p.CallAgain > tc.again {
				t.Errorf("is called again after %s, want %s at most", p.CallAgain, tc.again)
			}
			if canary := p.Status.MachineSets[1].Replicas; canary != 1 {
				t.Errorf("the canary has %d Machines", canary)
			}
		})
	}
}

// rejected is the state after a user aborted the rollout of v2.
func rejected(d *machinev1alpha1.MachineDeployment) {
	d.Status.Rollout = &machinev1alpha1.RolloutStatus{Rejected: &machinev1alpha1.RejectedTemplate{
		ID: IDOf(d.Status.Revisions[1]), Hash: HashOfSpec(d), Revision: 2, Reason: machinev1alpha1.RejectionAborted, Message: "a user aborted the rollout", Time: since,
	}}
	d.Status.Revisions[1].Outcome = machinev1alpha1.RevisionRejected
}

func TestARejectedTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		options []deploymentOption
		// old and canary are the Machines of v1 and v2 that are desired.
		old, canary int32
		creation    machinev1alpha1.CreationPolicy
		template    string
		progressing string
	}{
		"its Machines are replaced":             {old: 4, canary: 0, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
		"outside of a window as well":           {options: []deploymentOption{window(now.Add(time.Hour).UTC().Format("15"))}, old: 4, canary: 0, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
		"whatever the steps are":                {options: []deploymentOption{steps(time.Hour, machinev1alpha1.ApprovalManual)}, old: 4, canary: 0, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
		"a user holds the way back":             {options: []deploymentOption{note(machinev1alpha1.AnnotationRolloutHold, "")}, old: 4, canary: 1, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
		"a retry rolls it out again":            {options: []deploymentOption{note(machinev1alpha1.AnnotationRolloutRetry, "ID")}, old: 3, canary: 1, creation: machinev1alpha1.CreationEnabled, template: "v2", progressing: "True MachineSetUpdated"},
		"a retry of another rejection does not": {options: []deploymentOption{note(machinev1alpha1.AnnotationRolloutRetry, "2-0000")}, old: 4, canary: 0, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
		"another time to roll it out withdraws it": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.After = &metav1.Time{Time: now.Add(time.Hour)}
		}}, old: 3, canary: 1, creation: machinev1alpha1.CreationEnabled, template: "v2", progressing: "True MachineSetUpdated"},
		"a change that reaches Machines in place not": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Template.Spec.Metadata.Labels = map[string]string{"a": "b"}
		}}, old: 4, canary: 0, creation: machinev1alpha1.CreationDisabled, template: "v1", progressing: "False RolloutRejected"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2), rejected}, tc.options...)...)
			before := d.Spec.DeepCopy()
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true})
			got := map[string]int32{}
			for _, s := range p.Status.MachineSets {
				got[s.Name] = s.Replicas
			}
			if got[nameOf("v1")] != tc.old || got[nameOf("v2")] != tc.canary {
				t.Errorf("desired %v, want %d of v1 and %d of v2", got, tc.old, tc.canary)
			}
			for _, s := range p.Sets {
				if s.Name == nameOf("v2") && s.Spec.Creation != tc.creation {
					t.Errorf("creation of v2 is %s, want %s", s.Spec.Creation, tc.creation)
				}
			}
			if got := Template(d).Spec.Version; got != tc.template {
				t.Errorf("the template is %s, want %s", got, tc.template)
			}
			if got := condition(p, "Progressing"); got != tc.progressing {
				t.Errorf("Progressing is %q, want %q", got, tc.progressing)
			}
			if isStalled := condition(p, "Stalled") == "True RolloutRejected"; isStalled != strings.Contains(tc.progressing, "Rejected") || isStalled && p.Ready {
				t.Errorf("Stalled is %q, Ready %t", condition(p, "Stalled"), p.Ready)
			}
			if before.Template.Spec.Version != d.Spec.Template.Spec.Version {
				t.Error("the spec was changed")
			}
		})
	}
}

// TestADeadlineRejectsATemplate has the verdict of the deadline in the status.
func TestADeadlineRejectsATemplate(t *testing.T) {
	for policy, want := range map[machinev1alpha1.FailurePolicy]string{machinev1alpha1.FailureRollback: "False RolloutRejected", machinev1alpha1.FailureHold: "False ProgressDeadlineExceeded", "": "False ProgressDeadlineExceeded"} {
		d := deployment(4, inRollout(2), func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.ProgressDeadlineSeconds, d.Spec.Rollout.OnFailure = 600, policy
			d.Status.Revisions[1].Outcome = machinev1alpha1.RevisionDeadlineExceeded
			d.Status.Progress = &machinev1alpha1.RolloutProgress{OutdatedReplicas: 4, OutdatedTotal: 4, UpdatedReplicas: 1}
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded", Message: "no progress"},
				metav1.Condition{Type: "Stalled", Status: "True", Reason: "ProgressDeadlineExceeded", Message: "no progress; 4 of 4 Machines are available; its Machines fail"})
		})
		p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1, available(0))}, ClassFound: true})
		if got := condition(p, "Progressing"); got != want {
			t.Errorf("onFailure %q: Progressing is %q, want %q", policy, got, want)
		}
		if r := p.Status.Rollout; policy == machinev1alpha1.FailureRollback {
			if r == nil || r.Rejected == nil || !strings.Contains(r.Rejected.Message, "its Machines fail") || p.Status.Revisions[1].Outcome != machinev1alpha1.RevisionRejected {
				t.Errorf("the rejection is %+v, the revisions %+v", r, p.Status.Revisions)
			}
		}
	}
}

// TestTheLastGoodRevisionIsKept has a limit of revisions that would drop it.
func TestTheLastGoodRevisionIsKept(t *testing.T) {
	keeps := func(options ...deploymentOption) bool {
		d := deployment(4, append([]deploymentOption{inRollout(2), func(d *machinev1alpha1.MachineDeployment) { d.Spec.RevisionHistoryLimit = 0 }}, options...)...)
		p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true})
		return p.Status.Revisions[0].Outcome == machinev1alpha1.RevisionComplete
	}
	if keeps() || !keeps(steps(time.Hour, "")) || !keeps(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.OnFailure = machinev1alpha1.FailureRollback }) {
		t.Errorf("kept without gates: %t, with steps: %t", keeps(), keeps(steps(time.Hour, "")))
	}
}

// TestAStepMissesNoMachine may have three of four Machines unavailable. A step of one Machine lasts for hours: the old set
// keeps the other three.
func TestAStepMissesNoMachine(t *testing.T) {
	bounds := func(d *machinev1alpha1.MachineDeployment) {
		surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(3)
		d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable = &surge, &unavailable
	}
	d := deployment(4, inRollout(2), steps(time.Hour, ""), bounds)
	d.Status.MachineSets = d.Status.MachineSets[:1]
	recorded("v2", 0)(d)
	p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 0)}, ClassFound: true})
	if got := p.Status.MachineSets[0].Replicas; got != 3 {
		t.Errorf("%d Machines of v1 remain, want 3", got)
	}
}
