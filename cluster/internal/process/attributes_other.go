//go:build !linux

package process

import "syscall"

// Only Linux can tie a child's life to ours.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
