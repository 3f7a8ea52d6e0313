package fakes

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// A Face is the part of a fake that all HTTP APIs share: it counts calls, and lets faults happen.
type Face struct {
	Faults
	Count
}

// Serve answers a call. The refusal of a fault is written by refuse. Without one, the call is carried out by do, which
// returns a function that writes the response. Serve panics with [http.ErrAbortHandler] to cut the connection.
func (f *Face) Serve(name, project string, body []byte, refuse func(*Fault), do func() (respond func())) {
	f.Note(name)
	fault := f.Of(name, project, body)
	switch {
	case fault == nil:
		do()()
	case fault.Refused:
		panic(http.ErrAbortHandler)
	case !fault.Lost:
		refuse(fault)
	default:
		do()
		fault.Done()
		panic(http.ErrAbortHandler)
	}
}

// BodyOf reads the body of a request. If the client is gone, it cuts the connection.
func BodyOf(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// A Limit refuses calls: those beyond a rate, and all of them for some time.
type Limit struct {
	mu     sync.Mutex
	until  time.Time
	bucket Bucket
}

// Throttle refuses all calls for some time.
func (l *Limit) Throttle(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(d)
}

// Admits takes a call from a [Bucket] with the rate, and reports whether there was one. A rate of 0 is no limit.
func (l *Limit) Admits(now time.Time, rate int, refill time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until) || rate == 0 {
		return !now.Before(l.until)
	}
	ok, _, _ := l.bucket.Take(now, rate, refill)
	return ok
}
