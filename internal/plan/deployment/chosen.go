package deployment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// Template returns the template that a deployment rolls out.
func Template(d *machinev1alpha1.MachineDeployment) machinev1alpha1.MachineTemplate {
	t, _, _ := chosen(d)
	return t
}

// FieldOf returns the path of a field of the spec of that template, for messages.
func FieldOf(d *machinev1alpha1.MachineDeployment, field string) string {
	if _, rollback, _ := chosen(d); rollback != nil {
		return fmt.Sprintf("spec.rollbackTo.revision: %d: %s", rollback.Requested, field)
	}
	if good := insteadOfRejected(d); good != nil {
		return fmt.Sprintf("status.revisions: %d, which is rolled out instead of the rejected template: %s", good.Revision, field)
	}
	return "spec.template.spec." + field
}

// chosen returns the template to roll out, and its rollback if it comes from one. If the requested
// revision does not exist, it returns a problem, and the current revision is kept.
func chosen(d *machinev1alpha1.MachineDeployment) (machinev1alpha1.MachineTemplate, *machinev1alpha1.Rollback, *shared.Problem) {
	spec, revisions := d.Spec.Template, d.Status.Revisions
	if good := insteadOfRejected(d); good != nil {
		return from(*good, spec), nil, nil
	}
	if d.Spec.RollbackTo == nil {
		return spec, nil, nil
	}
	requested := d.Spec.RollbackTo.Revision
	number := requested
	switch force := d.Status.Rollback; {
	case force != nil && force.Requested == requested:
		number = force.Revision
	case requested == 0:
		number = previous(revisions)
	}
	i := slices.IndexFunc(revisions, func(r machinev1alpha1.Revision) bool { return r.Revision == number })
	if i >= 0 {
		return from(revisions[i], spec), &machinev1alpha1.Rollback{Requested: requested, Revision: number}, nil
	}
	problem := &shared.Problem{
		Reason:  machinev1alpha1.ReasonRevisionNotFound,
		Message: fmt.Sprintf("spec.rollbackTo.revision: there is no revision %d to go back to: it must be %s; nothing is replaced until it is", requested, oneOf(revisions)),
	}
	if n := len(revisions); n > 0 {
		return from(revisions[n-1], spec), nil, problem
	}
	return spec, nil, problem
}

// insteadOfRejected returns the revision that is rolled out because the template in the spec was rejected. It is nil
// if none was, or if a user rolls back.
func insteadOfRejected(d *machinev1alpha1.MachineDeployment) *machinev1alpha1.Revision {
	r := Rejected(d)
	if r == nil || d.Spec.RollbackTo != nil {
		return nil
	}
	return lastGood(d.Status.Revisions, r.Revision)
}

// previous returns the latest revision whose template differs from the current one, 0 if there is
// none.
func previous(revisions []machinev1alpha1.Revision) int64 {
	if len(revisions) == 0 {
		return 0
	}
	current := content(revisions[len(revisions)-1])
	for _, r := range slices.Backward(revisions) {
		if !content(r).same(current) {
			return r.Revision
		}
	}
	return 0
}

func oneOf(revisions []machinev1alpha1.Revision) string {
	if len(revisions) == 0 {
		return "absent, because there is none yet"
	}
	each := make([]string, 0, len(revisions))
	for _, r := range revisions {
		each = append(each, fmt.Sprint(r.Revision))
	}
	return "0, for the previous one, or one of " + strings.Join(each, ", ")
}

// after returns spec.rollout.after once that time has come, nil before.
func after(now time.Time, d *machinev1alpha1.MachineDeployment) *metav1.Time {
	if a := d.Spec.Rollout.After; a != nil && !now.Before(a.Time) {
		return a
	}
	return nil
}
