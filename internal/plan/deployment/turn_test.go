package deployment

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// turnOf the rollout of v2, which is admitted.
func turnOf(changes ...func(*machinev1alpha1.RolloutTurn)) *machinev1alpha1.RolloutTurn {
	hash := rollingOf(template("v2")).hash()
	t := &machinev1alpha1.RolloutTurn{Spec: machinev1alpha1.RolloutTurnSpec{MachineDeployment: "workers", Template: hash}}
	t.Status = machinev1alpha1.RolloutTurnStatus{Template: hash, AdmittedTime: &since}
	for _, c := range changes {
		c(t)
	}
	return t
}

// TestTheTurnOfARollout has four Machines of v1 and one of v2: a rollout that goes on deletes one of v1.
func TestTheTurnOfARollout(t *testing.T) {
	held := func(until *metav1.Time) func(*machinev1alpha1.RolloutTurn) {
		return func(t *machinev1alpha1.RolloutTurn) {
			t.Status.AdmittedTime = nil
			t.Status.Held = &machinev1alpha1.RolloutHold{Reason: "Other", Message: "RolloutPolicy fleet: wave b waits for wave a", Until: until}
		}
	}
	frozen := func(before time.Duration) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			at := metav1.NewTime(now.Add(-before).UTC().Truncate(time.Second))
			d.Status.FrozenSince = &at
		}
	}
	in := func(d time.Duration) *metav1.Time {
		at := metav1.NewTime(now.Add(d).UTC().Truncate(time.Second))
		return &at
	}
	onDelete := func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.Type = machinev1alpha1.OnDelete }
	for name, tc := range map[string]struct {
		options []deploymentOption
		none    bool
		turn    *machinev1alpha1.RolloutTurn
		old     int32
		waits   bool
		held    bool
		message string
		// until is the time at which the hold ends by itself, 0 for none.
		until    time.Duration
		asksNone bool
	}{
		"without policies it asks nobody":                    {none: true, old: 3, asksNone: true},
		"without policies no answer counts":                  {none: true, turn: turnOf(held(nil)), old: 3, asksNone: true},
		"without an answer it waits":                         {old: 4, waits: true, message: "the rollout waits for provider-drover to ask the RolloutPolicies"},
		"without an answer for some time it waits":           {options: []deploymentOption{frozen(time.Minute)}, old: 4, waits: true, until: 9 * time.Minute},
		"without an answer for ten minutes that is reported": {options: []deploymentOption{frozen(10 * time.Minute)}, old: 4, held: true, message: "; look at its Deployment and its log"},
		"with an answer it goes on":                          {turn: turnOf(), old: 3},
		"an answer for another template does not count":      {turn: turnOf(func(t *machinev1alpha1.RolloutTurn) { t.Status.Template = "x" }), old: 4, waits: true},
		"an answer to another question does not count":       {turn: turnOf(func(t *machinev1alpha1.RolloutTurn) { t.Spec.Template = "x" }), old: 4, waits: true},
		"an answer that holds it":                            {turn: turnOf(held(nil)), old: 4, held: true, message: "RolloutPolicy fleet: wave b waits for wave a"},
		"an answer that holds it until a time":               {turn: turnOf(held(in(20 * time.Minute))), old: 4, held: true, until: 20 * time.Minute},
		"an answer that held it until a time holds it":       {turn: turnOf(held(in(-time.Minute))), old: 4, held: true},
		"with OnDelete it asks nobody":                       {options: []deploymentOption{onDelete}, turn: turnOf(held(nil)), old: 3, asksNone: true},
		"a held rollout asks meanwhile":                      {options: []deploymentOption{note(machinev1alpha1.AnnotationRolloutHold, "")}, turn: turnOf(), old: 4},
		"a rollout outside of its windows asks meanwhile":    {options: []deploymentOption{window(now.Add(time.Hour).UTC().Format("15"))}, turn: turnOf(held(nil)), old: 4},
		"the way back from a rejected template asks nobody":  {options: []deploymentOption{rejected}, turn: turnOf(held(nil)), old: 4, asksNone: true},
		"the template that was complete last does not wait": {options: []deploymentOption{func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions = append(d.Status.Revisions[1:], d.Status.Revisions[0])
			d.Status.Revisions[0].Outcome, d.Status.Revisions[1].Outcome = machinev1alpha1.RevisionComplete, machinev1alpha1.RevisionSuperseded
		}}, turn: turnOf(held(nil)), old: 3, asksNone: true},
		"an answer lets a step pass that is not full": {options: []deploymentOption{steps(30*time.Minute, ""), atStep(1)}, turn: turnOf(), old: 4},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, append([]deploymentOption{inRollout(2), func(d *machinev1alpha1.MachineDeployment) { d.Spec.ProgressDeadlineSeconds = 1800 }}, tc.options...)...)
			p := Plan(now, Observed{Deployment: d, Sets: []Set{machineSet("v1", 1, 4), machineSet("v2", 2, 1)}, ClassFound: true, HasPolicies: !tc.none, Turn: tc.turn})
			if got := decided(p)["v1"]; got != tc.old {
				t.Errorf("v1 has %d Machines, want %d", got, tc.old)
			}
			c := p.Conditions[slices.IndexFunc(p.Conditions, func(c shared.Condition) bool { return c.Type == machinev1alpha1.ConditionProgressing })]
			waits, held := c.Reason == machinev1alpha1.ReasonAwaitingTurn, c.Reason == machinev1alpha1.ReasonAwaitingWave
			if waits != tc.waits || waits && c.Status != "True" || held != tc.held || held && c.Status != "Unknown" || !strings.Contains(c.Message, tc.message) {
				t.Errorf("Progressing is %s %s: %s", c.Status, c.Reason, c.Message)
			}
			if waits && !strings.HasPrefix(condition(p, machinev1alpha1.ConditionReconciling), "True") {
				t.Errorf("kubectl wait --for=condition=Reconciling=false returns before anybody was asked: Reconciling is %s", condition(p, machinev1alpha1.ConditionReconciling))
			}
			if waits || held {
				until := time.Duration(0)
				if h := p.Status.Rollout.Held; h.Until != nil {
					until = h.Until.Sub(now.UTC().Truncate(time.Second))
				}
				if until != tc.until || tc.until > 0 && p.CallAgain > tc.until {
					t.Errorf("it is held for %s and calls again after %s, want %s", until, p.CallAgain, tc.until)
				}
			}
			switch {
			case tc.asksNone != (p.Turn == nil):
				t.Errorf("it asks %+v", p.Turn)
			case p.Turn != nil && (p.Turn.Spec.Template != turnOf().Spec.Template || p.Turn.Spec.MachineDeployment != d.Name || p.Turn.Namespace != d.Namespace || p.Turn.Name == ""):
				t.Errorf("it asks %+v", p.Turn)
			}
		})
	}
}

// TestTheStateOfAMember is what waves see of a MachineDeployment.
func TestTheStateOfAMember(t *testing.T) {
	completion := metav1.NewTime(now.Add(-time.Hour).UTC().Truncate(time.Second))
	// rolledOut has v2 as its template, and is complete.
	rolledOut := func(d *machinev1alpha1.MachineDeployment) {
		inRollout(2)(d)
		d.Status.Revisions[1].Outcome, d.Status.Revisions[1].CompletionTime = machinev1alpha1.RevisionComplete, &completion
		d.Status.ObservedGeneration = d.Generation
	}
	progressing := func(reason string) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Conditions = append(d.Status.Conditions, metav1.Condition{Type: machinev1alpha1.ConditionProgressing, Status: "False", Reason: reason})
		}
	}
	version := func(v string) deploymentOption {
		return func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = v }
	}
	for name, tc := range map[string]struct {
		options []deploymentOption
		want    machinev1alpha1.MemberState
	}{
		"one without a status is new": {nil, machinev1alpha1.MemberNew},
		"one whose first Machines start is new": {[]deploymentOption{inRollout(2), func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions = d.Status.Revisions[1:]
			d.Status.Revisions[0].Revision = 1
		}}, machinev1alpha1.MemberNew},
		"one that was complete once is not new": {[]deploymentOption{inRollout(2), func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions = d.Status.Revisions[1:]
		}}, machinev1alpha1.MemberRollingOut},
		"a rollout in progress":               {[]deploymentOption{inRollout(2)}, machinev1alpha1.MemberRollingOut},
		"a rollout that was complete":         {[]deploymentOption{rolledOut}, machinev1alpha1.MemberComplete},
		"a template that is not observed yet": {[]deploymentOption{rolledOut, version("v3")}, machinev1alpha1.MemberRollingOut},
		"a rejected template":                 {[]deploymentOption{inRollout(2), rejected}, machinev1alpha1.MemberFailed},
		"a rejected template before a retry":  {[]deploymentOption{inRollout(2), rejected, note(machinev1alpha1.AnnotationRolloutRetry, "ID")}, machinev1alpha1.MemberRollingOut},
		"a rollout without progress":          {[]deploymentOption{inRollout(2), progressing(machinev1alpha1.ReasonProgressDeadlineExceeded)}, machinev1alpha1.MemberFailed},
		"a failed analysis":                   {[]deploymentOption{inRollout(2), progressing(machinev1alpha1.ReasonAnalysisFailed)}, machinev1alpha1.MemberFailed},
		"an analysis without a verdict":       {[]deploymentOption{inRollout(2), progressing(machinev1alpha1.ReasonAnalysisInconclusive)}, machinev1alpha1.MemberFailed},
		"a paused rollout":                    {[]deploymentOption{inRollout(2), paused}, machinev1alpha1.MemberPaused},
		"a pause after the rollout":           {[]deploymentOption{rolledOut, paused}, machinev1alpha1.MemberComplete},
		"a rollout that waits for its window": {[]deploymentOption{inRollout(2), progressing(machinev1alpha1.ReasonOutsideWindow)}, machinev1alpha1.MemberRollingOut},
		"a failure of an earlier rollout":     {[]deploymentOption{rolledOut, progressing(machinev1alpha1.ReasonProgressDeadlineExceeded)}, machinev1alpha1.MemberComplete},
		"a rollback by the spec": {[]deploymentOption{rolledOut, version("v3"), func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{Revision: 2}
		}}, machinev1alpha1.MemberComplete},
		"a time of spec.rollout.after": {[]deploymentOption{rolledOut, func(d *machinev1alpha1.MachineDeployment) {
			d.Spec.Rollout.After, d.Generation = &completion, d.Generation+1
		}}, machinev1alpha1.MemberRollingOut},
		"a time before the set was created": {[]deploymentOption{rolledOut, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Rollout.After = &completion }}, machinev1alpha1.MemberComplete},
		"Machines that are missing afterwards": {[]deploymentOption{rolledOut, func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Conditions = []metav1.Condition{{Type: machinev1alpha1.ConditionAvailable, Status: "False"}}
		}}, machinev1alpha1.MemberUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(4, tc.options...)
			got, completed := MemberState(d)
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if isComplete := got == machinev1alpha1.MemberComplete || got == machinev1alpha1.MemberUnavailable; isComplete != completed.Equal(completion.Time) {
				t.Errorf("completed at %s", completed)
			}
		})
	}
}
