package kit

import (
	"context"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A Census notes every VM of a fleet that it ever sees. A VM lives for many polls,
// so that it misses none that stays long enough to cost anything.
type Census struct {
	mu   sync.Mutex
	vms  map[string]map[string]bool
	stop context.CancelFunc
	done chan struct{}
}

// Census starts to note VMs, until Done.
func (f Fleet) Census(t testing.TB) *Census {
	ctx, cancel := context.WithCancel(t.Context())
	c := &Census{vms: map[string]map[string]bool{}, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			c.look(ctx, f)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return c
}

// look passes over errors: the local cloud may be restarting.
func (c *Census) look(ctx context.Context, f Fleet) {
	vms, err := f.VMs(ctx)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, vm := range vms {
		machine := vm.Tags[machinev1alpha1.TagMachineUID]
		if c.vms[machine] == nil {
			c.vms[machine] = map[string]bool{}
		}
		c.vms[machine][vm.ID] = true
	}
}

// Done ends the census, and fails the test if a Machine ever had two VMs, or if
// not as many Machines as expected ever had one.
func (c *Census) Done(t testing.TB, machines int) {
	t.Helper()
	c.stop()
	<-c.done
	for machine, vms := range c.vms {
		if len(vms) != 1 {
			t.Errorf("the Machine with UID %s had %d VMs: %v", machine, len(vms), vms)
		}
	}
	if len(c.vms) != machines {
		t.Errorf("%d Machines ever had a VM, want %d", len(c.vms), machines)
	}
}
