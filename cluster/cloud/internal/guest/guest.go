// Package guest runs the guests of simulated VMs: the first boot, then a kubelet.
package guest

import (
	"context"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
	"github.com/drover-dev/drover/cluster/cloud/internal/userdata"
)

// Host is the interface of a VM that its guest uses.
type Host = kubelet.Host

// VM is a simulated VM to run.
type VM struct {
	Facts    kubelet.Facts
	UserData []byte
	// FirstBoot is false if the VM was running already, and only the process that simulates it was
	// restarted.
	FirstBoot bool
	State     kubelet.State
}

// Guests runs many VMs. It is safe for concurrent use.
type Guests struct {
	clock clock.WithTicker
	base  context.Context //nolint:containedctx // Of the goroutines, which end with it.
	end   context.CancelFunc
	all   sync.WaitGroup

	mu      sync.Mutex
	running map[string]context.CancelFunc
}

// New returns Guests that run no VM yet.
func New(c clock.WithTicker) *Guests {
	g := &Guests{clock: c, running: map[string]context.CancelFunc{}}
	g.base, g.end = context.WithCancel(context.Background())
	return g
}

// Start runs a VM, unless it is running already. It does not wait.
func (g *Guests) Start(vm VM, host Host) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.running[vm.Facts.ID]; ok || g.base.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(g.base)
	g.running[vm.Facts.ID] = cancel
	g.all.Go(func() { run(ctx, vm, host, g.clock) })
}

// Stop ends a running VM without a shutdown. It does not wait.
func (g *Guests) Stop(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if cancel, ok := g.running[id]; ok {
		cancel()
		delete(g.running, id)
	}
}

// Close ends all VMs, and waits until they have ended. Start has no effect afterwards.
func (g *Guests) Close() {
	g.mu.Lock()
	g.end()
	g.mu.Unlock()
	g.all.Wait()
}

func run(ctx context.Context, vm VM, host Host, c clock.WithTicker) {
	say := func(format string, args ...any) {
		if vm.FirstBoot {
			host.Console(format, args...)
		}
	}
	say("booting %s on %s", vm.Facts.OSImage, vm.Facts.Name)
	in, err := userdata.Parse(vm.UserData)
	if err != nil {
		say("first boot: %v", err)
		return
	}
	say("first boot: wrote %d files", len(in.Files))
	for _, command := range in.Commands {
		// Print only the name: arguments of commands may be secrets.
		say("first boot: ran %s", strings.TrimSpace(command[0]))
	}
	plan, err := kubelet.NewPlan(in, vm.Facts)
	if err != nil {
		say("%v", err)
		return
	}
	say("kubelet: %s starts as node %s", plan.Version, plan.NodeName)
	kubelet.Run(ctx, plan, vm.State, host, c)
}
