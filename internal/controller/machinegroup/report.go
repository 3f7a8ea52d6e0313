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

// afterConflict is the delay after a conflict, by which the cache has usually caught up.
const afterConflict = 50 * time.Millisecond

// report writes the status if it differs. If another client changed the status, it returns the delay
// until the next reconcile.
func (r *reconciler) report(ctx context.Context, g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is pendingCounts) (time.Duration, error) {
	if equality.Semantic.DeepEqual(g.Status, s) {
		return 0, nil
	}
	now := g.DeepCopy()
	now.Status = s
	// The update has the resourceVersion that was read: a status computed from an older group must
	// not record creations.
	if err := r.client.Status().Update(ctx, now); kerrors.IsConflict(err) {
		return afterConflict, nil
	} else if err != nil {
		return 0, err
	}
	r.pace.notified(client.ObjectKeyFromObject(g), is)
	return 0, nil
}

// delay returns how long a status that differs must wait.
func (r *reconciler) delay(g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is pendingCounts) time.Duration {
	if isUrgent(g.Status, s) {
		return 0
	}
	return r.pace.delay(client.ObjectKeyFromObject(g), is, !sets.New(g.Status.Gone...).HasAll(s.Gone...))
}

// isUrgent reports whether a status must be recorded before any other action: that a Machine was
// created, or that a change of the group cannot be carried out.
func isUrgent(was, is v1alpha1.MachineGroupStatus) bool {
	return !sets.New(was.Created...).HasAll(is.Created...) || !equality.Semantic.DeepEqual(was.Conditions, is.Conditions)
}
