package action_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/action"
	"github.com/drover-dev/drover/internal/kubectl/view"
	plan "github.com/drover-dev/drover/internal/plan/deployment"
)

func TestRequestsOfARollout(t *testing.T) {
	type changes = func(*view.View, view.Ref) ([]action.Change, error)
	hold := func(cause string, undo bool) changes {
		return func(v *view.View, ref view.Ref) ([]action.Change, error) { return action.Hold(v, ref, cause, undo) }
	}
	canary := func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Strategy.RollingUpdate.Steps = []machinev1alpha1.RolloutStep{{Updated: intstr.FromInt32(1), Approval: machinev1alpha1.ApprovalManual}}
		d.Status.Revisions[1].Outcome, d.Status.Revisions[2].Outcome = machinev1alpha1.RevisionComplete, machinev1alpha1.RevisionInProgress
		d.Status.Rollout = &machinev1alpha1.RolloutStatus{ID: plan.IDOf(d.Status.Revisions[2]), Step: 1}
	}
	id := ""
	{
		d := deployment(canary)
		id = d.Status.Rollout.ID
	}
	with := func(more ...func(*machinev1alpha1.MachineDeployment)) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) {
			canary(d)
			for _, m := range more {
				m(d)
			}
		}
	}
	annotated := func(key, value string) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) { d.Annotations = map[string]string{key: value} }
	}
	// The hash of the template in the spec is that of a rejection in the status.
	reject := func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Rollout.Rejected = &machinev1alpha1.RejectedTemplate{ID: id, Revision: 3, Hash: plan.HashOfSpec(d)}
	}
	note := func(key string, value any) string {
		b, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{"machine.drover.dev/" + key: value}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, tc := range map[string]struct {
		change func(*machinev1alpha1.MachineDeployment)
		do     changes
		patch  string
		err    string
	}{
		"a step is approved by the ID of its rollout": {canary, action.Approve, note("rollout-approve", id+"/1"), ""},
		"not twice":                     {with(annotated("machine.drover.dev/rollout-approve", id+"/1")), action.Approve, "", "step 1 of md/workers is approved already"},
		"not without steps":             {nil, action.Approve, "", "is at no step that could be approved"},
		"not after the last step":       {with(func(d *machinev1alpha1.MachineDeployment) { d.Status.Rollout.Step = 2 }), action.Approve, "", "is at no step that could be approved"},
		"not before the change is seen": {with(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v4" }), action.Approve, "", "the change is not observed yet"},
		"a generation that Crossplane raised holds up no approval": {with(func(d *machinev1alpha1.MachineDeployment) { d.Generation = 9 }), action.Approve, note("rollout-approve", id+"/1"), ""},
		"and no abort": {with(func(d *machinev1alpha1.MachineDeployment) { d.Generation = 9 }), action.Abort, note("rollout-abort", id), ""},
		"no abort of another rollout than that of the template": {with(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v4" }), action.Abort, "", "the change is not observed yet"},
		"not if the step needs none":                            {with(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Strategy.RollingUpdate.Steps[0].Approval = "" }), action.Approve, "", "needs no approval"},
		"a hold with its cause":                                 {nil, hold("incident 42", false), note("rollout-hold", "incident 42"), ""},
		"a hold without a cause":                                {nil, hold("", false), note("rollout-hold", "true"), ""},
		"a hold ends":                                           {annotated("machine.drover.dev/rollout-hold", "x"), hold("", true), note("rollout-hold", nil), ""},
		"without a hold nothing ends":                           {nil, hold("", true), "", "is not held"},
		"an abort names the rollout":                            {canary, action.Abort, note("rollout-abort", id), ""},
		"a complete rollout stays": {with(func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions[2].Outcome = machinev1alpha1.RevisionComplete
		}), action.Abort, "", "run kubectl drover rollout undo md/workers"},
		"there is nothing to go back to": {with(func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Revisions[1].Outcome = machinev1alpha1.RevisionSuperseded
		}), action.Abort, "", "there is none to go back to"},
		"a rollback is not aborted":         {with(func(d *machinev1alpha1.MachineDeployment) { d.Spec.RollbackTo = &machinev1alpha1.RollbackTo{} }), action.Abort, "", "--release"},
		"a rejected template is not twice":  {with(reject), action.Abort, "", "is rejected already"},
		"a retry names the rejection":       {with(reject), action.Retry, `{"metadata":{"annotations":{"machine.drover.dev/rollout-abort":null,"machine.drover.dev/rollout-retry":"` + id + `"}}}`, ""},
		"without a rejection there is none": {canary, action.Retry, "", "is not rejected, and no analysis of its rollout failed"},
		"a retry of a failed analysis names the time of its step": {with(func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Rollout.ReachedTime = &metav1.Time{Time: time.Unix(1767225600, 0)}
			d.Status.Rollout.Held = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalysisFailed}
		}), action.Retry, `{"metadata":{"annotations":{"machine.drover.dev/rollout-abort":null,"machine.drover.dev/rollout-retry":"` + id + `@1767225600"}}}`, ""},
		"an analysis that runs is not retried": {with(func(d *machinev1alpha1.MachineDeployment) {
			d.Status.Rollout.ReachedTime = &metav1.Time{Time: time.Unix(1767225600, 0)}
			d.Status.Rollout.Held = &machinev1alpha1.RolloutHold{Reason: machinev1alpha1.ReasonAnalyzing}
		}), action.Retry, "", "no analysis of its rollout failed"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(tc.change)
			ref := view.Ref{Kind: view.MachineDeployment, Namespace: d.Namespace, Name: d.Name}
			got, err := tc.do(&view.View{Deployments: []machinev1alpha1.MachineDeployment{*d}}, ref)
			var c action.Change
			if len(got) > 0 {
				c = got[0]
			}
			check(t, name, c, err, tc.patch, tc.err)
		})
	}
	if _, err := action.Approve(&view.View{}, view.Ref{Kind: view.MachineSet, Name: "s"}); err == nil || !strings.Contains(err.Error(), "has no rollout") {
		t.Errorf("error %v for a MachineSet", err)
	}
}
