package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxCalls is how many calls to one cluster may be in progress, watches excepted.
	maxCalls = 8

	// slotWait is how long each call waits until another one ends. Of the calls that waited so long, patientCalls wait until
	// one of those under way counts as slow: each refusal costs a whole reconcile, and workers are shared by all clusters.
	slotWait     = 200 * time.Millisecond
	patientCalls = 4

	// slowAfter is when a call counts as slow. Workers are shared by all clusters: slow calls may occupy slowCalls
	// of them per cluster, and slowCallsOfAll for all clusters together. Any further slow call is canceled.
	slowAfter      = 2 * time.Second
	slowCalls      = 2
	slowCallsOfAll = 8
)

var (
	errBusy = errors.New("it is slow, and too many calls to it are under way")
	errSlow = errors.New("it is slow: the call was given up after " + slowAfter.String() + ", since too many others wait")
)

// lanes keep a cluster that is slow from taking all workers of the process. A call is in progress until its
// response was read.
type lanes struct {
	next http.RoundTripper
	// slowOfAll has a place for each of the slowCallsOfAll.
	slowOfAll chan struct{}
	// connected is how many clusters there are. The calls of a single cluster do not block those of any other, and
	// may wait for their whole timeout.
	connected *atomic.Int32
	slowAfter time.Duration

	slots chan struct{}
	// patient has a place for each of the patientCalls.
	patient chan struct{}
	mu      sync.Mutex
	slow    int
}

func newLanes(next http.RoundTripper, s *shared) *lanes {
	return &lanes{next: next, slowOfAll: s.slow, connected: &s.connected, slowAfter: slowAfter, slots: make(chan struct{}, maxCalls), patient: make(chan struct{}, patientCalls)}
}

type exemptKey struct{}

// exempt marks calls that are not counted: those that determine the state of the cluster.
func exempt(ctx context.Context) context.Context { return context.WithValue(ctx, exemptKey{}, true) }

// RoundTrip sends a request.
func (l *lanes) RoundTrip(req *http.Request) (*http.Response, error) {
	if isWatch(req) || req.Context().Value(exemptKey{}) != nil {
		return l.next.RoundTrip(req)
	}
	if err := l.enter(req.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	c := &call{lanes: l, cancel: cancel}
	c.timer = time.AfterFunc(l.slowAfter, c.becomeSlow)
	res, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		c.end()
		return nil, l.causeOf(ctx, err)
	}
	res.Body = &calledBody{ReadCloser: res.Body, call: c, ctx: ctx}
	return res, nil
}

// WrappedRoundTripper lets the connections below be closed.
func (l *lanes) WrappedRoundTripper() http.RoundTripper { return l.next }

func (l *lanes) causeOf(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return errSlow
	}
	return err
}

func (l *lanes) isAlone() bool { return l.connected.Load() <= 1 }

// enter waits briefly for a slot. While calls are slow, it does not wait, and only one additional call may try
// whether the cluster is still slow.
func (l *lanes) enter(ctx context.Context) error {
	if l.isAlone() {
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	if slow > 0 && len(l.slots) > slow {
		return errBusy
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	if slow > 0 {
		return errBusy
	}
	if err := l.wait(ctx, slotWait); !errors.Is(err, errBusy) {
		return err
	}
	select {
	case l.patient <- struct{}{}:
		defer func() { <-l.patient }()
		return l.wait(ctx, l.slowAfter)
	default:
		return errBusy
	}
}

// wait for a slot.
func (l *lanes) wait(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-t.C:
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A call that is under way.
type call struct {
	*lanes
	cancel context.CancelCauseFunc
	timer  *time.Timer

	mu     sync.Mutex
	isSlow bool
	ended  bool
}

func (c *call) becomeSlow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.isAlone() {
		c.timer.Reset(c.slowAfter) // Another cluster may be connected later.
		return
	}
	c.lanes.mu.Lock()
	defer c.lanes.mu.Unlock()
	if c.slow < slowCalls {
		select {
		case c.slowOfAll <- struct{}{}:
			c.isSlow = true
			c.slow++
			return
		default:
		}
	}
	c.cancel(errSlow)
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	c.timer.Stop()
	c.cancel(nil)
	if c.isSlow {
		c.lanes.mu.Lock()
		c.slow--
		c.lanes.mu.Unlock()
		<-c.slowOfAll
	}
	<-c.slots
}

type calledBody struct {
	io.ReadCloser
	call *call
	ctx  context.Context //nolint:containedctx // Of the request: a body has no other.
}

// Read ends the call with the last byte.
func (b *calledBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = b.call.causeOf(b.ctx, err)
		}
		b.call.end()
	}
	return n, err
}

// Close ends the call.
func (b *calledBody) Close() error {
	b.call.end()
	return b.ReadCloser.Close()
}
