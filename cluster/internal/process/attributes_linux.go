package process

import "syscall"

// childAttributes make a child die with us, and keep it from getting the signals
// of our terminal.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
