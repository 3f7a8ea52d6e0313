//go:build !linux

package process

import "syscall"

// Only Linux can kill a child when its parent ends.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
