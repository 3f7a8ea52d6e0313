// Package fakes has the parts that the fakes of cloud APIs share: faults, a counter of calls, and
// a rate limit.
package fakes

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Fault makes calls fail.
type Fault struct {
	// Call is the method and the path with {id} for IDs, like "POST /servers". Empty matches all
	// calls.
	Call string
	// Match selects calls by the project and the body. Optional.
	Match func(project string, body []byte) bool
	// Times is the number of calls that fail. Default 0: all.
	Times int
	// Status, Code and Message of the error. RetryAfter is its header; empty means none.
	Status        int
	Code, Message string
	RetryAfter    string
	// Lost executes the call, and then cuts the connection instead of an answer.
	Lost bool
	// Then is called after the call is executed, before the connection is cut. Optional.
	Then func()
	// Refused cuts the connection before the call is executed.
	Refused bool

	done int
}

// Done calls Then, if there is one.
func (f *Fault) Done() {
	if f.Then != nil {
		f.Then()
	}
}

// Faults of a cloud.
type Faults struct {
	mu   sync.Mutex
	list []*Fault
}

// Break adds a fault. The returned function removes it.
func (f *Faults) Break(fault Fault) (mend func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &fault)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = slices.DeleteFunc(f.list, func(other *Fault) bool { return other == &fault })
	}
}

// Mend removes all faults.
func (f *Faults) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// CutAny removes all faults, and then cuts the connection of each call with a probability, after its effect.
func (f *Faults) CutAny(probability float64, random *rand.Rand) {
	f.Mend()
	f.Break(Fault{Lost: true, Match: func(string, []byte) bool { return random.Float64() < probability }})
}

// Of returns the fault of a call, nil if there is none.
func (f *Faults) Of(call, project string, body []byte) *Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.list {
		if (fault.Call == "" || fault.Call == call) && (fault.Times == 0 || fault.done < fault.Times) && (fault.Match == nil || fault.Match(project, body)) {
			fault.done++
			return fault
		}
	}
	return nil
}

// A Count is a counter of calls.
type Count struct {
	mu    sync.Mutex
	calls map[string]int
}

// Note counts a call.
func (c *Count) Note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[call]++
}

// Calls returns the number of calls by method and path, with {id} for IDs, and their total.
func (c *Count) Calls() (map[string]int, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, n := range c.calls {
		sum += n
	}
	return maps.Clone(c.calls), sum
}

// Table formats calls by name, one line each.
func Table(calls map[string]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(calls)) {
		fmt.Fprintf(&b, "%6d %s\n", calls[k], k)
	}
	return b.String()
}

// CallOf returns the method and the path of a request, with {id} for the parts that are IDs.
func CallOf(method, path string, isID func(string) bool) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if isID(p) {
			parts[i] = "{id}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// A Bucket has the calls that an account may still make: a token bucket.
type Bucket struct {
	level float64
	at    time.Time
}

// Take takes one call, if there is one. A bucket is full with limit calls, and gains one per
// refill. Take returns the number of calls left, and the time at which the bucket is full again.
func (b *Bucket) Take(now time.Time, limit int, refill time.Duration) (ok bool, left int, full time.Time) {
	if b.at.IsZero() {
		b.level = float64(limit)
	} else {
		b.level = min(float64(limit), b.level+float64(now.Sub(b.at))/float64(refill))
	}
	b.at = now
	if ok = b.level >= 1; ok {
		b.level--
	}
	return ok, int(b.level), now.Add(time.Duration((float64(limit) - b.level) * float64(refill)))
}
