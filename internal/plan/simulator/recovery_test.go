package simulator

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// An outage in which no Machine can run.
type outage struct {
	name  string
	cloud func(*Cloud)
}

var outages = []outage{
	{"Nodes do not join", func(c *Cloud) { c.NoJoin = true }},
	{"the cloud throttles", func(c *Cloud) { c.Refuses = "Throttled" }},
	{"the cloud has no room", func(c *Cloud) { c.Refuses = "CapacityExhausted" }},
	{"the cloud is down", func(c *Cloud) { c.Refuses = "Transient" }},
	{"VMs get no ID", func(c *Cloud) { c.Hangs = func(int) bool { return true } }},
}

// TestAPoolIsWholeSoonAfterAnOutage scales a pool up during an outage of any length. After the
// outage, the pool must be complete within creationTimeout and 15 minutes, and the first missing
// Machine must be created within one backoff.
func TestAPoolIsWholeSoonAfterAnOutage(t *testing.T) {
	for _, size := range []int{3, 30, 150} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			if size > 3 {
				// A run takes up to several seconds, so each outage is tried only a few times.
				for i, o := range outages {
					for from := size / 4; from < size; from += 15 {
						recovers(t, size, from, o, time.Duration(25+7*i+from)*time.Minute)
						if size > 30 {
							break
						}
					}
				}
				return
			}
			rapid.Check(t, func(t *rapid.T) {
				o := outages[rapid.IntRange(0, len(outages)-1).Draw(t, "outage")]
				from := rapid.IntRange(0, size-1).Draw(t, "from")
				recovers(t, size, from, o, time.Duration(rapid.IntRange(1, 150).Draw(t, "minutes"))*time.Minute)
			})
		})
	}
}

func recovers(t interface {
	Helper()
	Fatalf(string, ...any)
}, to, from int, o outage, lasts time.Duration) {
	t.Helper()
	what := fmt.Sprintf("%s for %s, from %d to %d", o.name, lasts, from, to)
	w := NewWorld(poolOf(from, 1, 0), Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatalf("%s: the pool did not begin:\n%s", what, w)
	}
	well := w.Cloud
	o.cloud(&w.Cloud)
	w.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = int32(to) })
	w.Run(lasts)
	w.Cloud = well
	over, before := w.Now, w.Made

	missing := len(w.Machines()) < to
	if missing && !w.RunUntil(10*time.Minute, func() bool { return w.Made > before }) {
		t.Fatalf("%s: no Machine is created within the longest backoff of 10m:\n%s", what, w)
	}
	const creationTimeout = 20 * time.Minute
	if !w.RunUntil(over.Add(creationTimeout+15*time.Minute).Sub(w.Now), w.Whole) {
		running := 0
		for _, m := range w.Machines() {
			if w.Available(m) {
				running++
			}
		}
		now := w.Now
		w.RunUntil(24*time.Hour, w.Whole)
		t.Fatalf("%s: %d of %d Machines are available after %s, and all after %s", what, running, to, now.Sub(over), w.Now.Sub(over))
	}
	if len(w.Violations) > 0 {
		t.Fatalf("%s: %s", what, w.Violations[0])
	}
}
