package target

import (
	"errors"
	"slices"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestRightsThatLackAreNamed(t *testing.T) {
	forbidden := map[string]bool{"create pods/eviction": true, "update secrets in kube-system": true, "get configmaps cluster-info in kube-public": true}
	var asked int
	var broken error
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		review := a.(clienttesting.CreateAction).GetObject().(*authv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = !forbidden[textOf(*review.Spec.ResourceAttributes)]
		return true, review, broken
	})
	all := needed(v1alpha1.Certificates{})
	r, now := &rights{needed: all}, time.Unix(0, 0)
	lacking := func() []string {
		t.Helper()
		asked = 0
		missing, err := r.lacking(t.Context(), kube, now)
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		var out []string
		for _, a := range missing {
			out = append(out, textOf(a))
		}
		slices.Sort(out)
		return out
	}

	want := []string{"create pods/eviction", "get configmaps cluster-info in kube-public", "update secrets in kube-system"}
	if got := lacking(); !slices.Equal(got, want) || asked != len(all) {
		t.Errorf("%v of %d asked, want %v of %d", got, asked, want, len(all))
	}
	delete(forbidden, "create pods/eviction")
	if got := lacking(); !slices.Equal(got, want[1:]) || asked != 3 {
		t.Errorf("%v of %d asked, want %v of the 3 that lacked", got, asked, want[1:])
	}
	clear(forbidden)
	if got := lacking(); len(got) > 0 || asked != 2 {
		t.Errorf("%v of %d asked", got, asked)
	}
	if got := lacking(); len(got) > 0 || asked != 0 {
		t.Errorf("%v of %d asked again at once", got, asked)
	}
	now = now.Add(rightsAgain)
	forbidden["delete nodes"] = true
	if got := lacking(); !slices.Equal(got, []string{"delete nodes"}) {
		t.Errorf("later: %v, want what was taken away", got)
	}
	broken = errors.New("broken")
	if got := lacking(); len(got) > 0 {
		t.Errorf("an answer that did not come says %v", got)
	}
}

func TestRightsForCertificatesAreNeededByWhoApprovesThem(t *testing.T) {
	const serving, client, update = "approve signers.certificates.k8s.io kubernetes.io/kubelet-serving",
		"approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet",
		"update certificatesigningrequests/approval.certificates.k8s.io"
	for name, tc := range map[string]struct {
		policy v1alpha1.Certificates
		want   []string
	}{
		"ByDefaultServingOnes": {v1alpha1.Certificates{}, []string{serving, update}},
		"Both":                 {v1alpha1.Certificates{Serving: "Approve", Client: "Approve"}, []string{serving, client, update}},
		"ClientOnes":           {v1alpha1.Certificates{Serving: "Ignore", Client: "Approve"}, []string{client, update}},
		"None":                 {v1alpha1.Certificates{Serving: "Ignore", Client: "Ignore"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for _, a := range needed(tc.policy) {
				got[textOf(a)] = true
			}
			for _, right := range []string{serving, client, update} {
				if got[right] != slices.Contains(tc.want, right) {
					t.Errorf("%s: needed %v", right, got[right])
				}
			}
			if !got["get nodes"] {
				t.Error("the rights on Nodes are not needed")
			}
		})
	}
}
