package target

import (
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// maxServerCertificates is how many certificates of API servers are remembered: behind a
// load balancer each server may have one of its own.
const maxServerCertificates = 16

// serverNames remembers the certificates that the API server of a cluster shows. They hold
// the names and addresses by which the clients of the cluster know the API server, so also
// the ClusterIP of the Service kubernetes, which takes a right to read.
type serverNames struct {
	mu           sync.Mutex
	certificates []*x509.Certificate // the last one first
}

// wrap has the signature of transport.WrapperFunc.
func (s *serverNames) wrap(next http.RoundTripper) http.RoundTripper {
	return &namesReader{serverNames: s, next: next}
}

type namesReader struct {
	*serverNames
	next http.RoundTripper
}

// RoundTrip calls, and remembers the certificate of the server.
func (r *namesReader) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.next.RoundTrip(req)
	if err == nil && res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		r.remember(res.TLS.PeerCertificates[0])
	}
	return res, err
}

// WrappedRoundTripper lets the connections below be closed.
func (r *namesReader) WrappedRoundTripper() http.RoundTripper { return r.next }

func (s *serverNames) remember(c *x509.Certificate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.certificates, c.Equal) {
		return
	}
	s.certificates = slices.Insert(s.certificates, 0, c)
	s.certificates = s.certificates[:min(len(s.certificates), maxServerCertificates)]
}

func (s *serverNames) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, c := range s.certificates {
		out = append(out, c.DNSNames...)
		for _, ip := range c.IPAddresses {
			out = append(out, ip.String())
		}
	}
	return out
}

// ServerNames returns the host names and IP addresses of the target cluster's API server:
// those of the kubeconfig and of spec.apiServer, and those of the certificates that it has
// shown since the connection was made.
func (c *Conn) ServerNames() []string {
	var out []string
	for _, text := range []string{c.Host, endpointOf(c)} {
		if host := hostOf(text); host != "" {
			out = append(out, host)
		}
	}
	return append(out, c.link.server.all()...)
}

func endpointOf(c *Conn) string {
	if c.Spec.APIServer == nil {
		return ""
	}
	return c.Spec.APIServer.Endpoint
}

// hostOf a URL, or of a host with or without a port, as a kubeconfig may have it.
func hostOf(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return host
	}
	return text
}

// Sharing returns the configurations through which the process reaches the same API server
// as this connection, its own included.
func (p *Pool) Sharing(c *Conn) []Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	refs := map[Ref]bool{c.Ref: true}
	for _, l := range p.links {
		if l.host != c.Host {
			continue
		}
		l.mu.Lock()
		for ref := range l.users {
			refs[ref] = true
		}
		l.mu.Unlock()
	}
	out := make([]Ref, 0, len(refs))
	for ref := range refs {
		out = append(out, ref)
	}
	return out
}
