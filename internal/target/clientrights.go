package target

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// clientRightsAgain is how long a result with missing rights is cached. It is shorter than the interval of
// probes, so that each probe reports the current rights.
const clientRightsAgain = 20 * time.Second

// clientRights are the rights to approve client certificates, of one set of credentials.
type clientRights struct {
	mu      sync.Mutex
	rights  rights
	checked time.Time
	missing []authv1.ResourceAttributes
}

// lacking returns which of the rights are missing, by a request to the API server.
func (c *clientRights) lacking(ctx context.Context, kube kubernetes.Interface, now time.Time) ([]authv1.ResourceAttributes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.missing) > 0 && now.Sub(c.checked) < clientRightsAgain {
		return c.missing, nil
	}
	if c.rights.needed == nil {
		for _, a := range needed(v1alpha1.Certificates{Serving: v1alpha1.CertificatesIgnore, Client: v1alpha1.ClientCertificatesApprove}) {
			if a.Group == certificatesv1.GroupName {
				c.rights.needed = append(c.rights.needed, a)
			}
		}
	}
	missing, err := c.rights.lacking(ctx, kube, now)
	if err != nil {
		return nil, err
	}
	c.missing, c.checked = missing, now
	return missing, nil
}

// ClientCertificates returns how Drover treats the client certificates of kubelets in the target cluster, and
// why: the policy Auto depends on the rights of the credentials.
func (c *Conn) ClientCertificates(ctx context.Context) (v1alpha1.ClientCertificatesStatus, error) {
	switch policy := c.Spec.Certificates.Client; policy {
	case v1alpha1.ClientCertificatesApprove, v1alpha1.ClientCertificatesIgnore:
		return v1alpha1.ClientCertificatesStatus{Policy: policy, Message: fmt.Sprintf("spec.certificates.client is %s", policy)}, nil
	}
	missing, err := c.client.lacking(ctx, c.Kube, c.link.now())
	if err != nil {
		return v1alpha1.ClientCertificatesStatus{}, c.Classify(err)
	}
	if len(missing) == 0 {
		return v1alpha1.ClientCertificatesStatus{
			Policy:  v1alpha1.ClientCertificatesApprove,
			Message: "spec.certificates.client is Auto, and the credentials have the rights to approve client certificates",
		}, nil
	}
	texts := make([]string, 0, len(missing))
	for _, a := range missing {
		texts = append(texts, textOf(a))
	}
	return v1alpha1.ClientCertificatesStatus{
		Policy:  v1alpha1.ClientCertificatesIgnore,
		Message: "spec.certificates.client is Auto, and the credentials lack rights: " + strings.Join(texts, ", "),
	}, nil
}
