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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// An endpoint is how a kubelet reaches the API server.
type endpoint struct {
	server string
	ca     []byte
}

// endpointOf takes each half from the first that has it: the configuration, what
// the cluster says of itself, and how we reach it ourselves.
func endpointOf(override *v1alpha1.APIServer, says, ourselves endpoint) endpoint {
	sources := []endpoint{says, ourselves}
	if override != nil {
		sources = append([]endpoint{{server: override.Endpoint, ca: override.CABundle}}, sources...)
	}
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

// check says what is wrong with the URL. Strings that are not part of any would be read
// as something else in a kubeconfig.
func (e endpoint) check() error {
	if e.server == "" {
		return errors.New("nobody says how Machines reach the API server: set spec.apiServer.endpoint of the configuration")
	}
	if u, err := url.Parse(e.server); err != nil || u.Host == "" || strings.ContainsAny(e.server, "\"\\ ") {
		return fmt.Errorf("the API server that Machines shall join is %q, which is no URL: set spec.apiServer.endpoint of the configuration", e.server)
	}
	return nil
}

// checkCA says what is wrong with the bundle of a configuration. A kubelet would only
// say it on the console of its VM.
func checkCA(override *v1alpha1.APIServer) error {
	if override == nil || len(override.CABundle) == 0 || x509.NewCertPool().AppendCertsFromPEM(override.CABundle) {
		return nil
	}
	return errors.New("spec.apiServer.caBundle of the configuration: invalid value: must be certificates as PEM, encoded as base64")
}

// whatClusterSays reads kube-public/cluster-info, which kubeadm writes. Clusters
// may lack it.
func whatClusterSays(ctx context.Context, kube kubernetes.Interface) (endpoint, error) {
	cm, err := kube.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(ctx, bootstrapapi.ConfigMapClusterInfo, metav1.GetOptions{})
	if kerrors.IsNotFound(err) || kerrors.IsForbidden(err) {
		return endpoint{}, nil
	}
	if err != nil {
		return endpoint{}, err
	}
	return parseClusterInfo(cm.Data[bootstrapapi.KubeConfigKey])
}

func parseClusterInfo(kubeconfig string) (endpoint, error) {
	kc, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return endpoint{}, fmt.Errorf("ConfigMap kube-public/cluster-info of the target cluster: key kubeconfig: %w", err)
	}
	// kubeadm writes one cluster and calls it "".
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
