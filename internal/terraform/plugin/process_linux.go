package plugin

import (
	"os/exec"
	"syscall"
)

// endWithParent has a provider killed if the controller is killed: no other process would end it.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
