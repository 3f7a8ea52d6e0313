package kit

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Bounds that a MachineDeployment must keep.
type Bounds struct {
	// MaxMachines is the maximum number of Machines, including terminating ones.
	MaxMachines int
	// MinAvailable is the minimum number of Machines that are Running and not terminating.
	MinAvailable int
}

// A Guard checks every change of every Machine of a fleet.
type Guard struct {
	mu      sync.Mutex
	broken  []string
	seen    int
	stop    func()
	stopped chan struct{}
}

// Guard checks bounds from now on at every change of any Machine, until Done.
func (f Fleet) Guard(t testing.TB, b Bounds) *Guard {
	t.Helper()
	return f.GuardBy(t, b.Check)
}

// GuardBy runs check on all Machines at every change of any Machine, until Done. The results of
// check are violations.
func (f Fleet) GuardBy(t testing.TB, check func(machines map[string]*machinev1alpha1.Machine) []string) *Guard {
	t.Helper()
	now := &machinev1alpha1.MachineList{}
	if err := f.Client.List(t.Context(), now, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	// Watch from the version of the list, and across watches that the API server ends, so that no
	// change is missed.
	w, err := watchtools.NewRetryWatcherWithContext(t.Context(), now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return f.Client.Watch(ctx, &machinev1alpha1.MachineList{}, client.InNamespace(f.Namespace), &client.ListOptions{Raw: &o})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &Guard{stop: w.Stop, stopped: make(chan struct{})}
	machines := map[string]*machinev1alpha1.Machine{}
	for i := range now.Items {
		machines[now.Items[i].Name] = &now.Items[i]
	}
	g.saw("the start", check(machines))
	go func() {
		defer close(g.stopped)
		for e := range w.ResultChan() {
			m, ok := e.Object.(*machinev1alpha1.Machine)
			if !ok {
				g.note(fmt.Sprintf("the watch ended: %v", e.Object))
				return
			}
			if e.Type == watch.Deleted {
				delete(machines, m.Name)
			} else {
				machines[m.Name] = m
			}
			g.saw(fmt.Sprintf("%s %s", e.Type, m.Name), check(machines))
		}
	}()
	return g
}

// Check returns the violations of the bounds.
func (b Bounds) Check(machines map[string]*machinev1alpha1.Machine) []string {
	var broken []string
	available := 0
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() && m.Status.Phase == machinev1alpha1.MachineRunning {
			available++
		}
	}
	if len(machines) > b.MaxMachines {
		broken = append(broken, fmt.Sprintf("%d Machines, allowed %d", len(machines), b.MaxMachines))
	}
	if available < b.MinAvailable {
		broken = append(broken, fmt.Sprintf("%d available, wanted %d", available, b.MinAvailable))
	}
	return broken
}

// OneVersion returns a violation if Machines of several versions exist at once.
func OneVersion(machines map[string]*machinev1alpha1.Machine) []string {
	of := map[string]string{}
	for _, m := range machines {
		of[m.Spec.Version] = m.Name
	}
	if len(of) > 1 {
		return []string{fmt.Sprintf("Machines of %d versions at once: %v", len(of), of)}
	}
	return nil
}

func (g *Guard) saw(at string, broken []string) {
	g.mu.Lock()
	g.seen++
	g.mu.Unlock()
	for _, s := range broken {
		g.note("at " + at + ": " + s)
	}
}

func (g *Guard) note(s string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.broken) < 10 {
		g.broken = append(g.broken, s)
	}
}

// Done ends the watch. It fails the test if check found a violation, or if the guard saw fewer
// changes than expected: a guard that saw no change proves nothing.
func (g *Guard) Done(t testing.TB, changes int) {
	t.Helper()
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
