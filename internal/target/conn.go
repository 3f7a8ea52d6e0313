package target

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Conn is how one configuration reaches its target cluster.
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
	link        *link
}

func newConn(ref Ref, c credentials, sum string, l *link) *Conn {
	return &Conn{Ref: ref, Spec: c.spec, Kube: l.kube, Host: l.host, CA: l.ca, credentials: c.text, hash: sum, link: l}
}

// Nodes returns the Nodes with the providerID, from a cache that the first call
// fills. When the cluster becomes unreachable later, they are as last seen. They
// must not be changed.
func (c *Conn) Nodes(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	n, err := c.link.watchNodes(c.Ref)
	if err != nil {
		return nil, err
	}
	found, err := n.find(ctx, providerID)
	return found, c.Classify(err)
}

// Probe asks for the version of the API server, and whether it takes the
// credentials. Its errors are all of type *Error.
func (c *Conn) Probe(ctx context.Context) (version string, err error) {
	version, err = c.link.probe(ctx)
	if err = c.Classify(err); err != nil && !Is(err) {
		err = &Error{Kind: Unreachable, Ref: c.Ref, Detail: fmt.Sprintf("%s does not answer as an API server does: %v", c.Host, err), Err: err}
	}
	return version, err
}

// Lacking says which of the rights that Drover needs the credentials do not give, in
// words, empty if none.
func (c *Conn) Lacking(ctx context.Context) (string, error) {
	missing, err := c.link.rights.lacking(ctx, c.Kube, c.link.now())
	if err != nil || len(missing) == 0 {
		return "", c.Classify(err)
	}
	texts := make([]string, 0, len(missing))
	for _, a := range missing {
		texts = append(texts, textOf(a))
	}
	return fmt.Sprintf("%s: the credentials of %s lack rights in the target cluster: %s", c.Ref, c.credentials, strings.Join(texts, ", ")), nil
}
