package hypervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// GuardCommand is the first argument with which a program calls RunGuard.
const GuardCommand = "guard"

// A Guard is a program that calls RunGuard when its first argument is GuardCommand. It stands
// between the daemon and each VM, so that no process of a VM outlives the daemon, however the
// daemon ends: User Mode Linux is many processes, and those whose kernel is killed live on.
type Guard struct{ Path string }

// A Machine is a VM that was started.
type Machine struct {
	lifeline io.Closer
	stop     sync.Once
	done     chan struct{}
	err      error
}

// Stop ends the VM as pulling its plug does, and waits until nothing of it runs.
func (m *Machine) Stop() {
	m.stop.Do(func() { _ = m.lifeline.Close() })
	<-m.done
}

// Done is closed when nothing of the VM runs any more.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Err is how the VM ended, once Done is closed.
func (m *Machine) Err() error { return m.err }

// Start runs a command in a folder, and copies what it writes to console.
func (g Guard) Start(dir string, env, argv []string, console io.Writer) (*Machine, error) {
	cmd := exec.Command(g.Path, append([]string{GuardCommand}, argv...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = console, console
	// A session of its own: what kills the daemon's group must leave the guard to clean up.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", argv[0], err)
	}
	m := &Machine{lifeline: lifeline, done: make(chan struct{})}
	go func() {
		m.err = cmd.Wait()
		close(m.done)
	}()
	return m, nil
}

// RunGuard runs a command and all that it starts until the command or the caller's end of
// standard input ends. It returns the exit code of its process.
func RunGuard(argv []string) int {
	// A terminal's or a supervisor's signal is meant for the daemon.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		kill()
	}()
	err := cmd.Wait()
	kill()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	default:
		return 1
	}
}
