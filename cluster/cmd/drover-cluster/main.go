// Command drover-cluster runs a local Crossplane control plane without containers:
// an API server, Crossplane core and its RBAC manager, a package registry, and the
// processes of installed functions and providers. It also builds, pushes and
// installs packages, and starts the local cloud and a separate target cluster.
package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/supervisor"
)

type cli struct {
	Up      upCommand      `cmd:"" help:"Start the control plane and wait until it is ready."`
	Down    downCommand    `cmd:"" help:"Stop the control plane."`
	Status  statusCommand  `cmd:"" help:"Show where everything is and how it stands."`
	Start   startCommand   `cmd:"" help:"Start a stopped component."`
	Stop    stopCommand    `cmd:"" help:"Stop a component."`
	Restart restartCommand `cmd:"" help:"Restart a component."`

	Supervise superviseCommand `cmd:"" hidden:""`
}

// instance is the flag that every command on an instance has.
type instance struct {
	Dir string `default:".work/cluster" help:"Directory of the instance: state, logs, kubeconfigs." placeholder:"DIR"`
}

func (i instance) open() (layout.Dir, *supervisor.Client, error) {
	dir, err := layout.New(i.Dir)
	if err != nil {
		return "", nil, err
	}
	return dir, supervisor.NewClient(dir), nil
}

func main() {
	// Without a logger, controller-runtime prints a stack trace after 30 seconds. The package runtime sets its own.
	crlog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{},
		kong.Name("drover-cluster"),
		kong.Description("Local Crossplane control plane without containers."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	k.FatalIfErrorf(k.Run())
}
