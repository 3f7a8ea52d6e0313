package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/supervisor"
)

const downTimeout = time.Minute

type downCommand struct {
	instance
	Purge bool `help:"Remove the directory of the instance too."`
}

func (c *downCommand) Run(ctx context.Context) error {
	dir, client, err := c.open()
	if err != nil {
		return err
	}
	if client.Running() {
		if err := end(ctx, client); err != nil {
			return err
		}
		fmt.Println("stopped")
	} else {
		fmt.Println("not running")
	}
	if c.Purge {
		return purge(dir)
	}
	return nil
}

// end stops the supervisor, and returns when it has ended.
func end(ctx context.Context, client *supervisor.Client) error {
	if err := client.Down(ctx); err != nil && !errors.Is(err, supervisor.ErrNotRunning) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	for client.Running() {
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("the supervisor still runs after %s: %w", downTimeout, ctx.Err())
		}
	}
	return nil
}

// purge deletes the directory, but only if an instance used it.
func purge(dir layout.Dir) error {
	if !files.Exists(string(dir)) {
		return nil
	}
	if !files.Exists(dir.Lock()) {
		return fmt.Errorf("--purge: %s is not the directory of an instance", dir)
	}
	return os.RemoveAll(string(dir))
}
