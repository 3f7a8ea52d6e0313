//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// env is the variable with the folder of the sockets, one for each service of the catalog: see services.
const env = "DROVER_OPENSTACK"

// stopTime is how long a command may take to clean up after an interrupt.
const stopTime = 10 * time.Minute

type execCommand struct {
	Dir     string   `required:"" type:"path" help:"Folder for the file system, the logs and the sockets. It is deleted in the end."`
	Mirror  string   `help:"Mirror of Debian, like http://deb.debian.org/debian. Default: the public mirrors, with security updates."`
	Keep    bool     `help:"Keep the file system with the packages for the next run, and the logs of this one."`
	Command []string `arg:"" passthrough:"" help:"Command to run."`
}

// Run returns the error of the command.
func (c *execCommand) Run(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("only root can build and start the OpenStack: its packages are installed into a file system of their own, and its processes run in namespaces")
	}
	root := filepath.Join(c.Dir, "root")
	defer func() {
		if !c.Keep {
			err = errors.Join(err, os.RemoveAll(c.Dir))
		}
	}()
	log := os.Stderr
	began := time.Now()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	if err := build(ctx, root, c.Mirror, log); err != nil {
		return err
	}
	fmt.Fprintf(log, "openstack: the file system is there after %s\n", time.Since(began).Round(time.Second))
	s, err := start(ctx, c.Dir, root, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Fprintf(log, "openstack: ready after %s\n", time.Since(began).Round(time.Second))
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	commandContext, interrupt := context.WithCancel(ctx)
	defer interrupt()
	cmd := exec.CommandContext(commandContext, c.Command[0], c.Command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env+"="+s.sockets)
	// All processes of the command are interrupted once, whether a terminal or a signal asked for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = stopTime
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	select {
	case err := <-done:
		return err
	case err := <-s.ended:
		s.ended <- err
		interrupt()
		return errors.Join(fmt.Errorf("the OpenStack ended while the command ran: %w", err), <-done)
	}
}

// A stack is a running OpenStack.
type stack struct {
	init    *exec.Cmd
	state   string
	sockets string
	ended   chan error
}

// ready is the line that the first process of the namespaces prints once all services are up.
const ready = "ready"

// start starts the first process of the namespaces, and waits until the services are up.
func start(ctx context.Context, dir, root string, log io.Writer) (*stack, error) {
	state := filepath.Join(dir, "state")
	if err := os.RemoveAll(state); err != nil {
		return nil, err
	}
	s := &stack{state: state, sockets: filepath.Join(state, "sockets"), ended: make(chan error, 1)}
	for _, d := range []string{"upper", "work", "merged", "sockets"} {
		if err := os.MkdirAll(filepath.Join(state, d), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.init = exec.Command(self, "init", "--dir", dir, "--root", root)
	s.init.Stderr = log
	s.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		// The interrupt of a terminal ends the command first. The kernel ends all processes of the namespace with their first.
		Setpgid: true, Pdeathsig: syscall.SIGKILL,
	}
	out, err := s.init.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.init.Start(); err != nil {
		return nil, err
	}
	isUp := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) == ready {
				isUp <- true
			}
		}
		s.ended <- s.init.Wait()
	}()
	select {
	case <-isUp:
		return s, nil
	case err := <-s.ended:
		s.ended <- err
		return nil, errors.Join(fmt.Errorf("the OpenStack did not start: see %s", filepath.Join(dir, "logs")), err, s.stop())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.stop())
	}
}

// stop ends all processes of the namespaces, and deletes their files.
func (s *stack) stop() error {
	_ = s.init.Process.Kill()
	<-s.ended
	return os.RemoveAll(s.state)
}
