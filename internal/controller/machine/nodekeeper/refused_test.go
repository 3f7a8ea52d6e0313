package nodekeeper

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// TestADrainReportsWhyAPodCannotBeEvicted has the answers of an API server to an eviction. A budget is the usual cause, and
// has no word of its own. The cause stays while the eviction is not tried again.
func TestADrainReportsWhyAPodCannotBeEvicted(t *testing.T) {
	withCause := func(err *kerrors.StatusError, cause metav1.CauseType) error {
		err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}}
		return err
	}
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		err  error
		want machinev1alpha1.DrainCause
	}{
		"AWebhookThatCannotBeCalled":   {withCause(kerrors.NewInternalError(errors.New("no")), target.CauseAdmission), machinev1alpha1.DrainEvictionRefused},
		"APolicyThatDenies":            {withCause(kerrors.NewInvalid(schema.GroupKind{}, "a", nil), target.CauseAdmission), machinev1alpha1.DrainEvictionRefused},
		"AMissingRight":                {kerrors.NewForbidden(pods, "a", errors.New("no")), machinev1alpha1.DrainEvictionRefused},
		"AnErrorOfTheAPIServer":        {kerrors.NewInternalError(errors.New("no")), machinev1alpha1.DrainEvictionFailed},
		"ABudget":                      {withCause(kerrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause), ""},
		"AnAPIServerThatIsBusy":        {kerrors.NewTooManyRequests("no", 0), ""},
		"ANamespaceThatIsBeingDeleted": {withCause(kerrors.NewForbidden(pods, "a", errors.New("no")), corev1.NamespaceTerminatingCause), ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("n", corev1.ConditionTrue)
			kube := fake.NewClientset(n, podOn("a"))
			kube.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				return a.GetSubresource() == "eviction", nil, tc.err
			})
			at := start
			x, _ := newKeeper(start, kube, n)
			x.Now = func() time.Time { return at }
			wn := workerNode(deleted)
			for range 3 { // The second and third pass do not evict it again.
				if _, err := x.Remove(t.Context(), wn, nil); err != nil {
					t.Fatal(err)
				}
				at = at.Add(time.Second)
			}
			d := wn.Observation.Drain
			if d == nil || len(d.Pods) != 1 || d.Pods[0].Cause != tc.want {
				t.Errorf("drain %+v, want the cause %q", d, tc.want)
			}
		})
	}
}
