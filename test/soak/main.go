// Command soak injects faults into a fleet on a local control plane, at random and for a long
// time, and checks whether Drover keeps its guarantees. "make soak" runs it.
//
// It runs rounds. In each round, a seed determines the faults, the changes by users, the affected
// Machines and the delays between actions. Then all faults end, and the fleet must match its spec
// within --patience, with as many VMs and Nodes as Machines and no other objects left. Guarantees
// are checked all the time: see the ledger. The same seed gives the same rounds, but their timing
// relative to Drover varies.
//
// Finally it prints the actions and their effects. If a guarantee is broken, it prints the events
// of the round and exits with 1.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/drover-dev/drover/test/kit"
)

type cli struct {
	Duration time.Duration `default:"30m" help:"No round begins after it."`
	Machines int           `default:"50" help:"Machines of the fleet, 6 at least."`
	Seed     uint64        `default:"1" help:"Decides what is done, and in which order."`
	Actions  int           `default:"14" help:"What is done in a round."`
	Patience time.Duration `default:"12m" help:"How long the fleet may take to be well again after a round."`
	GoOn     bool          `help:"Go on after a broken promise, to find more of them."`
}

// Validate is called by kong.
func (c *cli) Validate() error {
	if c.Machines < 6 {
		return fmt.Errorf("--machines: %d must be 6 or more", c.Machines)
	}
	if c.Actions < 1 {
		return fmt.Errorf("--actions: %d must be 1 or more", c.Actions)
	}
	return nil
}

func (c *cli) Run(ctx context.Context) error {
	plane, err := kit.Up(ctx, kit.Options{Target: true, Args: kit.Limits})
	defer plane.Down()
	if err != nil {
		return err
	}
	s, err := start(ctx, plane, c)
	if err != nil {
		plane.KeepLogs()
		return err
	}
	defer s.stop()
	err = s.run(ctx)
	s.report(os.Stdout)
	if err != nil {
		plane.KeepLogs()
	}
	return err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("soak"), kong.Description("Breaks a fleet on a local control plane, and looks on."), kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
