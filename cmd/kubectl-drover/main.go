// Command kubectl-drover is the plugin of kubectl for people who operate Drover: kubectl drover.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/move"
)

type cli struct {
	Move   moveCommand   `cmd:"" help:"Take the Machines of a namespace to another control cluster, without touching a VM or a Node."`
	Import importCommand `cmd:"" help:"Make orphans Machines of a MachineSet again, without touching a VM or a Node."`
}

// moveCommand is kubectl drover move.
type moveCommand struct {
	Namespace string `short:"n" required:"" help:"The namespace."`

	Kubeconfig string `help:"The kubeconfig of the source. By default that of kubectl." type:"path"`
	Context    string `help:"The context of the source. By default the current one."`

	ToKubeconfig  string `help:"The kubeconfig of the destination." type:"path" xor:"destination"`
	ToContext     string `help:"The context of the destination. By default the current one of --to-kubeconfig."`
	ToDirectory   string `help:"Save the objects in a directory, which must be empty. Nothing is moved." type:"path" xor:"destination"`
	FromDirectory string `help:"Take objects that were saved in a directory to --to-kubeconfig." type:"existingdir"`
	SourceIsGone  bool   `help:"With --from-directory: the control cluster that the objects were saved in runs nowhere any more, so that its VMs may be taken over."`

	Timeout time.Duration `default:"10m" help:"How long each step may take."`
}

// Validate is called by kong.
func (c *moveCommand) Validate() error {
	switch {
	case c.ToKubeconfig == "" && c.ToDirectory == "":
		return fmt.Errorf("either --to-kubeconfig or --to-directory is required")
	case c.FromDirectory != "" && c.ToDirectory != "":
		return fmt.Errorf("--from-directory needs --to-kubeconfig")
	case c.SourceIsGone && c.FromDirectory == "":
		return fmt.Errorf("--source-is-gone needs --from-directory: a source that can be reached is let go of")
	}
	return nil
}

// Run the command.
func (c *moveCommand) Run(ctx context.Context) error {
	m := &move.Move{Namespace: c.Namespace, SourceIsGone: c.SourceIsGone, Timeout: c.Timeout, Log: say}
	var err error
	if c.FromDirectory == "" {
		if m.Source, err = connect(c.Kubeconfig, c.Context); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	} else {
		saved, err := move.Load(c.FromDirectory, c.Namespace)
		if err != nil {
			return err
		}
		m.Saved = &saved
	}
	if c.ToDirectory != "" {
		o, err := move.Read(ctx, m.Source, c.Namespace)
		if err != nil {
			return err
		}
		return move.Save(c.ToDirectory, o)
	}
	if m.Destination, err = connect(c.ToKubeconfig, c.ToContext); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	return m.Run(ctx)
}

// importCommand is kubectl drover import.
type importCommand struct {
	Namespace  string   `short:"n" required:"" help:"The namespace of the MachineSet."`
	MachineSet string   `required:"" help:"The MachineSet that adopts the Machines. Its replicas must have room for them."`
	Kubeconfig string   `help:"The kubeconfig. By default that of kubectl." type:"path"`
	Context    string   `help:"The context. By default the current one."`
	VMs        []string `arg:"" name:"external-name" help:"The VMs, by status.virtualMachines[].externalName of the OrphanCollector that reports them."`
}

// Run the command.
func (c *importCommand) Run(ctx context.Context) error {
	cl, err := connect(c.Kubeconfig, c.Context)
	if err != nil {
		return err
	}
	i := move.Import{Client: cl, Namespace: c.Namespace, Set: c.MachineSet, VMs: c.VMs, Log: say}
	return i.Run(ctx)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

// connect to a cluster as kubectl does.
func connect(kubeconfig, kubecontext string) (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubecontext}).ClientConfig()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = 100, 200
	return client.New(cfg, client.Options{})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("kubectl-drover"), kong.Description("Operate Drover."), kong.UsageOnError(), kong.BindTo(ctx, (*context.Context)(nil)))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to stop.
	}
}
