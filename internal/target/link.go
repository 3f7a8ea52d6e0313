package target

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// callTimeout bounds each call to a target cluster, watches excepted.
	callTimeout = 10 * time.Second

	// probeAgain is how long all callers share the result of a probe.
	probeAgain = 3 * time.Second

	// probeTimeout bounds all calls of a probe, and of all checks of rights. The workers of configurations are
	// shared too.
	probeTimeout = 15 * time.Second

	// busyPause is when a cluster that refuses a probe for its load is probed again.
	busyPause = time.Second

	// Limits of calls to one cluster. A drain of many Nodes makes many at once.
	qps, burst = 200, 400

	userAgent = "provider-drover"
)

// A link is the connection to one cluster with one set of credentials: one transport and one watch of Nodes,
// however many configurations have the same credentials.
type link struct {
	kube      kubernetes.Interface
	watching  kubernetes.Interface // without a timeout, which would end watches
	transport http.RoundTripper
	shared    *shared
	host      string
	ca        []byte

	now func() time.Time
	observer
	serverVersion serverVersion
	// server has the names in the API server's certificate.
	server *serverNames

	mu sync.Mutex
	// users has the time of the last read of Nodes for each attached configuration, zero for never.
	users    map[Ref]time.Time
	nodes    *nodes
	requests map[string]*requests // by their signer

	probing sync.Mutex
	probed  time.Time
	version string
	err     error
}

// An observer is notified of changes in a cluster, for a configuration.
type observer struct {
	node    func(Ref, NodeIdentity)
	request func(ref Ref, name string)
	// interruption is called with the error of a call that could not connect.
	interruption func(Ref, error)
}

func newLink(cfg *rest.Config, limits *Networks, s *shared, now func() time.Time, o observer) (*link, error) {
	server := &serverNames{}
	l := &link{shared: s, host: cfg.Host, ca: cfg.CAData, now: now, observer: o, server: server, users: map[Ref]time.Time{}, requests: map[string]*requests{}}
	rt, err := newTransport(cfg, limits, s, server, now, l.interrupted)
	if err != nil {
		return nil, err
	}
	l.transport = rt
	if l.kube, err = newClient(cfg, &http.Client{Transport: rt, Timeout: callTimeout, CheckRedirect: noRedirects}); err != nil {
		return nil, err
	}
	if l.watching, err = newClient(cfg, &http.Client{Transport: rt, CheckRedirect: noRedirects}); err != nil {
		return nil, err
	}
	s.connected.Add(1)
	return l, nil
}

func (l *link) attach(ref Ref) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.users[ref]; !ok {
		l.users[ref] = time.Time{}
	}
}

// detach detaches a configuration, and closes the link if it was the last.
func (l *link) detach(ref Ref) (closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.users, ref)
	l.stopUnused()
	if len(l.users) > 0 {
		return false
	}
	utilnet.CloseIdleConnectionsFor(l.transport)
	l.shared.connected.Add(-1)
	return true
}

// watch watches Nodes for a configuration, and the requests of the signers. Each watch starts with the first
// user, and all end with the last.
func (l *link) watch(ref Ref, signers []string) (*nodes, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes != nil {
		if _, again := l.nodes.isRefused(); again {
			l.nodes.stop()
			l.nodes = nil
		}
	}
	if l.nodes == nil {
		n, err := startNodes(l.watching, func(n NodeIdentity) { publish(l, l.node, n) })
		if err != nil {
			return nil, err
		}
		l.nodes = n
	}
	l.users[ref] = l.now()
	for _, signer := range signers {
		if l.requests[signer] != nil {
			continue
		}
		r, err := startRequests(l.watching, signer, func(name string) { publish(l, l.request, name) })
		if err != nil {
			return nil, err
		}
		l.requests[signer] = r
	}
	return l.nodes, nil
}

// watches reports whether a configuration needs the watch of Nodes.
func (l *link) watches(ref Ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes != nil && !l.users[ref].IsZero()
}

// idle ends the watches for a configuration that did not read Nodes since the given time.
func (l *link) idle(ref Ref, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if used, ok := l.users[ref]; ok && !used.After(since) {
		l.users[ref] = time.Time{}
		l.stopUnused()
	}
}

func (l *link) stopUnused() {
	if l.nodes == nil || len(l.using()) > 0 {
		return
	}
	l.nodes.stop()
	l.nodes = nil
	for signer, r := range l.requests {
		r.stop()
		delete(l.requests, signer)
	}
}

// It notifies all configurations that use the cluster.
func publish[T any](l *link, observe func(Ref, T), what T) {
	l.mu.Lock()
	refs := l.using()
	l.mu.Unlock()
	for _, ref := range refs {
		observe(ref, what)
	}
}

// interrupted notifies all configurations with these credentials that a call could not connect.
func (l *link) interrupted(err error) {
	l.mu.Lock()
	refs := slices.Collect(maps.Keys(l.users))
	l.mu.Unlock()
	for _, ref := range refs {
		l.interruption(ref, err)
	}
}

// replay notifies of all known requests.
func (l *link) replay(observe func(Ref, string)) {
	l.mu.Lock()
	refs := l.using()
	var names []string
	for _, r := range l.requests {
		names = append(names, r.informer.GetIndexer().ListKeys()...)
	}
	l.mu.Unlock()
	for _, ref := range refs {
		for _, name := range names {
			observe(ref, name)
		}
	}
}

// using returns the configurations that use the cluster.
func (l *link) using() []Ref {
	var refs []Ref
	for ref, used := range l.users {
		if !used.IsZero() {
			refs = append(refs, ref)
		}
	}
	return refs
}

// probe requests the version of the API server, and a Node, which needs valid credentials. Concurrent callers
// share a result.
func (l *link) probe(ctx context.Context) (version string, err error) {
	l.probing.Lock()
	defer l.probing.Unlock()
	if !l.probed.IsZero() && l.now().Sub(l.probed) < probeAgain {
		return l.version, l.err
	}
	v, err := l.ask(ctx)
	if kerrors.IsTooManyRequests(err) {
		// It responds, and is busy: that is no outage.
		select {
		case <-ctx.Done():
		case <-time.After(busyPause):
		}
		v, err = l.ask(ctx)
	}
	if ctx.Err() != nil {
		return "", err // Of the caller, not of the cluster.
	}
	l.version, l.err, l.probed = "", err, l.now()
	if err == nil {
		l.version = v.GitVersion
	}
	return l.version, l.err
}

func (l *link) ask(ctx context.Context) (*version.Info, error) {
	v, err := readVersion(ctx, l.kube)
	if err != nil {
		return nil, err
	}
	l.serverVersion.set(v.GitVersion, l.now())
	_, err = l.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	return v, err
}
