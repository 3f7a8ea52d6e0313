package target

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

const (
	// callTimeout of each call to a target cluster, watches excepted.
	callTimeout = 10 * time.Second

	// Limits of calls to one cluster. A drain of many Nodes makes many at once.
	qps, burst = 200, 400

	userAgent = "provider-drover"
)

// A Conn is the connection to one target cluster.
type Conn struct {
	// Ref names the configuration that the connection is made from.
	Ref Ref
	// Spec of the configuration.
	Spec v1alpha1.ProviderConfigSpec
	// Kube is a client whose calls end after 10 s at the latest. Its errors
	// should go through Classify.
	Kube kubernetes.Interface
	// Host is the URL of the API server as this side uses it.
	Host string
	// CA that the API server's certificate is checked with, as PEM. It may be empty.
	CA []byte

	credentials string
	hash        string
	watching    kubernetes.Interface
	notify      func(Ref, string)
	now         func() time.Time

	mu    sync.Mutex
	nodes *nodes
}

func newConn(ref Ref, c credentials, cfg *rest.Config, sum string, now func() time.Time, notify func(Ref, string)) (*Conn, error) {
	cfg.QPS, cfg.Burst, cfg.UserAgent, cfg.RateLimiter = qps, burst, userAgent, nil
	invalid := func(err error) error {
		if c.spec.Credentials.Source != v1alpha1.CredentialsSecret {
			return fmt.Errorf("%s: %w", ref, err)
		}
		// Errors of the TLS library may quote what it could not parse.
		return &Error{Kind: KubeconfigInvalid, Ref: ref, Detail: c.text + ": its server, certificates or keys are not usable"}
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, invalid(err)
	}
	cfg.Wrap((&breaker{now: now}).wrap)

	client := func(timeout time.Duration) (kubernetes.Interface, error) {
		cfg := rest.CopyConfig(cfg)
		cfg.Timeout = timeout
		var h *http.Client
		h, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfigAndClient(cfg, h)
	}
	kube, err := client(callTimeout)
	if err != nil {
		return nil, invalid(err)
	}
	// A timeout would end watches too.
	watching, err := client(0)
	if err != nil {
		return nil, invalid(err)
	}
	return &Conn{
		Ref: ref, Spec: c.spec, Kube: kube, Host: cfg.Host, CA: cfg.CAData,
		credentials: c.text, hash: sum, watching: watching, notify: notify, now: now,
	}, nil
}

// Nodes returns the Nodes with the providerID, from a cache that the first call
// fills. When the cluster becomes unreachable later, they are as last seen. They
// must not be changed.
func (c *Conn) Nodes(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	n, err := c.watchNodes()
	if err != nil {
		return nil, err
	}
	found, err := n.find(ctx, providerID, c.now())
	return found, c.Classify(err)
}

func (c *Conn) watchNodes() (*nodes, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes != nil {
		return c.nodes, nil
	}
	n, err := startNodes(c.watching, func(providerID string) { c.notify(c.Ref, providerID) })
	if err != nil {
		return nil, err
	}
	c.nodes = n
	return n, nil
}

// Probe asks for the version of the API server, and for a Node, which needs the
// credentials to be right. Its errors are all of type *Error.
func (c *Conn) Probe(ctx context.Context) (version string, err error) {
	v, err := c.Kube.Discovery().ServerVersion()
	if err == nil {
		_, err = c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	}
	if err = c.Classify(err); err != nil && !Is(err) {
		err = &Error{Kind: Unreachable, Ref: c.Ref, Detail: fmt.Sprintf("%s does not answer as an API server does: %v", c.Host, err), Err: err}
	}
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}

func (c *Conn) stopNodes(unless func(usedLast time.Time) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nodes == nil || unless(c.nodes.idleSince()) {
		return
	}
	c.nodes.stop()
	c.nodes = nil
}

func (c *Conn) close() {
	c.stopNodes(func(time.Time) bool { return false })
}
