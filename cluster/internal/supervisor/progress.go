package supervisor

import (
	"context"
	"sync"
	"time"
)

// An Event is one line of the progress of a start.
type Event struct {
	Time    time.Time `json:"time"`
	Step    string    `json:"step"`
	Message string    `json:"message"`
	// Failed ends the start. Log is a file that may have the reason.
	Failed bool   `json:"failed,omitempty"`
	Log    string `json:"log,omitempty"`
	// Ready ends the start too.
	Ready bool `json:"ready,omitempty"`
}

// progress keeps the events of a start for clients that connect later.
type progress struct {
	mu      sync.Mutex
	events  []Event
	changed chan struct{}
}

func newProgress() *progress { return &progress{changed: make(chan struct{})} }

func (p *progress) add(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Time = time.Now()
	p.events = append(p.events, e)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *progress) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.events) > 0 && p.events[len(p.events)-1].Ready
}

// follow calls f for every event until the start has ended, with or without success.
func (p *progress) follow(ctx context.Context, f func(Event) error) error {
	for next := 0; ; {
		p.mu.Lock()
		fresh, changed := p.events[next:], p.changed
		p.mu.Unlock()
		for _, e := range fresh {
			if err := f(e); err != nil || e.Failed || e.Ready {
				return err
			}
		}
		next += len(fresh)
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
