package target

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/rest"

	"github.com/drover-dev/drover/apis/cluster/v1alpha1"
)

// A Pool holds the connections. It is safe for concurrent use.
type Pool struct {
	readers Readers
	now     func() time.Time
	shared  *shared

	mu            sync.Mutex
	entries       map[Ref]*entry
	links         map[string]*link          // by the hash of their credentials
	nodes         []func(Ref, NodeIdentity) // subscribers to Nodes
	requests      []func(Ref, string)       // subscribers to requests
	interruptions []func(Ref, error)        // subscribers to interruptions
}

// An entry is locked while its connection is created, so that callers for another one need not wait.
type entry struct {
	mu      sync.Mutex
	conn    *Conn
	version string
	gone    bool // from the Pool: look it up again
}

// NewPool returns a Pool without connections.
func NewPool(r Readers) *Pool {
	return &Pool{readers: r, now: time.Now, shared: newShared(), entries: map[Ref]*entry{}, links: map[string]*link{}}
}

// Subscribe has fn called for each change of a Node except for heartbeats. It must not block.
func (p *Pool) Subscribe(fn func(Ref, NodeIdentity)) { subscribe(p, &p.nodes, fn) }

// SubscribeRequests has fn called with the name of each CertificateSigningRequest that Drover is to decide on,
// both existing ones and those that are new or changed. It must not block.
func (p *Pool) SubscribeRequests(fn func(ref Ref, name string)) {
	subscribe(p, &p.requests, fn)
	p.mu.Lock()
	links := slices.Collect(maps.Values(p.links))
	p.mu.Unlock()
	for _, l := range links {
		l.replay(fn)
	}
}

// SubscribeInterruptions has fn called with the error of a call to a cluster that could not connect after one that could. It must
// not block.
func (p *Pool) SubscribeInterruptions(fn func(Ref, error)) { subscribe(p, &p.interruptions, fn) }

func subscribe[T any](p *Pool, to *[]func(Ref, T), fn func(Ref, T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = append(*to, fn)
}

func notify[T any](p *Pool, list *[]func(Ref, T)) func(Ref, T) {
	return func(ref Ref, what T) {
		p.mu.Lock()
		fns := *list
		p.mu.Unlock()
		for _, fn := range fns {
			fn(ref, what)
		}
	}
}

// Get returns the connection that a configuration describes. It is created again if the configuration or its
// Secret changed. Nothing is sent to the target cluster. Errors in the input of the user are of type *Error.
func (p *Pool) Get(ctx context.Context, ref Ref) (*Conn, error) {
	e := p.locked(ref)
	defer e.mu.Unlock()

	c, err := p.readers.look(ctx, ref)
	if err == nil && e.conn != nil && e.version == c.version {
		return e.conn, nil
	}
	var conn *Conn
	if err == nil {
		conn, err = p.make(ctx, ref, c, e.conn)
	}
	if err != nil {
		if Is(err) {
			p.replace(e, nil, "")
		}
		return nil, err
	}
	p.replace(e, conn, c.version)
	return conn, nil
}

func (p *Pool) make(ctx context.Context, ref Ref, c credentials, old *Conn) (*Conn, error) {
	cfg, sum, err := p.readers.load(ctx, ref, c)
	if err != nil {
		return nil, err
	}
	if ref.isOfTenant() {
		sum += "/" + kindProviderConfig // A tenant's configuration has limits.
	}
	l, err := p.attach(ref, sum, cfg)
	if err != nil {
		if c.spec.Credentials.Source != v1alpha1.CredentialsSecret {
			return nil, fmt.Errorf("%s: %w", ref, err)
		}
		// Errors of the TLS library may quote the text that it could not parse.
		return nil, &Error{Kind: KubeconfigInvalid, Ref: ref, Detail: c.text + ": its server, certificates or keys are not usable"}
	}
	if old != nil && old.link != l && old.link.watches(ref) {
		// Otherwise Nodes would not be read before a Node changes, and only this watch reports such a change.
		if _, err := l.watch(ref, signersOf(c.spec.Certificates)); err != nil {
			return nil, err
		}
	}
	if old != nil && old.link == l && old.UID == c.uid && equality.Semantic.DeepEqual(old.Spec, c.spec) && reflect.DeepEqual(old.allows, c.allows) {
		return old, nil // A label of the Secret changed, or another key.
	}
	return newConn(ref, c, sum, l), nil
}

// attach attaches a configuration to the link with its credentials.
func (p *Pool) attach(ref Ref, sum string, cfg *rest.Config) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.links[sum]
	if !ok {
		var err error
		if l, err = newLink(cfg, p.readers.limits(ref), p.shared, p.now, observer{node: notify(p, &p.nodes), request: notify(p, &p.requests), interruption: notify(p, &p.interruptions)}); err != nil {
			return nil, err
		}
		p.links[sum] = l
	}
	l.attach(ref)
	return l, nil
}

func (p *Pool) replace(e *entry, conn *Conn, version string) {
	old := e.conn
	e.conn, e.version = conn, version
	if old == nil || conn != nil && conn.link == old.link {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old.link.detach(old.Ref) {
		delete(p.links, old.hash)
	}
}

func (p *Pool) locked(ref Ref) *entry {
	for {
		p.mu.Lock()
		e, ok := p.entries[ref]
		if !ok {
			e = &entry{}
			p.entries[ref] = e
		}
		p.mu.Unlock()
		e.mu.Lock()
		if !e.gone {
			return e
		}
		e.mu.Unlock()
	}
}

// Forget closes the connection of a deleted configuration.
func (p *Pool) Forget(ref Ref) {
	p.mu.Lock()
	e, ok := p.entries[ref]
	delete(p.entries, ref)
	p.mu.Unlock()
	if ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		p.replace(e, nil, "")
		e.gone = true
	}
}

// StopIdle ends the watch of Nodes of a configuration whose Nodes were not read since the given time. The next
// read starts it again.
func (p *Pool) StopIdle(ref Ref, since time.Time) {
	e := p.locked(ref)
	defer e.mu.Unlock()
	if e.conn != nil {
		e.conn.link.idle(ref, since)
	}
}
