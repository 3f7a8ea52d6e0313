package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/drover-dev/drover/internal/localplane"
)

// stopTimeout is how long an interrupted start of the launcher, and then the launcher's command "down", may take.
const stopTimeout = 90 * time.Second

// A launcher is drover-cluster, and the folder of the instance that it runs.
type launcher struct {
	path, dir, packages string
	// realVMs is the folder of the local cloud's real VMs, empty for simulated ones.
	realVMs string
	// keep waits for an interrupt when the demo is complete, and then stops the control plane. In a container the
	// demo is the first process, at whose end all others end.
	keep bool
	out  io.Writer
}

// start starts the control plane with the limits that are recommended, and waits until it is ready. It reports
// whether the control plane did not run before.
func (l launcher) start(ctx context.Context, bin string) (started bool, err error) {
	started = exec.CommandContext(ctx, l.path, "status", "--dir", l.dir).Run() != nil
	args := append([]string{"up", "--dir", l.dir, "--bin", bin, "--packages", l.packages}, localplane.Limits...)
	if l.realVMs != "" {
		args = append(args, "--real-vms", l.realVMs)
	}
	return started, l.run(ctx, args...)
}

// stop stops the control plane and keeps its state.
func (l launcher) stop() error {
	// The context of the demo has ended.
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return l.run(ctx, "down", "--dir", l.dir)
}

// run runs a command of the launcher. If ctx ends, the launcher is interrupted, so that it stops the processes
// that it started.
func (l launcher) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, l.path, args...)
	cmd.Stdout, cmd.Stderr = l.out, l.out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = stopTimeout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args[:2], " "), err)
	}
	return nil
}

// inControlPlane starts the control plane and runs show in it. If the user interrupts before show has succeeded, a control
// plane that was started here is stopped. After any other error it is kept, so that the cause can be found.
func (l launcher) inControlPlane(ctx, interrupted context.Context, bin string, show func(context.Context) error) error {
	started, err := l.start(ctx, bin)
	ready := err == nil
	if ready {
		err = show(ctx)
	}
	switch {
	case err == nil && l.keep:
		fmt.Fprintln(l.out, "Ctrl-C stops everything.")
		<-interrupted.Done()
		return l.stop()
	case err == nil:
		return nil
	case interrupted.Err() == nil && !ready:
		return err
	case interrupted.Err() == nil:
		return fmt.Errorf("%w\nthe control plane is kept: make demo continues, and make demo-down deletes it", err)
	case !started:
		fmt.Fprintln(l.out, "\nInterrupted. The control plane ran before this command, and still runs: make demo-down stops it.")
		return errInterrupted
	}
	fmt.Fprintln(l.out, "\nInterrupted. The control plane is stopped; make demo continues, and make demo-down deletes its data.")
	if err := l.stop(); err != nil {
		return fmt.Errorf("stop the control plane: %w; make demo-down tries it again", err)
	}
	return errInterrupted
}
