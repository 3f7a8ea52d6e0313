package kit

import (
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Proxy is the one way to an API server, for Drover and for Machines, that can be cut.
type Proxy struct {
	// Server is the URL of the API server through it.
	Server string

	to       string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// NewProxy to a cluster. It ends with the test.
func (c *Cluster) NewProxy(t testing.TB) *Proxy {
	t.Helper()
	u, err := url.Parse(c.Server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It ends with the test.
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Server: "https://" + l.Addr().String(), to: u.Host, listener: l, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		p.Cut()
		_ = l.Close()
	})
	go p.serve()
	return p
}

// Cut all connections, and let none through any more.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Mend what was cut.
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
		out, err := net.Dial("tcp", p.to) //nolint:noctx // It ends with the test.
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

// NewProxiedFleet is a NewTargetFleet whose Machines and whose Drover go to the target
// cluster through a proxy of their own.
func (p *Plane) NewProxiedFleet(t testing.TB) (Fleet, *Proxy) {
	t.Helper()
	f := p.NewTargetFleet(t)
	proxy := f.Cluster.NewProxy(t)
	kubeconfig := p.Target.Credentials(t).Kubeconfig
	f.SetKubeconfig(t, []byte(strings.ReplaceAll(string(kubeconfig), p.Target.Server, proxy.Server)))
	pc, err := f.Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pc.Spec.APIServer = &clusterv1alpha1.APIServer{Endpoint: proxy.Server}
	if err := f.Client.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	return f, proxy
}
