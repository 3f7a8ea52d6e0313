package target

import (
	"context"
	"sync"
	"time"
)

// A Pool holds the connections. It is safe for concurrent use.
type Pool struct {
	readers Readers
	now     func() time.Time

	mu          sync.Mutex
	entries     map[Ref]*entry
	subscribers []func(Ref, string)
}

// An entry is locked while its connection is made, so that others need not wait.
type entry struct {
	mu      sync.Mutex
	conn    *Conn
	version string
	gone    bool // from the Pool: look there again
}

// NewPool returns a Pool without connections.
func NewPool(r Readers) *Pool {
	return &Pool{readers: r, now: time.Now, entries: map[Ref]*entry{}}
}

// Subscribe has fn called for each change of a Node that is more than a
// heartbeat, with the Node's providerID. It must not block.
func (p *Pool) Subscribe(fn func(ref Ref, providerID string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subscribers = append(p.subscribers, fn)
}

func (p *Pool) notify(ref Ref, providerID string) {
	p.mu.Lock()
	fns := p.subscribers
	p.mu.Unlock()
	for _, fn := range fns {
		fn(ref, providerID)
	}
}

// Get returns the connection that a configuration describes, made anew if the
// configuration or its Secret changed. Nothing is sent to the target cluster.
// Errors in what the user gave are of type *Error.
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
			e.replace(nil, "")
		}
		return nil, err
	}
	e.replace(conn, c.version)
	return conn, nil
}

func (p *Pool) make(ctx context.Context, ref Ref, c credentials, old *Conn) (*Conn, error) {
	cfg, sum, err := p.readers.load(ctx, ref, c)
	if err != nil {
		return nil, err
	}
	if old != nil && old.hash == sum {
		return old, nil // A label of the Secret changed, or another key.
	}
	return newConn(ref, c, cfg, sum, p.now, p.notify)
}

func (e *entry) replace(conn *Conn, version string) {
	if e.conn != nil && e.conn != conn {
		e.conn.close()
	}
	e.conn, e.version = conn, version
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

// Forget closes the connection of a configuration that is gone.
func (p *Pool) Forget(ref Ref) {
	p.mu.Lock()
	e, ok := p.entries[ref]
	delete(p.entries, ref)
	p.mu.Unlock()
	if ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.replace(nil, "")
		e.gone = true
	}
}

// StopIdle ends the watch of Nodes of a configuration that nobody asked for Nodes
// since the given time. It starts again with the next one who does.
func (p *Pool) StopIdle(ref Ref, since time.Time) {
	e := p.locked(ref)
	defer e.mu.Unlock()
	if e.conn != nil {
		e.conn.stopNodes(func(used time.Time) bool { return used.After(since) })
	}
}
