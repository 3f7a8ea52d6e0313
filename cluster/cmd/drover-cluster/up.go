package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/supervisor"
	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

const (
	// logTail is the number of lines of a log that an error shows.
	logTail = 20
	poll    = 50 * time.Millisecond
)

// runFlags are the options of the supervisor.
type runFlags struct {
	Bin                      string  `default:".work/bin" help:"Folder with the binaries." placeholder:"DIR"`
	Target                   bool    `help:"Start a second API server as a separate target cluster."`
	TargetKube               string  `type:"path" help:"The drover-kube of the target cluster, of another version of Kubernetes; only with --target. If the file or link is replaced, restart the component target." placeholder:"FILE"`
	CircuitBreakerBurst      float64 `help:"Crossplane's --circuit-breaker-burst; 0 is its default." placeholder:"N"`
	CircuitBreakerRefillRate float64 `help:"Crossplane's --circuit-breaker-refill-rate; 0 is its default." placeholder:"R"`
	MaxConcurrentReconciles  int     `help:"Crossplane's --max-concurrent-reconciles; 0 is its default." placeholder:"N"`
	RealVMs                  string  `name:"real-vms" type:"path" help:"Folder with the images and the mirror of the local cloud's real VMs, as make real-vms builds it." placeholder:"DIR"`
	Audit                    string  `default:"" enum:",Metadata,Request,RequestResponse" help:"Write an audit log of all writes to each API server, at this level." placeholder:"LEVEL"`
}

type upCommand struct {
	instance
	runFlags
	Packages string `default:".work/packages" help:"Folder with NAME-VERSION.xpkg files, which are pushed to the registry." placeholder:"DIR"`
}

func (c *upCommand) Run(ctx context.Context) error {
	began := time.Now()
	dir, client, err := c.open()
	if err != nil {
		return err
	}
	say := func(step, message string) {
		fmt.Printf("%6.1fs  %-12s %s\n", time.Since(began).Seconds(), step, message)
	}
	var own child
	if !client.Running() {
		if own, err = c.spawn(dir); err != nil {
			return err
		}
	}
	err = c.ready(ctx, dir, client, own, say)
	if own.process != nil && ctx.Err() != nil {
		fmt.Println("interrupted: stopping the control plane")
		return errors.Join(ctx.Err(), own.stop(downTimeout))
	}
	return err
}

// ready waits until the control plane is ready, and pushes the packages.
func (c *upCommand) ready(ctx context.Context, dir layout.Dir, client *supervisor.Client, own child, say func(step, message string)) error {
	if err := c.wait(ctx, dir, client, own.ended, say); err != nil {
		return err
	}
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if c.Target && status.Target == nil {
		return errors.New("--target: the control plane runs without a target cluster: run \"down\" first")
	}
	if !files.Exists(c.Packages) {
		say("packages", "left out: there is no "+c.Packages)
	} else if err := pushAll(ctx, c.Packages, status.Registry, say); err != nil {
		return err
	}
	fmt.Printf("\nkubeconfig: %s\n", status.Control.Kubeconfig)
	return nil
}

// spawn starts the supervisor in a session of its own, so that it outlives this process and its
// terminal.
func (c *upCommand) spawn(dir layout.Dir) (child, error) {
	bin, err := filepath.Abs(c.Bin)
	if err != nil {
		return child{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return child{}, err
	}
	if err := os.MkdirAll(dir.Logs(), 0o700); err != nil {
		return child{}, err
	}
	out, err := os.OpenFile(dir.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return child{}, err
	}
	defer out.Close()
	cmd := exec.Command(self, "supervise", "--dir", string(dir), "--bin", bin,
		fmt.Sprintf("--target=%t", c.Target),
		fmt.Sprintf("--circuit-breaker-burst=%g", c.CircuitBreakerBurst),
		fmt.Sprintf("--circuit-breaker-refill-rate=%g", c.CircuitBreakerRefillRate),
		fmt.Sprintf("--max-concurrent-reconciles=%d", c.MaxConcurrentReconciles),
		"--audit="+c.Audit)
	if c.TargetKube != "" {
		cmd.Args = append(cmd.Args, "--target-kube="+c.TargetKube)
	}
	if c.RealVMs != "" {
		cmd.Args = append(cmd.Args, "--real-vms="+c.RealVMs)
	}
	cmd.Dir = string(dir)
	cmd.Env = process.Environment()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return start(cmd)
}

// wait shows the progress of the start, and returns when the start has ended.
func (c *upCommand) wait(ctx context.Context, dir layout.Dir, client *supervisor.Client, died <-chan error, say func(step, message string)) error {
	var last supervisor.Event
	follow := func() error {
		return client.Follow(ctx, func(e supervisor.Event) {
			last = e
			if !e.Failed {
				say(e.Step, e.Message)
			}
		})
	}
	err := follow()
	for errors.Is(err, supervisor.ErrNotRunning) {
		select {
		case exit := <-died:
			return withLog(fmt.Errorf("the supervisor ended: %v", exit), dir.Log("supervisor")) //nolint:errorlint // Kong would exit with the supervisor's code.
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
		err = follow()
	}
	switch {
	case last.Ready:
		return nil
	case last.Failed:
		return withLog(fmt.Errorf("%s: %s", last.Step, last.Message), last.Log)
	}
	return withLog(fmt.Errorf("the supervisor ended before the control plane was ready (%w)", errors.Join(err, io.EOF)), dir.Log("supervisor"))
}

// withLog adds the end of a log to an error.
func withLog(err error, path string) error {
	tail := files.Tail(path, logTail)
	if len(tail) == 0 {
		return err
	}
	return fmt.Errorf("%w\nlog: %s\n%s", err, path, tail)
}

func pushAll(ctx context.Context, folder, registry string, say func(step, message string)) error {
	pushed, err := xpkg.PushFolder(ctx, folder, registry)
	for _, p := range pushed {
		say("packages", p.String())
	}
	return err
}

type superviseCommand struct {
	instance
	runFlags
}

func (c *superviseCommand) Run(ctx context.Context) error {
	dir, _, err := c.open()
	if err != nil {
		return err
	}
	return supervisor.Run(ctx, supervisor.Options{
		Dir: dir, Bin: c.Bin, Target: c.Target, TargetKube: c.TargetKube,
		CircuitBreakerBurst: c.CircuitBreakerBurst, CircuitBreakerRefillRate: c.CircuitBreakerRefillRate,
		MaxConcurrentReconciles: c.MaxConcurrentReconciles, RealVMs: c.RealVMs, Audit: c.Audit,
	}, log.New(os.Stderr, "", log.LstdFlags|log.Lmicroseconds))
}
