package process

import "syscall"

// childAttributes make the kernel kill a child when this process ends, and keep the signals of this
// process's terminal from the child.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
