// The local cloud: VMs on one computer, behind an HTTP API. README.md describes its features.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/api"
	"github.com/drover-dev/drover/cluster/cloud/internal/cloud"
	"github.com/drover-dev/drover/cluster/cloud/internal/guest"
	"github.com/drover-dev/drover/cluster/cloud/internal/hypervisor"
	"github.com/drover-dev/drover/cluster/cloud/internal/real"
)

type flags struct {
	Dir          string        `required:"" type:"path" help:"Directory that holds the cloud. It is made when it is not there."`
	Listen       string        `default:"127.0.0.1:8088" help:"Address of the API."`
	TokenFile    string        `type:"path" help:"File with the API's token. A file that is not there is made, with a new token. Default: token in the directory."`
	CreateTime   time.Duration `default:"0s" help:"How long a VM is Pending."`
	BootTime     time.Duration `default:"2s" help:"How long a VM boots before it reads its user data."`
	RealVMs      string        `name:"real-vms" type:"path" help:"Folder with the images of real VMs and the mirror that serves them, as make real-vms builds it. Default: simulated VMs only."`
	ShutdownTime time.Duration `default:"0s" help:"How long a VM is Terminating. The times are of a new cloud: one that exists keeps its settings."`
	Debug        bool          `help:"Log more."`
}

func main() {
	// kong must not parse this command: its arguments are the command line of a hypervisor.
	if len(os.Args) > 2 && os.Args[1] == hypervisor.GuardCommand {
		os.Exit(hypervisor.RunGuard(os.Args[2:]))
	}
	var f flags
	k := kong.Parse(&f, kong.Name("local-cloud"), kong.Description("A small cloud of virtual machines, simulated or real."))
	k.FatalIfErrorf(run(f))
}

func run(f flags) error {
	level := slog.LevelInfo
	if f.Debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	// Messages of client-go about a VM's lost connections are useful only for debugging.
	libraries := slog.LevelError
	if f.Debug {
		libraries = slog.LevelInfo
	}
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: libraries})))

	unlock, err := lock(f.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	if f.TokenFile == "" {
		f.TokenFile = filepath.Join(f.Dir, "token")
	}
	token, err := readToken(f.TokenFile)
	if err != nil {
		return err
	}
	// Listen before any VM runs: the address may be in use.
	listener, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer listener.Close()

	clk := clock.RealClock{}
	guests := guest.New(clk)
	defer guests.Close()
	machines, err := realVMs(f)
	if err != nil {
		return err
	}
	defer machines.Close()
	c, err := cloud.Open(f.Dir, localcloud.Settings{
		CreateTime:   localcloud.Duration(f.CreateTime),
		BootTime:     localcloud.Duration(f.BootTime),
		ShutdownTime: localcloud.Duration(f.ShutdownTime),
	}, guests, machines, clk, log)
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go c.Run(ctx)
	return serve(ctx, listener, api.New(c, token, clk, log), log)
}

// realVMs returns the real VMs with the images of the folder, or without any image.
func realVMs(f flags) (*real.Machines, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o := real.Options{Dir: filepath.Join(f.Dir, "machines"), Hypervisors: hypervisor.All(hypervisor.Guard{Path: self})}
	if f.RealVMs != "" {
		o.Images, o.Mirror = filepath.Join(f.RealVMs, "images"), filepath.Join(f.RealVMs, "mirror")
	}
	return real.New(o), nil
}

// serve answers calls until the context ends, and then completes the calls in progress.
func serve(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	stopped := make(chan error, 1)
	go func() { //nolint:gosec // The context has ended by then.
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stopped <- srv.Shutdown(grace)
	}()
	log.Info("local cloud is ready", "endpoint", "http://"+l.Addr().String())
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}
