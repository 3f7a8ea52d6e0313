package machine

import (
	"context"

	"github.com/drover-dev/drover/internal/jointoken"
)

// bootstrap carries out what the pipeline asks for to let the Machine join: the token in
// the target cluster, and the Secret with the user data beside the Machine. The result
// reports whether the pipeline has new facts to decide by.
func (r *Reconciler) bootstrap(ctx context.Context, f *facts, d decision) (changed bool) {
	if d.bootstrap.Join == nil {
		return false
	}
	before, failed := f.join, f.joinError
	state, err := r.tokens.Apply(ctx, f.machine, jointoken.Request(*d.bootstrap.Join))
	if err != nil {
		f.joinError = err
		return failed == nil || failed.Error() != err.Error()
	}
	f.join, f.joinError = state, nil
	return failed != nil || before.Published != state.Published || before.Hash != state.Hash
}
