// Package fakes has what the fakes of clouds' APIs share: faults, a count of calls, and
// limits of their rate.
package fakes

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Fault is what goes wrong with calls.
type Fault struct {
	// Call is the method and the path with {id} for IDs, like "POST /servers". "" is all.
	Call string
	// Match, if it is set, says which calls, by the project and the body.
	Match func(project string, body []byte) bool
	// Times that it goes wrong, 0: always.
	Times int
	// Status, Code and Message of the error. RetryAfter is its header, "": none.
	Status        int
	Code, Message string
	RetryAfter    string
	// Lost does what was asked for, and then cuts the connection instead of an answer.
	Lost bool
	// Then is called when what was asked for is done, before the connection is cut. Optional.
	Then func()
	// Refused cuts the connection before anything is done.
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

// Break adds a fault. What it returns ends it.
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

// Mend ends all faults.
func (f *Faults) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// Of a call, nil if there is none.
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

// A Count of calls.
type Count struct {
	mu    sync.Mutex
	calls map[string]int
}

// Note a call.
func (c *Count) Note(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[call]++
}

// Calls that were made, by method and path with {id} for IDs, and how many altogether.
func (c *Count) Calls() (map[string]int, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, n := range c.calls {
		sum += n
	}
	return maps.Clone(c.calls), sum
}

// CallOf is the method and the path of a request, with {id} for the parts that are IDs.
func CallOf(method, path string, isID func(string) bool) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if isID(p) {
			parts[i] = "{id}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// A Bucket has the calls that an account may make.
type Bucket struct {
	level float64
	at    time.Time
}

// Take one call, if there is one. A bucket is full with limit calls, and gets one every
// refill. It returns how many are left, and when it is full again.
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
