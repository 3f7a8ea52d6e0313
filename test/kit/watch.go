package kit

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Bounds that a MachineDeployment must keep.
type Bounds struct {
	// MaxMachines is how many Machines there may be, terminating ones included.
	MaxMachines int
	// MinAvailable is how many Machines must be Running and not terminating.
	MinAvailable int
}

// A Guard looks at every change of every Machine of a fleet.
type Guard struct {
	mu      sync.Mutex
	broken  []string
	seen    int
	stop    func()
	ending  chan struct{}
	stopped chan struct{}
}

// Guard asserts bounds from now on at every change of any Machine, until Done.
func (f Fleet) Guard(t testing.TB, b Bounds) *Guard {
	t.Helper()
	now, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Client.Watch(t.Context(), &machinev1alpha1.MachineList{}, client.InNamespace(f.Namespace))
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{stop: w.Stop, ending: make(chan struct{}), stopped: make(chan struct{})}
	machines := map[string]*machinev1alpha1.Machine{}
	// A watch without a resource version starts with all that is there: until it
	// has told of those, the bounds mean nothing.
	missing := map[string]bool{}
	for _, m := range now {
		missing[m.Name] = true
	}
	go func() {
		defer close(g.stopped)
		for e := range w.ResultChan() {
			m, ok := e.Object.(*machinev1alpha1.Machine)
			if !ok {
				select {
				case <-g.ending:
					// A watch that is stopped may say so with an error.
				default:
					g.note(fmt.Sprintf("the watch ended: %v", e.Object))
				}
				return
			}
			if e.Type == watch.Deleted {
				delete(machines, m.Name)
			} else {
				machines[m.Name] = m
			}
			delete(missing, m.Name)
			if len(missing) > 0 {
				continue
			}
			g.check(b, machines, fmt.Sprintf("%s %s", e.Type, m.Name))
		}
	}()
	return g
}

func (g *Guard) check(b Bounds, machines map[string]*machinev1alpha1.Machine, at string) {
	available := 0
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() && m.Status.Phase == machinev1alpha1.MachineRunning {
			available++
		}
	}
	g.mu.Lock()
	g.seen++
	g.mu.Unlock()
	if len(machines) > b.MaxMachines {
		g.note(fmt.Sprintf("at %s: %d Machines, allowed %d", at, len(machines), b.MaxMachines))
	}
	if available < b.MinAvailable {
		g.note(fmt.Sprintf("at %s: %d available, wanted %d", at, available, b.MinAvailable))
	}
}

func (g *Guard) note(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.broken) < 10 {
		g.broken = append(g.broken, s)
	}
}

// Done ends the watch, and fails the test if a bound was broken or if fewer than
// changes changes were seen: a guard that saw nothing proves nothing.
func (g *Guard) Done(t testing.TB, changes int) {
	t.Helper()
	close(g.ending)
	g.stop()
	<-g.stopped
	for _, s := range g.broken {
		t.Error(s)
	}
	if g.seen < changes {
		t.Errorf("the guard saw only %d changes of Machines, expected %d", g.seen, changes)
	}
	t.Logf("the bounds held at each of %d changes of Machines", g.seen)
}
