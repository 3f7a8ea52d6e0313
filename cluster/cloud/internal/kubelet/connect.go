package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// connections are the connections of one kubelet. They are not client-go's shared ones, so that
// they can be closed when the VM ends.
type connections struct {
	transport *http.Transport
	dialer    *connrotation.Dialer
}

func (c *connections) close() {
	c.dialer.CloseAll()
	c.transport.CloseIdleConnections()
}

// connect creates the client with the node's identity. It presents the certificate that is current
// when it dials.
func (k *kubelet) connect() (kubernetes.Interface, *connections, error) {
	tc := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: k.Bootstrap.ServerName, InsecureSkipVerify: k.Bootstrap.Insecure} //nolint:gosec // As the kubeconfig asks for.
	if !k.Bootstrap.Insecure {
		tc.RootCAs = x509.NewCertPool()
		tc.RootCAs.AppendCertsFromPEM(k.Bootstrap.CAData)
	}
	tc.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair := k.saved().Client
		cert, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		return &cert, err
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	transport := utilnet.SetTransportDefaults(&http.Transport{
		TLSClientConfig:     tc,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
	})
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:          k.Bootstrap.Host,
		Transport:     transport,
		UserAgent:     fmt.Sprintf("kubelet/%s (linux/%s)", k.Version, runtime.GOARCH),
		QPS:           50, // As a kubelet.
		Burst:         100,
		ContentConfig: rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json"},
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := tls.X509KeyPair(k.saved().Client.Certificate, k.saved().Client.Key); err != nil {
		return nil, nil, errors.Join(errors.New("client certificate is damaged"), err)
	}
	return client, &connections{transport: transport, dialer: dialer}, nil
}
