package simulator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// failToPlace fails a VM that was accepted, and returns the error of its creation.
func (c *cloud) failToPlace(ctx context.Context, t *thing) error {
	t.hasNoAddress()
	t.failed = c.FailedAllocation.Stays
	c.add(t)
	if !c.FailedAllocation.Stays {
		// The VM exists at the cloud for a moment.
		if err := c.awaitStart(ctx, &thing{startsUntil: time.Now().Add(startTime)}); err != nil {
			return err
		}
		c.mu.Lock()
		delete(c.things, key(t.kind, t.facts["id"].(string)))
		c.mu.Unlock()
	}
	return errors.New(c.FailedAllocation.Error)
}

func (c *cloud) isFailing(t *thing) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failing[t.machine]
}

// failAllocation makes the cloud accept the VM of a Machine and then fail to place it.
func (c *cloud) failAllocation(machine types.NamespacedName) error {
	if c.FailedAllocation == nil {
		return fmt.Errorf("the description has no failedAllocation")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing[machine] = true
	return nil
}

func (c *cloud) askedFor(machine types.NamespacedName) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[machine]
}

func (c *cloud) isSlow(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow[namespace] > 0
}

func (c *cloud) slowDown(namespace string, start time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow[namespace] = start
}
