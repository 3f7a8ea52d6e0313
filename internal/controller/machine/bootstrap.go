package machine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/jointoken"
)

// bootstrap creates the token in the target cluster and the Secret with the user data beside the Machine, as
// the pipeline requests them. It reports whether the pipeline has new facts to decide by.
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

// ownUserData is the status of user data that Drover did not write.
func (f *facts) ownUserData() *machinev1alpha1.UserDataStatus {
	if f.join.OwnUserData == nil {
		return nil
	}
	return f.join.OwnUserData.UserDataStatus.DeepCopy()
}

// userDataCondition reports whether user data that Drover did not write has a placeholder for the join token.
// It is empty for a Machine whose user data never lacked the placeholder.
func userDataCondition(f *facts) []metav1.Condition {
	own := f.join.OwnUserData
	switch {
	case own == nil:
		return nil
	case !own.HasToken:
		return []metav1.Condition{{
			Type: machinev1alpha1.ConditionUserDataComplete, Status: metav1.ConditionFalse, Reason: machinev1alpha1.ReasonTokenPlaceholderMissing,
			Message: fmt.Sprintf("Secret %q, key %q, has no placeholder for the join token, such as <<BOOTSTRAP_TOKEN>>: the VM gets none", own.SecretName, own.Key),
		}}
	case meta.FindStatusCondition(f.machine.Status.Conditions, machinev1alpha1.ConditionUserDataComplete) != nil:
		return []metav1.Condition{{Type: machinev1alpha1.ConditionUserDataComplete, Status: metav1.ConditionTrue, Reason: machinev1alpha1.ReasonPlaceholdersFilled}}
	}
	return nil
}
