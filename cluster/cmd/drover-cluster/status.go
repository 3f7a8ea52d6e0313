package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/supervisor"
)

type statusCommand struct {
	instance
	Output string `default:"text" enum:"text,json" help:"text or json." short:"o"`
}

func (c *statusCommand) Run(ctx context.Context) error {
	_, client, err := c.open()
	if err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(status)
	}
	return printStatus(status)
}

func printStatus(s supervisor.Status) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "control cluster\t%s\t%s\n", s.Control.Server, s.Control.Kubeconfig)
	if s.Target != nil {
		fmt.Fprintf(w, "target cluster\t%s\t%s\n", s.Target.Server, s.Target.Kubeconfig)
	}
	fmt.Fprintf(w, "registry\t%s\t\n", s.Registry)
	if s.LocalCloud != nil {
		fmt.Fprintf(w, "local cloud\t%s\t%s\n", s.LocalCloud.Endpoint, s.LocalCloud.TokenFile)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println()
	w = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tSTATE\tPID\tRESTARTS\tAGE\tLOG")
	for _, c := range s.Components {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", c.Name, c.State, dash(c.PID), c.Restarts, age(c), c.Log)
	}
	return w.Flush()
}

func dash(pid int) string {
	if pid == 0 {
		return "-"
	}
	return fmt.Sprint(pid)
}

func age(c process.Status) string {
	if c.Since.IsZero() {
		return "-"
	}
	return time.Since(c.Since).Round(time.Second).String()
}
