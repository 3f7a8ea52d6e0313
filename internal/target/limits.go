package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// bounds of a JSON text that a target cluster sends. A small text can be large in memory: an
// empty object in a list costs two bytes there and hundreds here.
type bounds struct {
	bytes   int64
	values  int64 // members of objects and elements of lists
	objects int64 // objects that are elements of lists
}

var (
	// listBounds are of a list, with all its pages.
	listBounds = bounds{bytes: 64 << 20, values: 3_000_000, objects: 500_000}

	// objectBounds are of any other response, and of one event of a watch. A watch as a whole is unbounded, but
	// its pace is limited.
	objectBounds = bounds{bytes: 4 << 20, values: 200_000, objects: 50_000}
)

const (
	maxDepth = 128

	// eventPace and eventBurst are how many events per second a watch delivers, so that a cluster that sends
	// without end does not take the CPU from the remaining ones.
	eventPace, eventBurst = 500, 10_000

	// bytePace and byteBurst likewise.
	bytePace, byteBurst = 4 << 20, 32 << 20

	// watchLife is when a watch is restarted. An API server ends one after about ten minutes.
	watchLife = 20 * time.Minute

	// listTimeout bounds calls that have no deadline: the lists of informers.
	listTimeout = time.Minute

	// largeAnswer is the size from which a response takes one of the largeAnswers, which all clusters share: many
	// of these at once would not fit into memory.
	largeAnswer  = 4 << 20
	largeAnswers = 1

	// fewObjects is up to how many objects a list has objectBounds.
	fewObjects = 10

	// pagesKept is for how many lists the received amount is remembered.
	pagesKept = 64
)

var (
	errTooLarge = errors.New("its answer is too large")
	errNotJSON  = errors.New("it does not answer as an API server does")
)

// A meter checks a JSON text against its bounds while it is read. It also accepts text that is no JSON.
type meter struct {
	bounds
	// each resets the counters after each value of a stream.
	each bool

	bytesSeen, valuesSeen, objectsSeen int64
	inText, escaped                    bool
	nesting                            []byte
	// ended is how many values of the stream are complete.
	ended int
}

func (m *meter) add(b []byte) error {
	for _, c := range b {
		m.bytesSeen++
		switch {
		case m.escaped:
			m.escaped = false
		case m.inText:
			m.escaped, m.inText = c == '\\', c != '"'
		case c == '"':
			m.inText = true
		case c == ',':
			m.valuesSeen++
		case c == '{' || c == '[':
			m.open(c)
		case (c == '}' || c == ']') && len(m.nesting) > 0:
			m.nesting = m.nesting[:len(m.nesting)-1]
			if len(m.nesting) == 0 {
				m.end()
			}
		}
		if m.bytesSeen > m.bytes || m.valuesSeen > m.values || m.objectsSeen > m.objects || len(m.nesting) > maxDepth {
			return errTooLarge
		}
	}
	return nil
}

func (m *meter) open(c byte) {
	m.valuesSeen++
	if n := len(m.nesting); c == '{' && n > 0 && m.nesting[n-1] == '[' {
		m.objectsSeen++
	}
	m.nesting = append(m.nesting, c)
}

func (m *meter) end() {
	m.ended++
	if m.each {
		m.bytesSeen, m.valuesSeen, m.objectsSeen = 0, 0, 0
	}
}

// limited bounds the duration of each request and the size of its response.
type limited struct {
	next http.RoundTripper
	// large has a place for each of the largeAnswers.
	large chan struct{}
	// failed is called for a response that exceeds its bounds.
	failed func(error)

	mu    sync.Mutex
	pages map[string]bounds // the received part of a list, by its path and its selectors
}

// RoundTrip sends a request.
func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	life := watchLife
	if !isWatch(req) {
		life = listTimeout
	}
	ctx, cancel := context.WithTimeout(req.Context(), life)
	res, err := l.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	if res.StatusCode < http.StatusMultipleChoices && !isJSON(res) {
		_ = res.Body.Close()
		cancel()
		return nil, errNotJSON
	}
	b := &boundBody{ReadCloser: res.Body, ctx: ctx, cancel: cancel, limited: l, meter: meter{bounds: objectBounds}}
	if isWatch(req) {
		b.each = true
		b.events, b.bytes = rate.NewLimiter(eventPace, eventBurst), rate.NewLimiter(bytePace, byteBurst)
	} else if isList(req) {
		b.bounds = listBounds
		b.list, b.before = l.pageOf(req)
		b.bytesSeen, b.valuesSeen, b.objectsSeen = b.before.bytes, b.before.values, b.before.objects
	}
	res.Body = b
	return res, nil
}

// WrappedRoundTripper lets the connections below be closed.
func (l *limited) WrappedRoundTripper() http.RoundTripper { return l.next }

// pageOf returns the list that a request continues, and the received part of it. client-go collects all pages
// before it handles any.
func (l *limited) pageOf(req *http.Request) (list string, before bounds) {
	q := req.URL.Query()
	list = req.URL.Path + "?" + q.Get("labelSelector") + "&" + q.Get("fieldSelector")
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.Get("continue") == "" {
		delete(l.pages, list)
		return list, bounds{}
	}
	return list, l.pages[list]
}

func (l *limited) keepPage(list string, seen bounds) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.pages[list]; !known && len(l.pages) >= pagesKept {
		clear(l.pages)
	}
	l.pages[list] = seen
}

func isWatch(req *http.Request) bool {
	switch req.URL.Query().Get("watch") {
	case "", "0", "false":
		return false
	}
	return true
}

// isList reports whether a request is for a list that may be long.
func isList(req *http.Request) bool {
	if limit, err := strconv.Atoi(req.URL.Query().Get("limit")); req.Method != http.MethodGet || err == nil && limit <= fewObjects && limit > 0 {
		return false
	}
	segments := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	for i, s := range segments {
		// A server may have its API below a path.
		if n := len(segments) - i; s == "api" && n > 2 {
			segments = segments[i+2:]
			break
		} else if s == "apis" && n > 3 {
			segments = segments[i+3:]
			break
		}
	}
	return len(segments) == 1 || len(segments) == 3 && segments[0] == "namespaces"
}

func isJSON(res *http.Response) bool {
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && media == "application/json"
}

// A boundBody is the body of a response.
type boundBody struct {
	io.ReadCloser
	*limited
	meter

	ctx    context.Context //nolint:containedctx // Of the request: a body has no other.
	cancel context.CancelFunc
	// list that the body is a page of, empty if it is none.
	list   string
	before bounds
	// isLarge means that the body has a place of limited.large.
	isLarge bool
	// events and bytes are the pace of a watch, nil for other responses.
	events, bytes *rate.Limiter
	closed        sync.Once
}

// Read reads within the bounds.
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if merr := b.admit(p[:n]); merr != nil {
			_ = b.Close()
			return 0, merr
		}
	}
	if errors.Is(err, io.EOF) && b.list != "" {
		b.keepPage(b.list, bounds{bytes: b.bytesSeen, values: b.valuesSeen, objects: b.objectsSeen})
		b.list = ""
	}
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *boundBody) admit(p []byte) error {
	before := b.ended
	if err := b.add(p); err != nil {
		b.failed(err)
		return err
	}
	if b.events != nil {
		if err := wait(b.ctx, b.events, b.ended-before); err != nil {
			return err
		}
		return wait(b.ctx, b.bytes, len(p))
	}
	if b.bytesSeen-b.before.bytes > largeAnswer && !b.isLarge {
		select {
		case b.large <- struct{}{}:
			b.isLarge = true
		case <-b.ctx.Done():
			return fmt.Errorf("too many large answers at once: %w", context.Cause(b.ctx))
		}
	}
	return nil
}

func wait(ctx context.Context, l *rate.Limiter, n int) error {
	for n > 0 {
		some := min(n, l.Burst())
		if err := l.WaitN(ctx, some); err != nil {
			return err
		}
		n -= some
	}
	return nil
}

// Close the body.
func (b *boundBody) Close() error {
	err := b.ReadCloser.Close()
	b.closed.Do(func() {
		b.cancel()
		if b.isLarge {
			<-b.large
		}
	})
	return err
}
