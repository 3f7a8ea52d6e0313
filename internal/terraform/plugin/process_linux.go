package plugin

import (
	"os/exec"
	"syscall"
)

// endWithParent has a provider killed if the controller is: nobody would end it.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
