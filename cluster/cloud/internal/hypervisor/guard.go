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

// A Guard is a program that calls RunGuard if its first argument is GuardCommand. It runs between
// the daemon and each VM, so that no process of a VM outlives the daemon, even if the daemon is
// killed: User Mode Linux has many processes, and they survive the death of their kernel.
type Guard struct{ Path string }

// A Machine is a VM that was started.
type Machine struct {
	lifeline io.Closer
	stop     sync.Once
	done     chan struct{}
	err      error
}

// Stop ends the VM without a shutdown, and waits until all its processes have ended.
func (m *Machine) Stop() {
	m.stop.Do(func() { _ = m.lifeline.Close() })
	<-m.done
}

// Done is closed when all processes of the VM have ended.
func (m *Machine) Done() <-chan struct{} { return m.done }

// Err is the result of the VM, once Done is closed.
func (m *Machine) Err() error { return m.err }

// Start runs a command in a folder, and copies its output to console.
func (g Guard) Start(dir string, env, argv []string, console io.Writer) (*Machine, error) {
	cmd := exec.Command(g.Path, append([]string{GuardCommand}, argv...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = console, console
	// A session of its own: if the daemon's process group is killed, the guard must survive to
	// clean up.
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

// RunGuard runs a command until it ends, or until the caller closes standard input. It then kills
// all processes that the command started. It returns the exit code for its own process.
func RunGuard(argv []string) int {
	// Signals of a terminal or a supervisor are meant for the daemon.
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
