package main

import (
	"context"
	"fmt"
)

// component is the argument of commands that act on one component.
type component struct {
	instance
	Component string `arg:"" help:"kubernetes, target, crossplane, rbac, local-cloud, or the name of an installed package with a runtime."`
}

func (c component) operate(ctx context.Context, verb string) error {
	dir, client, err := c.open()
	if err != nil {
		return err
	}
	if err := client.Operate(ctx, verb, c.Component); err != nil {
		return withLog(fmt.Errorf("%s %s: %w", verb, c.Component, err), dir.Log(c.Component))
	}
	return nil
}

type (
	startCommand   struct{ component }
	stopCommand    struct{ component }
	restartCommand struct{ component }
)

func (c *startCommand) Run(ctx context.Context) error   { return c.operate(ctx, "start") }
func (c *stopCommand) Run(ctx context.Context) error    { return c.operate(ctx, "stop") }
func (c *restartCommand) Run(ctx context.Context) error { return c.operate(ctx, "restart") }
