package deployment

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// TestWhatHoldsARolloutAndUntilWhen has four Machines of v1 and one of v2, in a step of one Machine if there are steps.
func TestWhatHoldsARolloutAndUntilWhen(t *testing.T) {
	const hold = machinev1alpha1.AnnotationRolloutHold
	const held = "the annotation machine.drover.dev/rollout-hold holds the rollout"
	const full, analyzed = "step 1 of 2: all 1 updated Machines are available since 2026-01-01T11:50:00Z", "step 1 of 2: all 1 updated Machines are available since 2026-01-01T11:55:00Z"
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }
	// closes is a window that closes after a time below an hour.
	closes := func(in time.Duration) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.Windows = []machinev1alpha1.TimeWindow{{Schedule: "0 11 * * *", Duration: metav1.Duration{Duration: time.Hour + in}}}
		}
	}
	// soaks has a step whose soak ends after a time.
	soaks := func(in time.Duration, approval machinev1alpha1.Approval) []deploymentOption {
		return []deploymentOption{steps(10*time.Minute+in, approval), atStep(1)}
	}
	// pods has two analyses of a step that is complete for five minutes.
	pods := func(soak time.Duration, approval machinev1alpha1.Approval) []deploymentOption {
		return []deploymentOption{steps(soak, approval), atCompleteStep, func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Strategy.RollingUpdate.Steps[0].Analyses = []string{"pods", "errors"}
		}}
	}
	manual := machinev1alpha1.ApprovalManual
	with := func(all []deploymentOption, more ...deploymentOption) []deploymentOption { return append(all, more...) }
	for name, tc := range map[string]struct {
		options []deploymentOption
		gate    *shared.RolloutGate
		// measured means that the analyses have begun.
		measured bool
		// starts means that the Machine of v2 is not available yet.
		starts  bool
		message string
		// until is the time at which the hold ends by itself, 0 for none.
		until time.Duration
		// again is the delay until the next call.
		again time.Duration
	}{
		"AUserWithoutACause":      {options: []deploymentOption{note(hold, "")}, message: held + ": no Machine is replaced or updated until it is removed", again: shared.InFlight},
		"AUserWhoOnlySetIt":       {options: []deploymentOption{note(hold, " true ")}, message: held + ": no Machine is replaced or updated until it is removed", again: shared.InFlight},
		"AUserWithACause":         {options: []deploymentOption{note(hold, " incident 42 ")}, message: held + " (incident 42): no Machine is replaced or updated until it is removed", again: shared.InFlight},
		"AGate":                   {gate: &shared.RolloutGate{Hold: true}, message: "a step of the pipeline holds the rollout", again: shared.InFlight},
		"AGateWithAReason":        {gate: &shared.RolloutGate{Hold: true, Reason: "EtcdUpgrade"}, message: "a step of the pipeline holds the rollout: EtcdUpgrade", again: shared.InFlight},
		"AGateWithAMessage":       {gate: &shared.RolloutGate{Hold: true, Message: "etcd is being upgraded"}, message: "a step of the pipeline holds the rollout: etcd is being upgraded", again: shared.InFlight},
		"AGateWithATime":          {gate: &shared.RolloutGate{Hold: true, Until: at(30 * time.Second)}, message: "a step of the pipeline holds the rollout; until 2026-01-01T12:00:30Z", until: 30 * time.Second, again: 30 * time.Second},
		"AGateWhoseTimeHasPassed": {gate: &shared.RolloutGate{Hold: true, Until: at(0)}, message: "a step of the pipeline holds the rollout", again: shared.InFlight},
		"NothingInAWindow":        {options: []deploymentOption{closes(30 * time.Second)}, starts: true, again: 30 * time.Second},
		"ASoak":                   {options: soaks(20*time.Second, ""), message: full + ", and must be until 2026-01-01T12:00:20Z", until: 20 * time.Second, again: 20 * time.Second},
		"ASoakBeforeAnApproval":   {options: soaks(20*time.Second, manual), message: full + ", and must be until 2026-01-01T12:00:20Z; the next step needs an approval as well", until: 20 * time.Second, again: 20 * time.Second},
		"ASoakThatIsApproved":     {options: with(soaks(20*time.Second, manual), note(machinev1alpha1.AnnotationRolloutApprove, "ID/1")), message: full + ", and must be until 2026-01-01T12:00:20Z", until: 20 * time.Second, again: 20 * time.Second},
		"ASoakThatIsAnalyzed":     {options: pods(5*time.Minute+20*time.Second, ""), message: analyzed + ", and must be until 2026-01-01T12:00:20Z; meanwhile it is analyzed by pods, errors", until: 20 * time.Second, again: 20 * time.Second},
		"ASoakLongerThanAWindow":  {options: with(soaks(40*time.Second, ""), closes(30*time.Second)), message: full + ", and must be until 2026-01-01T12:00:40Z", until: 40 * time.Second, again: 30 * time.Second},
		"ASoakWithinAWindow":      {options: with(soaks(20*time.Second, ""), closes(30*time.Second)), message: full + ", and must be until 2026-01-01T12:00:20Z", until: 20 * time.Second, again: 20 * time.Second},
		"AnApproval":              {options: soaks(0, manual), message: full + "; to begin the next step, run kubectl drover rollout approve", again: shared.InFlight},
		"AnalysesThatBegin":       {options: pods(0, ""), message: analyzed + "; analyses without a verdict yet: pods, errors", until: 5 * time.Minute, again: shared.InFlight},
		"AnalysesThatRun":         {options: pods(0, ""), measured: true, message: analyzed + "; analyses without a verdict yet: pods, errors, which must have one until 2026-01-01T12:55:00Z", until: 55 * time.Minute, again: shared.InFlight},
		"AnalysesAndAnApproval":   {options: pods(0, manual), measured: true, message: analyzed + "; analyses without a verdict yet: pods, errors, which must have one until 2026-01-01T12:55:00Z; the next step needs an approval as well", until: 55 * time.Minute, again: shared.InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2)}, tc.options...)...)
			o := Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true, Gate: tc.gate, Analysis: &machinev1alpha1.RolloutAnalysisRun{}}
			o.Analysis.Status.Found = []string{"errors", "pods"}
			if tc.measured {
				o.Analysis.Status.Step = &machinev1alpha1.AnalyzedStep{Rollout: IDOf(d.Status.Revisions[1]), Step: 1, Since: complete}
				verdict("pods", machinev1alpha1.AnalysisRunning, time.Hour)(o.Analysis)
				verdict("errors", machinev1alpha1.AnalysisRunning, time.Hour)(o.Analysis)
			}
			if tc.starts {
				available(0)(&o.Sets[1])
			}
			p := Plan(now, o)
			if got := messageOf(p, "Progressing"); tc.message != "" && got != tc.message {
				t.Errorf("the message is %q, want %q", got, tc.message)
			}
			until := time.Duration(0)
			if r := p.Status.Rollout; r != nil && r.Held != nil && r.Held.Until != nil {
				until = r.Held.Until.Sub(now)
			}
			if until != tc.until || p.CallAgain != tc.again {
				t.Errorf("it is held for %s and called again after %s, want %s and %s", until, p.CallAgain, tc.until, tc.again)
			}
		})
	}
}

// TestTheStepOfARollout has four Machines that are desired, of v1 and v2.
func TestTheStepOfARollout(t *testing.T) {
	steps := func(updated ...int32) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			for _, n := range updated {
				d.Spec.Strategy.RollingUpdate.Steps = append(d.Spec.Strategy.RollingUpdate.Steps, machinev1alpha1.RolloutStep{Updated: intstr.FromInt32(n), Approval: machinev1alpha1.ApprovalManual})
			}
		}
	}
	approved := note(machinev1alpha1.AnnotationRolloutApprove, "ID/2")
	back := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template = template("v1") }
	for name, tc := range map[string]struct {
		reason  string
		options []deploymentOption
		old     int32
		new     Set
		wantOld int32
		wantNew int32
		step    int32
		// reached reports whether the time is recorded since which the Machines of the step are available.
		reached bool
	}{
		"AStepThatIsReached":         {"it waits for its approval", []deploymentOption{steps(2, 3), atStep(1)}, 3, machineSet("v2", 2, 2), 3, 2, 1, true},
		"AMachineOfAStepIsLost":      {"the time begins again", []deploymentOption{steps(2, 3), atStep(1)}, 3, machineSet("v2", 2, 2, available(1)), 3, 2, 1, false},
		"AStepThatIsNotFull":         {"the rollout goes on", []deploymentOption{steps(2, 3), atStep(1)}, 3, machineSet("v2", 2, 1), 3, 2, 1, false},
		"AfterAllSteps":              {"nothing limits the new template", []deploymentOption{steps(1, 2), atStep(2), approved}, 2, machineSet("v2", 2, 2), 2, 3, 3, false},
		"AStepOfAllMachines":         {"nothing comes after it, so nothing is awaited", []deploymentOption{steps(1, 4), atStep(2)}, 1, machineSet("v2", 2, 4), 0, 4, 2, false},
		"TheTemplateIsTheLastOne":    {"going back is no trial", []deploymentOption{steps(1, 2), atStep(1), back}, 4, machineSet("v2", 2, 1), 4, 0, 3, false},
		"AStepAboveTheReplicasOfNow": {"as with all Machines", []deploymentOption{steps(1, 9), atStep(2)}, 1, machineSet("v2", 2, 4), 0, 4, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2)}, tc.options...)...)
			d.Status.MachineSets = nil
			recorded("v1", tc.old)(d)
			recorded("v2", tc.new.Spec.Replicas)(d)
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, tc.old), tc.new}, ClassFound: true})
			if got := decided(p); got["v1"] != tc.wantOld || got["v2"] != tc.wantNew {
				t.Errorf("%s: %v, want %d of v1 and %d of v2", tc.reason, got, tc.wantOld, tc.wantNew)
			}
			r := p.Status.Rollout
			if r == nil {
				t.Fatal("the status has no rollout")
			}
			if r.Step != tc.step || (r.ReachedTime != nil) != tc.reached {
				t.Errorf("%s: step %d is reached at %v, want step %d and %t", tc.reason, r.Step, r.ReachedTime, tc.step, tc.reached)
			}
		})
	}
}

func TestAnApprovalNamesTheRolloutAndTheStep(t *testing.T) {
	for annotation, want := range map[string]int32{"2-0123/1": 1, "2-0123/12": 12, "2-0123": 0, "2-0123/": 0, "2-0123/x": 0, "2-9999/1": 0, "": 0, "/1": 0} {
		d := deployment(4, note(machinev1alpha1.AnnotationRolloutApprove, annotation))
		if got := ApprovedStep(d, "2-0123"); got != want {
			t.Errorf("%q approves step %d, want %d", annotation, got, want)
		}
		if got := ApprovedStep(d, ""); got != 0 {
			t.Errorf("%q approves step %d of no rollout", annotation, got)
		}
	}
}

func TestTheStepsOfADeployment(t *testing.T) {
	d := deployment(10, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{
			{Updated: intstr.FromInt32(1), Soak: &metav1.Duration{Duration: time.Hour}},
			{Updated: intstr.FromString("25%"), Approval: machinev1alpha1.ApprovalManual, Analyses: []string{"pods"}},
		}
	})
	got := StepsOf(d)
	if len(got) != 2 || got[0].Updated != 1 || got[0].Soak != time.Hour || got[1].Updated != 3 || got[1].Soak != 0 || got[1].Approval != machinev1alpha1.ApprovalManual || !slices.Equal(got[1].Analyses, []string{"pods"}) {
		t.Errorf("the steps are %+v", got)
	}
}

// TestTheCauseOfARejection compares the recorded rejection.
func TestTheCauseOfARejection(t *testing.T) {
	abort := note(machinev1alpha1.AnnotationRolloutAbort, "ID")
	exceeded := func(stalled string) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			onFailure(machinev1alpha1.FailureRollback)(d)
			d.Status.Revisions[1].Outcome = machinev1alpha1.RevisionDeadlineExceeded
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Progressing", Status: "False", Reason: machinev1alpha1.ReasonProgressDeadlineExceeded, Message: "no progress"})
			if stalled != "" {
				d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: "Stalled", Status: "True", Reason: stalled, Message: "no progress; its Machines fail"})
			}
		}
	}
	const overdue = machinev1alpha1.ReasonProgressDeadlineExceeded
	for name, tc := range map[string]struct {
		options         []deploymentOption
		reason, message string
	}{
		"an abort": {[]deploymentOption{abort}, machinev1alpha1.RejectionAborted, "a user aborted the rollout when 1 of 4 Machines were updated, 1 of them available"},
		"an abort during a rollback by the spec": {[]deploymentOption{abort, func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{Revision: 1}
		}}, "", ""},
		"an abort of that rollback": {[]deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{Revision: 3}
			d.Status.Revisions = []machinev1alpha1.Revision{revision(2, "v2", machinev1alpha1.RevisionComplete), revision(3, "v1", machinev1alpha1.RevisionInProgress)}
		}, abort}, "", ""},
		"an abort of the way back": {[]deploymentOption{rejected, func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions = []machinev1alpha1.Revision{revision(1, "v0", machinev1alpha1.RevisionComplete), revision(3, "v1", machinev1alpha1.RevisionInProgress)}
		}, abort}, machinev1alpha1.RejectionAborted, "a user aborted the rollout"},
		"an abort of what is rejected":         {[]deploymentOption{rejected, abort}, machinev1alpha1.RejectionAborted, "a user aborted the rollout"},
		"a deadline":                           {[]deploymentOption{exceeded("")}, overdue, "no progress"},
		"a deadline with what Machines report": {[]deploymentOption{exceeded(overdue)}, overdue, "no progress; its Machines fail"},
		"a deadline beside another cause":      {[]deploymentOption{exceeded("TooManyUnhealthy")}, overdue, "no progress"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(now, Observed{Deployment: deployment(4, append([]deploymentOption{inRollout(2)}, tc.options...)...), Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true})
			reason, message := "", ""
			if r := p.Status.Rollout; r != nil && r.Rejected != nil {
				reason, message = r.Rejected.Reason, r.Rejected.Message
			}
			if reason != tc.reason || message != tc.message {
				t.Errorf("%s: %q, want %s: %q", reason, message, tc.reason, tc.message)
			}
		})
	}
}

// TestAHoldIsAboutMachinesThatMayBeReplaced has one set, of the template in the spec or of another one, and a user who holds rollouts.
func TestAHoldIsAboutMachinesThatMayBeReplaced(t *testing.T) {
	inPlace := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.InPlaceUpdate }
	after := func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Rollout.After = &metav1.Time{Time: now.Add(-time.Hour)}
	}
	updates := func(version string, n int32) setOption {
		return func(s *Set) {
			s.Spec.InPlaceUpdate = &machinev1alpha1.MachineSetInPlaceUpdate{ID: rollingOf(template(version)).hash()}
			s.Status.UpdatedReplicas = n
		}
	}
	for name, tc := range map[string]struct {
		options []deploymentOption
		set     Set
		held    bool
	}{
		"of the template":                        {nil, machineSet("v2", 2, 4), false},
		"of another template":                    {nil, machineSet("v1", 2, 4), true},
		"of another template, without Machines":  {nil, machineSet("v1", 2, 0), false},
		"younger than a time":                    {[]deploymentOption{after}, machineSet("v2", 2, 4, created(now)), false},
		"older than a time":                      {[]deploymentOption{after}, machineSet("v2", 2, 4, created(now.Add(-2*time.Hour))), true},
		"updated in place":                       {[]deploymentOption{inPlace}, machineSet("v2", 2, 4, updates("v2", 4)), false},
		"never updated in place":                 {[]deploymentOption{inPlace}, machineSet("v2", 2, 4), false},
		"in the middle of an update in place":    {[]deploymentOption{inPlace}, machineSet("v2", 2, 4, updates("v2", 3)), true},
		"updated in place to another template":   {[]deploymentOption{inPlace}, machineSet("v2", 2, 4, updates("v1", 4)), true},
		"left in the middle, and rolls from now": {nil, machineSet("v2", 2, 4, updates("v2", 3)), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{note(machinev1alpha1.AnnotationRolloutHold, "")}, tc.options...)...)
			recorded("v2", tc.set.Spec.Replicas)(d)
			p := Plan(now, Observed{Deployment: d, Sets: []Set{tc.set}, ClassFound: true})
			if got := condition(p, "Progressing") == "Unknown "+machinev1alpha1.ReasonRolloutHeld; got != tc.held {
				t.Errorf("Progressing is %s", condition(p, "Progressing"))
			}
		})
	}
}
