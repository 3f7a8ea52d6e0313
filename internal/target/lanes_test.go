package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// respond is a transport whose calls take as long as take, or until their context ends.
func respond(take func() time.Duration) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(take()):
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, nil
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	})
}

// crowded is shared by two clusters.
func crowded() *shared {
	s := newShared()
	s.connected.Store(2)
	return s
}

func callOnce(t *testing.T, rt http.RoundTripper) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://x/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return errors.Join(err, res.Body.Close())
}

// TestSlowClustersLeaveWorkersToOthers has a pool of workers, as the controllers have one, with many Machines
// of slow clusters and a few of a fast one.
func TestSlowClustersLeaveWorkersToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, clusters, slowness = 20, 5, 500 * time.Millisecond
		s := newShared()
		s.connected.Store(clusters + 1)
		lane := func(take time.Duration) *lanes {
			l := newLanes(respond(func() time.Duration { return take }), s)
			l.slowAfter = 50 * time.Millisecond
			return l
		}
		var slow []*lanes
		for range clusters {
			slow = append(slow, lane(slowness))
		}
		fast := lane(time.Millisecond)

		queue := make(chan func(), 10_000)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					select {
					case f := <-queue:
						f()
					case <-stop:
						return
					}
				}
			}()
		}
		var gaveUp atomic.Int32
		for _, l := range slow {
			for range 40 {
				var again func()
				again = func() {
					if err := callOnce(t, l); err != nil {
						gaveUp.Add(1)
					}
					// The Machine is requeued, as after an error.
					time.AfterFunc(100*time.Millisecond, func() {
						select {
						case <-stop:
						case queue <- again:
						}
					})
				}
				queue <- again
			}
		}
		began, worst := time.Now(), time.Duration(0)
		for time.Since(began) < 3*time.Second {
			asked, done := time.Now(), make(chan error)
			queue <- func() { done <- callOnce(t, fast) }
			if err := <-done; err != nil {
				t.Fatalf("a call to the cluster that is fast: %v", err)
			}
			if took := time.Since(asked); time.Since(began) > time.Second {
				worst = max(worst, took)
			}
			time.Sleep(10 * time.Millisecond)
		}
		close(stop)
		wg.Wait()
		if worst > slowness {
			t.Errorf("a Machine of the fast cluster waited %s", worst)
		}
		if gaveUp.Load() == 0 {
			t.Error("all calls to the slow clusters were waited for")
		}
		if len(s.slow) != 0 {
			t.Errorf("%d places of slow calls are not given back", len(s.slow))
		}
		t.Logf("worst wait %s, %d slow calls were given up", worst, gaveUp.Load())
	})
}

func TestASlowClusterIsStillCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		takes.Store(int64(150 * time.Millisecond))
		l := newLanes(respond(func() time.Duration { return time.Duration(takes.Load()) }), crowded())
		l.slowAfter = 20 * time.Millisecond
		var ok, refused atomic.Int32
		var wg sync.WaitGroup
		for range maxCalls {
			wg.Add(1)
			go func() {
				defer wg.Done()
				switch err := callOnce(t, l); {
				case err == nil:
					ok.Add(1)
				case errors.Is(err, errSlow), errors.Is(err, errBusy):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		if ok.Load() != slowCalls || refused.Load() != maxCalls-slowCalls {
			t.Errorf("%d calls were answered and %d given up, want %d and the rest", ok.Load(), refused.Load(), slowCalls)
		}
		takes.Store(0)
		for range 3 * maxCalls {
			if err := callOnce(t, l); err != nil {
				t.Fatalf("it is fast again: %v", err)
			}
		}
	})
}

func TestManyCallsToAFastClusterWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(respond(func() time.Duration { return 5 * time.Millisecond }), crowded())
		var wg sync.WaitGroup
		for range 5 * maxCalls {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := callOnce(t, l); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
	})
}

func TestAProbeOfASlowClusterIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(respond(func() time.Duration { return time.Second }), crowded())
		l.slowAfter = 10 * time.Millisecond
		for range maxCalls {
			go func() { _ = callOnce(t, l) }()
		}
		time.Sleep(50 * time.Millisecond)
		req, err := http.NewRequestWithContext(exempt(context.Background()), http.MethodGet, "https://x/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := l.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	})
}

// TestTheOnlyClusterMayBeSlow has an API server under load: its calls do not block those of another cluster.
func TestTheOnlyClusterMayBeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(respond(func() time.Duration { return 100 * time.Millisecond }), newShared())
		l.slowAfter = 10 * time.Millisecond
		var wg sync.WaitGroup
		for range 3 * maxCalls {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := callOnce(t, l); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
	})
}

// TestABusyClusterServesAllMachines has 100 Machines of a cluster under load, which is not slow, and the workers of a controller.
func TestABusyClusterServesAllMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, machines, each, takes, again = 20, 100, 5, 300 * time.Millisecond, 2 * time.Second
		l := newLanes(respond(func() time.Duration { return takes }), crowded())
		queue := make(chan func(), machines)
		done := make(chan time.Duration, machines)
		for range workers {
			go func() {
				for f := range queue {
					f()
				}
			}()
		}
		var refused atomic.Int32
		began := time.Now()
		for range machines {
			left, asked, worst := each, time.Now(), time.Duration(0)
			var try func()
			try = func() {
				for left > 0 {
					if err := callOnce(t, l); err != nil {
						refused.Add(1)
						time.AfterFunc(again, func() { queue <- try })
						return
					}
					worst, asked = max(worst, time.Since(asked)), time.Now()
					left--
				}
				done <- worst
			}
			queue <- try
		}
		worst := time.Duration(0)
		for range machines {
			worst = max(worst, <-done)
		}
		close(queue)
		t.Logf("%s for all, %s for the worst call, %d refused", time.Since(began), worst, refused.Load())
		// Each refusal is a reconcile that achieved nothing, and the Machine must not be refused again and again.
		if calls := int32(machines * each); refused.Load() >= calls || worst > 8*time.Second {
			t.Errorf("%d of %d calls were refused, and one was made after %s only", refused.Load(), calls, worst)
		}
	})
}
