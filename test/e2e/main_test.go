// Package e2e tests Drover end to end, as a user runs it: installed from its packages into a real
// control plane, with Machines in the local cloud.
package e2e

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// plane is shared by all tests of this package: each test has its own namespace. Its Crossplane
// has the default circuit breaker.
var plane *kit.Plane

// raised is another plane, with the raised circuit breaker that docs/install.md recommends. The
// first test that needs it starts it.
var raised = sync.OnceValues(func() (*kit.Plane, error) {
	return kit.Up(context.Background(), kit.Options{Args: kit.Limits, Witness: true})
})

// startedRaised reports whether a test started it.
var startedRaised atomic.Bool

// onEachBreaker runs a test with the default and with a raised circuit breaker.
func onEachBreaker(t *testing.T, test func(t *testing.T, f kit.Fleet)) {
	t.Parallel()
	t.Run("DefaultBreaker", func(t *testing.T) {
		t.Parallel()
		test(t, plane.NewFleet(t))
	})
	t.Run("RaisedBreaker", func(t *testing.T) {
		t.Parallel()
		test(t, raisedFleet(t))
	})
}

// raisedFleet is left out of the short form: a second control plane takes as much of the processors as
// the first one.
func raisedFleet(t *testing.T) kit.Fleet {
	t.Helper()
	kit.OnlyInLong(t, "rollouts with the default circuit breaker, and the property tests of the planners")
	startedRaised.Store(true)
	p, err := raised()
	if err != nil {
		t.Fatal(err)
	}
	return p.NewFleet(t)
}

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	plane, err = kit.Up(context.Background(), kit.Options{Target: true, Audit: true, Witness: true})
	defer plane.Down()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	planes := []*kit.Plane{plane}
	if startedRaised.Load() {
		p, err := raised()
		defer p.Down()
		if err == nil {
			planes = append(planes, p)
		}
	}
	for _, p := range planes {
		for _, leak := range p.Leaks() {
			fmt.Fprintln(os.Stderr, "leak:", leak)
			code = 1
		}
	}
	if code != 0 {
		for _, p := range planes {
			p.KeepLogs()
		}
	}
	return code
}
