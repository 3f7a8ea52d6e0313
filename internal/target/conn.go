package target

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Conn is the connection of one configuration to its target cluster.
type Conn struct {
	// Ref names the configuration that the connection is made from.
	Ref Ref
	// Spec and UID of the configuration.
	Spec v1alpha1.ProviderConfigSpec
	UID  types.UID
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
	rights      *rights
	client      *clientRights
	allows      *allowances
}

func newConn(ref Ref, c credentials, sum string, l *link) *Conn {
	return &Conn{
		Ref: ref, Spec: c.spec, UID: c.uid, Kube: l.kube, Host: l.host, CA: l.ca,
		credentials: c.text, hash: sum, link: l, allows: c.allows, rights: &rights{needed: needed(c.spec.Certificates)}, client: &clientRights{},
	}
}

// Nodes returns the Nodes that registered with the join token of a Machine's UID, the Node of the name and that
// of the UID, from a cache that the first call fills. If the cluster becomes unreachable later, they are as
// observed last. They must not be changed.
func (c *Conn) Nodes(ctx context.Context, token, name, uid string) ([]*corev1.Node, error) {
	n, err := c.link.watch(c.Ref, signersOf(c.Spec.Certificates))
	if err != nil {
		return nil, err
	}
	found, err := n.find(ctx, token, name, uid)
	return found, c.classifyAll(err)
}

// NodesOfVM returns the Nodes that have a providerID, from the cache of Nodes: there may be
// several, since a kubelet chooses the providerID of its Node. They must not be changed.
func (c *Conn) NodesOfVM(ctx context.Context, providerID string) ([]*corev1.Node, error) {
	n, err := c.link.watch(c.Ref, signersOf(c.Spec.Certificates))
	if err != nil {
		return nil, err
	}
	found, err := n.ofVM(ctx, providerID)
	return found, c.classifyAll(err)
}

// Probe requests the version of the API server, and checks that it accepts the credentials. Its errors are all
// of type *Error.
func (c *Conn) Probe(ctx context.Context) (version string, err error) {
	ctx, cancel := context.WithTimeout(exempt(ctx), probeTimeout)
	defer cancel()
	version, err = c.link.probe(ctx)
	return version, c.classifyAll(err)
}

// Request returns a CertificateSigningRequest that Drover is to decide on, from a cache
// that the first call of Nodes fills; nil if there is none of the name. It must not be
// changed.
func (c *Conn) Request(name string) *certificatesv1.CertificateSigningRequest {
	for _, r := range c.requests() {
		if obj, ok, err := r.informer.GetIndexer().GetByKey(name); ok && err == nil {
			if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
				return csr
			}
		}
	}
	return nil
}

// RequestsOf returns the names of the requests of a user that are not decided on.
func (c *Conn) RequestsOf(user string) []string {
	var out []string
	for _, csr := range c.AllRequestsOf(user) {
		if len(csr.Status.Conditions) == 0 {
			out = append(out, csr.GetName())
		}
	}
	return out
}

// AllRequestsOf returns the requests of a user, including those that are decided on, as far as Drover watches
// their signers. They must not be changed.
func (c *Conn) AllRequestsOf(user string) []*certificatesv1.CertificateSigningRequest {
	var out []*certificatesv1.CertificateSigningRequest
	for _, r := range c.requests() {
		objs, err := r.informer.GetIndexer().ByIndex(byUser, user)
		if err != nil {
			continue
		}
		for _, obj := range objs {
			if csr, ok := obj.(*certificatesv1.CertificateSigningRequest); ok {
				out = append(out, csr)
			}
		}
	}
	return out
}

func (c *Conn) requests() []*requests {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	var out []*requests
	for _, signer := range signersOf(c.Spec.Certificates) {
		if r := c.link.requests[signer]; r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Lacking returns a text with the rights that Drover needs and the credentials do not have, empty if there are
// none.
func (c *Conn) Lacking(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(exempt(ctx), probeTimeout)
	defer cancel()
	missing, err := c.rights.lacking(ctx, c.Kube, c.link.now())
	if err != nil || len(missing) == 0 {
		return "", c.classifyAll(err)
	}
	texts := make([]string, 0, len(missing))
	for _, a := range missing {
		texts = append(texts, textOf(a))
	}
	return fmt.Sprintf("%s: the credentials of %s lack rights in the target cluster: %s", c.Ref, c.credentials, strings.Join(texts, ", ")), nil
}
