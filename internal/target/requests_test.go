package target

import (
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

func TestRequestsAreFoundByTheirUserUntilTheyAreDecided(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	csr.Spec.Username, csr.Spec.SignerName = "system:node:a", certificatesv1.KubeletServingSignerName
	kube := fake.NewClientset(csr)
	reported := make(chan string, 10)
	// The fake has no resource versions: neither its list nor its watch reports a change between the two.
	watched := make(chan struct{}, 10)
	kube.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := kube.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watched <- struct{}{}
		return true, w, err
	})
	r, err := startRequests(kube, csr.Spec.SignerName, func(name string) { reported <- name })
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	l := &link{now: time.Now, users: map[Ref]time.Time{ClusterRef("c"): time.Now(), ClusterRef("idle"): {}}, requests: map[string]*requests{csr.Spec.SignerName: r}}
	c := &Conn{link: l}
	await := func() {
		t.Helper()
		select {
		case <-reported:
		case <-patience.Over():
			t.Fatal("nobody was reported")
		}
	}
	await()
	<-watched
	if got := c.RequestsOf("system:node:a"); !slices.Equal(got, []string{"r"}) || c.Request("r") == nil {
		t.Errorf("requests %v", got)
	}
	var replayed []string
	l.replay(func(ref Ref, name string) { replayed = append(replayed, ref.Name+"/"+name) })
	if !slices.Equal(replayed, []string{"c/r"}) {
		t.Errorf("replayed %v, want those of who uses the cluster", replayed)
	}

	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied}}
	if _, err := kube.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await()
	if got := c.RequestsOf("system:node:a"); len(got) > 0 || c.Request("r") == nil {
		t.Errorf("requests %v that nobody has decided on", got)
	}
	if c.Request("other") != nil || len(c.RequestsOf("system:node:b")) > 0 {
		t.Error("requests that are not there")
	}
	c.Spec.Certificates.Serving = v1alpha1.CertificatesIgnore
	if c.Request("r") != nil {
		t.Error("a configuration that leaves certificates to others sees them")
	}
}
