package action

import (
	"cmp"
	"fmt"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// of returns the changes of a MachineDeployment, or of those MachineDeployments of a NodePool that can be changed. It is an
// error if none can. The requests are annotations, which a pool leaves to its MachineDeployments.
func of(v *view.View, ref view.Ref, decide func(*machinev1alpha1.MachineDeployment) (Change, error)) ([]Change, error) {
	switch ref.Kind {
	case view.MachineDeployment:
		d := v.Deployment(ref.Namespace, ref.Name)
		if d == nil {
			return nil, view.NotFound(ref)
		}
		c, err := decide(d)
		if err != nil {
			return nil, err
		}
		return []Change{c}, nil
	case view.NodePool:
		p := v.Pool(ref.Namespace, ref.Name)
		if p == nil {
			return nil, view.NotFound(ref)
		}
		var out []Change
		var none error
		for _, d := range v.DeploymentsOf(p) {
			c, err := decide(d)
			if err != nil {
				none = cmp.Or(none, err)
				continue
			}
			out = append(out, c)
		}
		if len(out) == 0 {
			return nil, cmp.Or(none, fmt.Errorf("%s has no MachineDeployment", ref))
		}
		return out, nil
	}
	return nil, fmt.Errorf("a %s has no rollout: name a MachineDeployment or a NodePool", ref.Kind)
}

// Approve returns the changes that let rollouts begin the step after the one that they are at. The approval names the
// rollout, so that a change of the template voids it.
func Approve(v *view.View, ref view.Ref) ([]Change, error) {
	return of(v, ref, func(d *machinev1alpha1.MachineDeployment) (Change, error) {
		ref, r := refOf(view.MachineDeployment, d), d.Status.Rollout
		steps := d.Spec.Strategy.RollingUpdate.Steps
		switch {
		case !deployment.IsRecorded(d):
			return Change{}, notObserved(ref)
		case r == nil || r.ID == "" || r.Step == 0 || int(r.Step) > len(steps):
			return Change{}, fmt.Errorf("%s is at no step that could be approved: kubectl drover rollout status %s -n %s", ref, ref, ref.Namespace)
		case steps[r.Step-1].Approval == "":
			return Change{}, fmt.Errorf("%s is at step %d, which needs no approval: it waits for its Machines to be available, and for its analyses", ref, r.Step)
		}
		approval := fmt.Sprintf("%s/%d", r.ID, r.Step)
		if d.Annotations[machinev1alpha1.AnnotationRolloutApprove] == approval {
			return Change{}, fmt.Errorf("step %d of %s is approved already", r.Step, ref)
		}
		c := annotate(ref, fmt.Sprintf("approved: step %d of %d", r.Step, len(steps)), map[string]any{machinev1alpha1.AnnotationRolloutApprove: approval})
		if r.ReachedTime == nil {
			c.Note = "Its Machines are not all available yet: the next step begins when they are."
		}
		return c, nil
	})
}

// Hold returns the changes that hold rollouts with a cause, or end that. Unlike a pause, it changes no spec.
func Hold(v *view.View, ref view.Ref, cause string, undo bool) ([]Change, error) {
	return of(v, ref, func(d *machinev1alpha1.MachineDeployment) (Change, error) {
		ref := refOf(view.MachineDeployment, d)
		_, held := d.Annotations[machinev1alpha1.AnnotationRolloutHold]
		switch {
		case undo && !held:
			return Change{}, fmt.Errorf("%s is not held", ref)
		case undo:
			return annotate(ref, "not held", map[string]any{machinev1alpha1.AnnotationRolloutHold: nil}), nil
		}
		return annotate(ref, "held", map[string]any{machinev1alpha1.AnnotationRolloutHold: cmp.Or(cause, "true")}), nil
	})
}

// Abort returns the changes that reject the templates whose rollouts are in progress: the last revision that was complete is
// rolled out instead.
func Abort(v *view.View, ref view.Ref) ([]Change, error) {
	return of(v, ref, func(d *machinev1alpha1.MachineDeployment) (Change, error) {
		ref := refOf(view.MachineDeployment, d)
		switch {
		case deployment.Rejected(d) != nil:
			return Change{}, fmt.Errorf("the template of %s is rejected already", ref)
		case d.Spec.RollbackTo != nil:
			return Change{}, fmt.Errorf("%s has spec.rollbackTo: remove it to roll forward (kubectl drover rollout undo %s --release)", ref, ref)
		case !deployment.IsRecorded(d):
			return Change{}, notObserved(ref)
		}
		last := d.Status.Revisions[len(d.Status.Revisions)-1]
		switch {
		case last.Outcome == machinev1alpha1.RevisionComplete:
			return Change{}, fmt.Errorf("revision %d of %s is complete: to go back, run kubectl drover rollout undo %s", last.Revision, ref, ref)
		case deployment.LastGood(d) == nil:
			return Change{}, fmt.Errorf("no revision of %s was complete before: there is none to go back to. To hold the rollout, run kubectl drover rollout hold %s", ref, ref)
		}
		c := annotate(ref, fmt.Sprintf("aborted: revision %d", last.Revision), map[string]any{machinev1alpha1.AnnotationRolloutAbort: deployment.IDOf(last)})
		c.Note = fmt.Sprintf("Revision %d is rolled out instead until spec.template is changed, or kubectl drover rollout retry %s -n %s.", deployment.LastGood(d).Revision, ref, ref.Namespace)
		return c, nil
	})
}

// notObserved is the error for a rollout that Drover has not begun.
func notObserved(ref view.Ref) error {
	return fmt.Errorf("the template of %s has changed, and the change is not observed yet: look at its rollout first", ref)
}

// Retry returns the changes that withdraw rejections: the templates are rolled out again, from the first step on. If the analysis
// of a step failed, or has no verdict, that step begins again, with its analyses.
func Retry(v *view.View, ref view.Ref) ([]Change, error) {
	return of(v, ref, func(d *machinev1alpha1.MachineDeployment) (Change, error) {
		ref, retry := refOf(view.MachineDeployment, d), deployment.RetryOf(d)
		if retry == "" {
			return Change{}, fmt.Errorf("the template of %s is not rejected, and no analysis of its rollout failed", ref)
		}
		what := fmt.Sprintf("step %d of %d", d.Status.Rollout.Step, len(d.Spec.Strategy.RollingUpdate.Steps))
		if r := deployment.Rejected(d); r != nil {
			what = fmt.Sprintf("the template of revision %d", r.Revision)
		}
		return annotate(ref, "retried: "+what, map[string]any{
			machinev1alpha1.AnnotationRolloutRetry: retry, machinev1alpha1.AnnotationRolloutAbort: nil,
		}), nil
	})
}
