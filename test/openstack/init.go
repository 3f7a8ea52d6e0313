//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// initCommand is the first process of the namespaces. Its parent kills it, and the kernel then ends the other processes.
type initCommand struct {
	Dir  string `required:"" type:"path"`
	Root string `required:"" type:"path"`
}

func (c *initCommand) Run(ctx context.Context) error {
	root, err := c.mount()
	if err != nil {
		return fmt.Errorf("cannot mount the file system: %w", err)
	}
	if err := addFiles(root); err != nil {
		return err
	}
	o := &openstack{root: root, logs: filepath.Join(c.Dir, "logs"), failed: make(chan error, len(stores)+1+len(services))}
	if err := o.start(ctx); err != nil {
		return err
	}
	if err := forward(filepath.Join(c.Dir, "state", "sockets")); err != nil {
		return err
	}
	fmt.Println(ready)
	return <-o.failed
}

// mount makes the file system of the services: the one with the packages below a layer that takes the writes.
func (c *initCommand) mount() (string, error) {
	state := filepath.Join(c.Dir, "state")
	root := filepath.Join(state, "merged")
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", c.Root, filepath.Join(state, "upper"), filepath.Join(state, "work"))
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("overlay", root, "overlay", 0, layers),
	); err != nil {
		return "", err
	}
	for _, m := range []struct {
		source, at, kind string
		flags            uintptr
		data             string
	}{
		{"proc", "proc", "proc", 0, ""},
		{"sysfs", "sys", "sysfs", 0, ""},
		{"tmpfs", "run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "dev", "tmpfs", 0, "mode=755"},
	} {
		if err := syscall.Mount(m.source, filepath.Join(root, m.at), m.kind, m.flags, m.data); err != nil {
			return "", fmt.Errorf("%s: %w", m.at, err)
		}
	}
	for _, device := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		at := filepath.Join(root, "dev", device)
		if err := os.WriteFile(at, nil, 0o666); err != nil {
			return "", err
		}
		if err := syscall.Mount("/dev/"+device, at, "", syscall.MS_BIND, ""); err != nil {
			return "", fmt.Errorf("/dev/%s: %w", device, err)
		}
	}
	for _, d := range []string{"dev/shm", "run/lock", "run/mysqld", "var/lib/glance/images", "var/lib/glance/tmp", "var/lib/nova/tmp", "var/lib/nova/instances", "var/lib/neutron/tmp"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o777); err != nil {
			return "", err
		}
		if err := os.Chmod(filepath.Join(root, d), 0o777); err != nil {
			return "", err
		}
	}
	if err := os.Symlink("/proc/self/fd", filepath.Join(root, "dev/fd")); err != nil {
		return "", err
	}
	return root, errors.Join(
		syscall.Sethostname([]byte(host)),
		os.WriteFile(filepath.Join(root, "etc/hosts"), []byte("127.0.0.1 localhost "+host+"\n"), 0o644),
	)
}

// host is the name of the computer that the services see, and of Nova's only host.
const host = "openstack"

// command returns a command that runs in the file system of the services.
func (o *openstack) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/usr/bin/env", args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: o.root}
	return cmd
}
