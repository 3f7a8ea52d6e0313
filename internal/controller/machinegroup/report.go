package machinegroup

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// afterConflict the cache has what it lacked.
const afterConflict = 50 * time.Millisecond

// report writes the status if it differs. It returns the time after which to look again, if the
// status was changed by another client.
func (r *reconciler) report(ctx context.Context, g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is pendingCounts) (time.Duration, error) {
	if equality.Semantic.DeepEqual(g.Status, s) {
		return 0, nil
	}
	now := g.DeepCopy()
	now.Status = s
	// As it was read: whoever saw an older group must not say what was created.
	if err := r.client.Status().Update(ctx, now); kerrors.IsConflict(err) {
		return afterConflict, nil
	} else if err != nil {
		return 0, err
	}
	r.pace.notified(client.ObjectKeyFromObject(g), is)
	return 0, nil
}

// delay returns how long a status that differs has to wait.
func (r *reconciler) delay(g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is pendingCounts) time.Duration {
	if isUrgent(g.Status, s) {
		return 0
	}
	return r.pace.delay(client.ObjectKeyFromObject(g), is, !sets.New(g.Status.Gone...).HasAll(s.Gone...))
}

// isUrgent reports whether a status has what must be recorded before anything else is done:
// that a Machine was created, or that a change of the group cannot be carried out.
func isUrgent(was, is v1alpha1.MachineGroupStatus) bool {
	return !sets.New(was.Created...).HasAll(is.Created...) || !equality.Semantic.DeepEqual(was.Conditions, is.Conditions)
}
