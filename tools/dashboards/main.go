// Command dashboards writes the Grafana dashboards of examples/monitoring into a folder.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments: must be one, the folder to write to", len(args))
	}
	for name, build := range all {
		d, err := build().Build()
		if err != nil {
			return err
		}
		b, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[0], name+".json"), append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// all dashboards, by the names of their files.
var all = map[string]func() *dashboard.DashboardBuilder{"fleet": fleet, "pool": pool}
