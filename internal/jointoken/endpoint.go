package jointoken

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/drover-dev/drover/internal/text"
)

// An endpoint is how a kubelet reaches the API server.
type endpoint struct {
	server string
	ca     []byte
}

// endpoint returns the endpoint of the cluster for kubelets. If the configuration has server and CA, nothing is
// read from the cluster.
func (c Cluster) endpoint(ctx context.Context) (endpoint, error) {
	var configured, published endpoint
	if o := c.APIServer; o != nil {
		configured = endpoint{server: o.Endpoint, ca: o.CABundle}
	}
	if err := checkCABundle(configured.ca); err != nil {
		return endpoint{}, err
	}
	if configured.server == "" || len(configured.ca) == 0 {
		var err error
		if published, err = c.clusterInfo(ctx); err != nil {
			return endpoint{}, err
		}
	}
	e := firstOf(configured, published, endpoint{server: c.Host, ca: c.CA})
	return e, e.check()
}

// firstOf takes server and CA from the first source that has it.
func firstOf(sources ...endpoint) endpoint {
	var out endpoint
	for _, s := range sources {
		if out.server == "" {
			out.server = s.server
		}
		if len(out.ca) == 0 {
			out.ca = s.ca
		}
	}
	return out
}

// check the endpoint. A URL with a quote or a blank would be read as something else in a
// kubeconfig. Without a CA, the kubelet trusts no API server.
func (e endpoint) check() error {
	if e.server == "" {
		return errors.New("spec.apiServer.endpoint of the configuration: required value: neither ConfigMap kube-public/cluster-info of the target cluster nor the credentials name an API server")
	}
	if u, err := url.Parse(e.server); err != nil || u.Host == "" || strings.ContainsAny(e.server, "\"\\ ") {
		return fmt.Errorf("spec.apiServer.endpoint of the configuration: invalid value %q: must be a URL like https://10.0.0.1:6443", e.server)
	}
	if len(e.ca) == 0 {
		return errors.New("spec.apiServer.caBundle of the configuration: required value: neither ConfigMap kube-public/cluster-info of the target cluster nor the credentials have a CA")
	}
	return nil
}

// checkCABundle of a configuration. Without this check, only the console of the VM would
// show the error.
func checkCABundle(bundle []byte) error {
	if len(bundle) == 0 || x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return nil
	}
	if x509.NewCertPool().AppendCertsFromPEM(text.Decoded(bundle)) {
		return errors.New("spec.apiServer.caBundle of the configuration: invalid value: is encoded twice: must be certificates as PEM, encoded as base64 once")
	}
	return errors.New("spec.apiServer.caBundle of the configuration: invalid value: must be certificates as PEM, encoded as base64")
}

// clusterInfo reads kube-public/cluster-info, which kubeadm writes. Clusters may lack it.
func (c Cluster) clusterInfo(ctx context.Context) (endpoint, error) {
	cm, err := c.Kube.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if kerrors.IsNotFound(err) || kerrors.IsForbidden(err) {
		return endpoint{}, nil
	}
	if err != nil {
		return endpoint{}, c.Classify(err)
	}
	return parseClusterInfo(cm.Data[bootstrapapi.KubeConfigKey])
}

func parseClusterInfo(kubeconfig string) (endpoint, error) {
	kc, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		// The parser's error quotes the text that it could not parse.
		return endpoint{}, errors.New("ConfigMap kube-public/cluster-info of the target cluster: key kubeconfig: must be a kubeconfig")
	}
	// kubeadm writes one cluster, with an empty name.
	cluster := kc.Clusters[""]
	if c, ok := kc.Contexts[kc.CurrentContext]; ok {
		cluster = kc.Clusters[c.Cluster]
	}
	if cluster == nil && len(kc.Clusters) == 1 {
		for _, only := range kc.Clusters {
			cluster = only
		}
	}
	if cluster == nil {
		cluster = &api.Cluster{}
	}
	return endpoint{server: cluster.Server, ca: cluster.CertificateAuthorityData}, nil
}
