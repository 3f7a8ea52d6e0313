package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// idleTimeout is how long an unused process stays. A provider that is called each minute stays.
	idleTimeout = 10 * time.Minute
	reapEvery   = time.Minute
	closeEvery  = 100 * time.Millisecond
	// retryAfter is how long the error of a start is returned to all callers of the same process: many VMs must
	// not start a program that cannot be configured again and again.
	retryAfter = 5 * time.Second
	// configureTimeout bounds the schema, the check of the configuration and a login.
	configureTimeout = 2 * time.Minute
)

// Settings of a process: the provider and its configuration.
type Settings struct {
	Source        Source
	Configuration map[string]any
}

// A Pool has one process for each Settings.
type Pool struct {
	mirror Mirror
	now    func() time.Time
	// launch starts and configures a process.
	launch func(context.Context, Settings) (*process, error)

	mu      sync.Mutex
	closed  bool
	entries map[[sha256.Size]byte]*entry
}

// An entry is a running or starting process. The mutex of the pool guards it.
type entry struct {
	// ready is closed when the start has ended, with process or err.
	ready   chan struct{}
	process *process
	err     error
	users   int
	// used is when it was used last, or when a failed start began.
	used time.Time
}

// NewPool returns a pool of the providers of a mirror.
func NewPool(m Mirror, now func() time.Time) *Pool {
	p := &Pool{mirror: m, now: now, entries: map[[sha256.Size]byte]*entry{}}
	p.launch = p.start
	return p
}

// Get returns a configured provider. Release must be called when it is no longer used.
func (p *Pool) Get(ctx context.Context, s Settings) (provider *Provider, release func(), err error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, nil, err
	}
	key := sha256.Sum256(b)
	e, isNew, err := p.entry(key)
	if err != nil {
		return nil, nil, err
	}
	release = sync.OnceFunc(func() { p.release(e) })
	if isNew {
		// All callers share the start, so it continues even if the first of them does not.
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), configureTimeout)
			defer cancel()
			proc, err := p.launch(ctx, s)
			p.mu.Lock()
			defer p.mu.Unlock()
			e.process, e.err = proc, err
			close(e.ready)
		}()
	}
	select {
	case <-e.ready:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if e.err != nil {
		release()
		return nil, nil, e.err
	}
	return e.process.provider, release, nil
}

// entry returns the entry of a key, with one more user. A process that ended, or whose start failed some time
// ago, is replaced.
func (p *Pool) entry(key [sha256.Size]byte) (e *entry, isNew bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errors.New("the provider is being stopped")
	}
	e = p.entries[key]
	if e == nil || e.isOver(p.now()) {
		e, isNew = &entry{ready: make(chan struct{})}, true
		p.entries[key] = e
	}
	e.users++
	if isNew || e.err == nil {
		e.used = p.now()
	}
	return e, isNew, nil
}

// isOver reports whether an entry is no longer usable.
func (e *entry) isOver(now time.Time) bool {
	select {
	case <-e.ready:
	default:
		return false
	}
	if e.err != nil {
		return now.Sub(e.used) >= retryAfter
	}
	return e.process.client != nil && e.process.client.Exited()
}

func (p *Pool) release(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	if e.err == nil {
		e.used = p.now()
	}
}

func (p *Pool) start(ctx context.Context, s Settings) (*process, error) {
	program, digest, err := p.mirror.find(s.Source)
	if err != nil {
		return nil, err
	}
	proc, err := start(program, digest)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s %s: %w", s.Source.Address, s.Source.Version, err)
	}
	if err := proc.provider.loadSchema(ctx); err != nil {
		proc.stop()
		return nil, fmt.Errorf("cannot read the schema of %s: %w", s.Source.Address, err)
	}
	if err := proc.provider.configure(ctx, s.Configuration); err != nil {
		proc.stop()
		return nil, fmt.Errorf("cannot configure %s: %w", s.Source.Address, ofConfiguration(err))
	}
	return proc, nil
}

func (p *process) stop() {
	if p.client != nil {
		p.client.Kill()
	}
}

// Start ends idle processes until ctx is done, and then ends each process when it is no longer used: a running
// creation is not interrupted. It is a Runnable of controller-runtime, whose grace period bounds it.
func (p *Pool) Start(ctx context.Context) error {
	t := time.NewTicker(reapEvery)
	defer t.Stop()
	for ctx.Err() == nil {
		select {
		case <-t.C:
			p.reap(idleTimeout)
		case <-ctx.Done():
		}
	}
	t.Reset(closeEvery)
	for p.Close(); p.Processes() > 0; p.Close() {
		<-t.C
	}
	return nil
}

// Close ends all unused processes, and refuses new ones.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.reap(0)
}

// reap ends processes that were not used for the given time.
func (p *Pool) reap(idle time.Duration) {
	p.mu.Lock()
	var over []*entry
	for key, e := range p.entries {
		select {
		case <-e.ready:
		default:
			continue
		}
		if e.users == 0 && p.now().Sub(e.used) >= idle || e.isOver(p.now()) && e.users == 0 {
			delete(p.entries, key)
			over = append(over, e)
		}
	}
	p.mu.Unlock()
	for _, e := range over {
		if e.process != nil {
			e.process.stop()
		}
	}
}

// Processes is the number of processes.
func (p *Pool) Processes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.entries)
}
