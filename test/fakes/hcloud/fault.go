package hcloud

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Fault is what goes wrong with calls.
type Fault struct {
	// Call is the method and the path with {id} for IDs, like "POST /servers". "" is all.
	Call string
	// Times that it goes wrong, 0: always.
	Times int
	// Status, Code and Message of the error. RetryAfter is its header, "": none.
	Status        int
	Code, Message string
	RetryAfter    string
	// Lost does what was asked for, and then cuts the connection instead of an answer.
	Lost bool
	// Refused cuts the connection before anything is done.
	Refused bool

	done int
}

// Break adds a fault.
func (c *Cloud) Break(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, &f)
}

// Mend ends all faults.
func (c *Cloud) Mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// fault of a call, nil if there is none.
func (c *Cloud) fault(call string) *Fault {
	for _, f := range c.faults {
		if (f.Call == "" || f.Call == call) && (f.Times == 0 || f.done < f.Times) {
			f.done++
			return f
		}
	}
	return nil
}

// bucket counts the calls of a project.
type bucket struct {
	level float64
	at    time.Time
}

// take one call, and tell the limits in the headers.
func (b *bucket) take(now time.Time, limit int, refill time.Duration, h http.Header) bool {
	if b.at.IsZero() {
		b.level = float64(limit)
	} else {
		b.level = min(float64(limit), b.level+float64(now.Sub(b.at))/float64(refill))
	}
	b.at = now
	ok := b.level >= 1
	if ok {
		b.level--
	}
	full := now.Add(time.Duration((float64(limit) - b.level) * float64(refill)))
	h.Set("RateLimit-Limit", strconv.Itoa(limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(int(math.Floor(b.level))))
	h.Set("RateLimit-Reset", strconv.FormatInt(full.Unix(), 10))
	return ok
}

// callOf is the method and the path of a request, with {id} for IDs.
func callOf(method, path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/v1"), "/")
	for i, p := range parts {
		if _, err := strconv.ParseInt(p, 10, 64); err == nil {
			parts[i] = "{id}"
		}
	}
	return method + " " + strings.Join(parts, "/")
}
