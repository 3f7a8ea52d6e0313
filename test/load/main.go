// Command load measures Drover on a local control plane: the time and the cost to create, roll
// and delete many Machines. "make load" runs it.
//
// Its arguments are scenarios:
//
//	create=N                        0 to N Machines
//	roll=N,surge=S,boot=D           roll N Machines to another version
//	delete=N                        delete a MachineDeployment of N
//	rest=N,for=D                    nothing happens to N Machines
//	held=N,by=HOLD,for=D            a window, an approval or a wave holds the rollout of N Machines
//
// boot is the boot time of VMs (default 0s). The initial state of a scenario is created before
// the measurement begins.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/drover-dev/drover/test/kit"
)

type cli struct {
	Scenarios []string `arg:"" optional:"" help:"What to measure. Default: ${scenarios}."`
	Limits    []string `default:"recommended,default" enum:"recommended,default" help:"Limits of Crossplane: recommended, as docs/install.md says, its default, or both one after the other."`
	Up        []string `help:"More flags for \"drover-cluster up\"." placeholder:"FLAG"`
	Audit     string   `default:"Metadata" enum:"Metadata,Request,RequestResponse" help:"Level of the audit log that writes are counted from. The others cost more, and show what is written."`
	Keep      string   `help:"Copy the audit log of each control plane into this folder." placeholder:"DIR"`
}

var defaults = []string{
	"create=100", "create=300",
	"roll=50,surge=10,boot=10s", "roll=100,surge=10",
	"delete=100", "rest=300,for=2m",
	"held=50,by=window", "held=50,by=approval", "held=50,by=wave",
}

func (c *cli) Run(ctx context.Context) error {
	if len(c.Scenarios) == 0 {
		c.Scenarios = defaults
	}
	var scenarios []scenario
	for _, s := range c.Scenarios {
		parsed, err := parse(s)
		if err != nil {
			return err
		}
		scenarios = append(scenarios, parsed)
	}
	for _, limits := range c.Limits {
		if err := c.measure(ctx, limits, scenarios); err != nil {
			return err
		}
	}
	return nil
}

// measure all scenarios, one after the other, on one control plane.
func (c *cli) measure(ctx context.Context, limits string, scenarios []scenario) error {
	args := append([]string{"--audit=" + c.Audit}, c.Up...)
	if limits == "recommended" {
		args = append(args, kit.Limits...)
	}
	plane, err := kit.Up(ctx, kit.Options{Args: args})
	defer plane.Down()
	if err != nil {
		return err
	}
	var results []result
	for _, s := range scenarios {
		fmt.Fprintf(os.Stderr, "%s (limits: %s)\n", s, limits)
		r, err := s.run(ctx, plane)
		if err != nil {
			plane.KeepLogs()
			// Print the previous results although this scenario failed.
			printTable(limits, results)
			return fmt.Errorf("%s: %w", s, err)
		}
		fmt.Fprintf(os.Stderr, "  %.1fs\n", r.wall.Seconds())
		results = append(results, r)
	}
	printTable(limits, results)
	if c.Keep != "" {
		return keep(ctx, plane, c.Keep, limits)
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("load"), kong.Description("Measures Drover on a local control plane."),
		kong.Vars{"scenarios": fmt.Sprint(defaults)}, kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
