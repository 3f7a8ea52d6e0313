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

// report the status, if it says anything new. What is not urgent waits for its turn: it
// returns how long.
func (r *reconciler) report(ctx context.Context, g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is onTheWay) (time.Duration, error) {
	if equality.Semantic.DeepEqual(g.Status, s) {
		return 0, nil
	}
	if wait := r.wait(g, s, is); wait > 0 {
		return wait, nil
	}
	now := g.DeepCopy()
	now.Status = s
	// As it was read: whoever saw an older group must not say what was created.
	if err := r.client.Status().Update(ctx, now); kerrors.IsConflict(err) {
		return afterConflict, nil
	} else if err != nil {
		return 0, err
	}
	r.pace.tell(client.ObjectKeyFromObject(g), is)
	return 0, nil
}

// wait is how long a status has to wait for its turn.
func (r *reconciler) wait(g *v1alpha1.MachineGroup, s v1alpha1.MachineGroupStatus, is onTheWay) time.Duration {
	key := client.ObjectKeyFromObject(g)
	switch {
	case isUrgent(g.Status, s):
		return 0
	case !sets.New(g.Status.Gone...).HasAll(s.Gone...):
		return r.pace.nextGone(key, is)
	}
	return r.pace.next(key, is)
}

// isUrgent reports whether a status has what must be recorded before anything else is done:
// that a Machine was created, or that a change of the group cannot be carried out.
func isUrgent(was, is v1alpha1.MachineGroupStatus) bool {
	return !sets.New(was.Created...).HasAll(is.Created...) || !equality.Semantic.DeepEqual(was.Conditions, is.Conditions)
}
