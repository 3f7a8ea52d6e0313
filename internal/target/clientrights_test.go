package target

import (
	"errors"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

func TestClientCertificatesAreApprovedWhereTheRightsAreThere(t *testing.T) {
	const approve = "approve signers.certificates.k8s.io kubernetes.io/kube-apiserver-client-kubelet"
	forbidden := map[string]bool{approve: true}
	var requested []string
	var broken error
	kube := fake.NewClientset()
	kube.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authv1.SelfSubjectAccessReview).DeepCopy()
		right := textOf(*review.Spec.ResourceAttributes)
		requested = append(requested, right)
		review.Status.Allowed = !forbidden[right]
		return true, review, broken
	})
	now := time.Unix(0, 0)
	c := &Conn{Kube: kube, client: &clientRights{}, link: &link{now: func() time.Time { return now }}}
	policy := func(want v1alpha1.ClientCertificatePolicy, message string) {
		t.Helper()
		got, err := c.ClientCertificates(t.Context())
		if err != nil || got.Policy != want || !strings.Contains(got.Message, message) {
			t.Errorf("%+v, %v; want %s: %s", got, err, want, message)
		}
	}

	for _, p := range []v1alpha1.ClientCertificatePolicy{v1alpha1.ClientCertificatesApprove, v1alpha1.ClientCertificatesIgnore} {
		c.Spec.Certificates.Client = p
		policy(p, "spec.certificates.client is "+string(p))
	}
	if len(requested) > 0 {
		t.Errorf("%v was requested for a policy that needs no answer", requested)
	}

	c.Spec.Certificates.Client = v1alpha1.ClientCertificatesAuto
	policy(v1alpha1.ClientCertificatesIgnore, "lack rights: "+approve)
	for _, right := range requested {
		if !strings.Contains(right, "certificates.k8s.io") {
			t.Errorf("%q is no right on certificates", right)
		}
	}
	delete(forbidden, approve)
	policy(v1alpha1.ClientCertificatesIgnore, approve)
	now = now.Add(clientRightsAgain)
	policy(v1alpha1.ClientCertificatesApprove, "have the rights")
	calls := len(requested)
	c.Spec.Certificates.Client = ""
	policy(v1alpha1.ClientCertificatesApprove, "have the rights")
	if len(requested) != calls {
		t.Errorf("%d rights were requested again at once", len(requested)-calls)
	}
	forbidden[approve] = true
	now = now.Add(rightsAgain)
	policy(v1alpha1.ClientCertificatesIgnore, approve)

	broken, now = errors.New("broken"), now.Add(clientRightsAgain)
	if got, err := c.ClientCertificates(t.Context()); !errors.Is(err, broken) || got.Policy == v1alpha1.ClientCertificatesApprove {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheRightsOfAutoAreNotRequired(t *testing.T) {
	for _, a := range needed(v1alpha1.Certificates{Serving: v1alpha1.CertificatesIgnore, Client: v1alpha1.ClientCertificatesAuto}) {
		if a.Group == "certificates.k8s.io" {
			t.Errorf("%s is required", textOf(a))
		}
	}
}
