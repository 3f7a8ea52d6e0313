package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A child is the supervisor that this process started. The zero child is that of another process.
type child struct {
	process *os.Process
	// ended receives the result of the process when it ends.
	ended <-chan error
}

func start(cmd *exec.Cmd) (child, error) {
	if err := cmd.Start(); err != nil {
		return child{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return child{process: cmd.Process, ended: ended}, nil
}

// stop stops the process, and returns when it has ended. It signals the process and does not use its socket: a
// supervisor that has just started does not listen yet, and would start all components. It returns an error if the
// process still runs after the timeout.
func (c child) stop(timeout time.Duration) error {
	if err := c.process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	select {
	case <-c.ended: //nolint:errcheck // The exit status does not matter.
		return nil
	case <-time.After(timeout):
		return fmt.Errorf("the supervisor (process %d) still runs after %s", c.process.Pid, timeout)
	}
}
