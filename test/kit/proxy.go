package kit

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Proxy is the only route of Drover and of Machines to an API server. Tests can cut it.
type Proxy struct {
	// Server is the URL of the API server through it.
	Server string

	to       string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newProxy starts a proxy to a cluster, which runs until it is closed.
func (c *Cluster) newProxy() (*Proxy, error) {
	u, err := url.Parse(c.Server)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Server: "https://" + l.Addr().String(), to: u.Host, listener: l, conns: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

// Close the proxy permanently.
func (p *Proxy) Close() {
	p.Cut()
	_ = p.listener.Close()
}

// Cut all connections, and refuse new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Mend reopens the proxy after a Cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

func (p *Proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil || !p.open(in, out) {
			_ = in.Close()
			if err == nil {
				_ = out.Close()
			}
			continue
		}
		go p.pipe(in, out)
		go p.pipe(out, in)
	}
}

func (p *Proxy) open(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *Proxy) pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close()
		delete(p.conns, c)
	}
}

// NewProxiedFleet is a NewTargetFleet whose Machines and whose Drover reach the target cluster
// through a separate proxy.
func (p *Plane) NewProxiedFleet(t testing.TB) (Fleet, *Proxy) {
	t.Helper()
	f, proxy, err := p.MakeProxiedFleet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	return f, proxy
}

// MakeProxiedFleet is NewProxiedFleet for code that is not a test. The caller closes the proxy.
func (p *Plane) MakeProxiedFleet(ctx context.Context) (Fleet, *Proxy, error) {
	f, err := p.makeTargetFleet(ctx)
	if err != nil {
		return f, nil, err
	}
	proxy, err := f.Cluster.newProxy()
	if err != nil {
		return f, nil, err
	}
	cr, err := p.Target.credentials(ctx, shippedAccount)
	if err != nil {
		return f, proxy, err
	}
	kubeconfig := strings.ReplaceAll(string(cr.Kubeconfig), p.Target.Server, proxy.Server)
	return f, proxy, f.configure(ctx, []byte(kubeconfig), &clusterv1alpha1.APIServer{Endpoint: proxy.Server})
}
