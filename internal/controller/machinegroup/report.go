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
	if wait := r.pace.next(client.ObjectKeyFromObject(g), is); wait > 0 && !urgent(g.Status, s) {
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

// urgent is what must be known before anything else is done, that a Machine was created,
// and what somebody waits for: that one is gone, or that something cannot be done.
func urgent(was, is v1alpha1.MachineGroupStatus) bool {
	return !sets.New(was.Created...).HasAll(is.Created...) || !sets.New(was.Gone...).HasAll(is.Gone...) ||
		!equality.Semantic.DeepEqual(was.Conditions, is.Conditions)
}
