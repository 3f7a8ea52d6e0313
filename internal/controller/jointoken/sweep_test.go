package jointoken

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/internal/target"
)

// tokenFor is a token in the target cluster. Fakes give out no UIDs.
func tokenFor(id string, jt, config types.UID) *corev1.Secret {
	owner := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID(jt) })
	s := secretFor(owner, config, id, "0123456789abcdef", start)
	s.SetUID(types.UID("uid-of-" + id))
	return s
}

func TestSweep(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}}
	dead := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "dead", UID: "dead"}}
	lives := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID("lives") })
	unseen := joinToken(func(j *v1alpha1.JoinToken) { j.SetName("unseen"); j.SetUID("unseen") })
	cached := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(pc, dead, lives).Build()
	live := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(lives, unseen).Build()

	foreign := tokenFor("ffffff", "gone", "ours")
	foreign.Type = corev1.SecretTypeOpaque
	kube := fake.NewClientset(tokenFor("aaaaaa", "gone", "ours"), tokenFor("bbbbbb", "lives", "ours"), tokenFor("cccccc", "gone", "anothers"),
		tokenFor("dddddd", "unseen", "ours"), tokenFor("eeeeee", "", "ours"), foreign)
	events := &texts{}
	s := &sweeper{cached: cached, live: live, record: events, log: logging.NewNopLogger(), connect: func(_ context.Context, ref target.Ref) (sweepable, error) {
		if ref.Namespace != "" {
			return sweepable{}, errors.New("unreachable")
		}
		return sweepable{kube: kube, config: "ours", classify: func(err error) error { return err }}, nil
	}}
	tokens := func() string {
		t.Helper()
		l, err := kube.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range l.Items {
			out = append(out, string(s.Data["token-id"]))
		}
		return strings.Join(out, " ")
	}

	if err := s.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := tokens(); got != "aaaaaa bbbbbb cccccc dddddd eeeeee ffffff" {
		t.Errorf("what was seen once is gone: %s are left", got)
	}
	for range 2 {
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := tokens(); got != "bbbbbb cccccc dddddd eeeeee ffffff" {
		t.Errorf("%s are left, want all but ours whose JoinToken is gone for the API server too", got)
	}
	if len(events.all) != 1 || !strings.Contains(events.all[0], "aaaaaa") || strings.Contains(events.all[0], "0123456789abcdef") {
		t.Errorf("events %v", events.all)
	}
}

func TestATokenThatIsOnItsWayOutForOneSweepIsLeftAlone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "ours"}}
	control := crfake.NewClientBuilder().WithScheme(scheme).WithObjects(pc).Build()
	kube := fake.NewClientset(tokenFor("aaaaaa", "late", "ours"))
	s := &sweeper{cached: control, live: control, record: &texts{}, log: logging.NewNopLogger(), connect: func(context.Context, target.Ref) (sweepable, error) {
		return sweepable{kube: kube, config: "ours", classify: func(err error) error { return err }}, nil
	}}
	sweep := func() {
		t.Helper()
		if err := s.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	late := joinToken(func(j *v1alpha1.JoinToken) { j.SetUID("late") })
	if err := control.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	sweep()
	if err := client.IgnoreNotFound(control.Delete(t.Context(), late)); err != nil {
		t.Fatal(err)
	}
	sweep()
	if _, err := kube.CoreV1().Secrets("kube-system").Get(t.Context(), "bootstrap-token-aaaaaa", metav1.GetOptions{}); err != nil {
		t.Errorf("it was not seen twice in a row: %v", err)
	}
}
