//go:build linux

// Command openstack runs an OpenStack from the packages of Debian for as long as another command takes:
//
//	openstack exec --dir DIR [--mirror URL] [--keep] -- COMMAND...
//
// The OpenStack has Keystone, Glance, Placement, Nova with its fake hypervisor, and Neutron. Its file system is built in a
// folder below DIR, by root. Its processes run in namespaces of their own: they end with this program, even if it is killed,
// and nothing on the computer or its networks reaches them except through the Unix sockets in the folder that the environment
// variable DROVER_OPENSTACK of COMMAND names. They write to a layer above the file system, which is deleted in the end.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Exec execCommand `cmd:"" help:"Build and start an OpenStack, run a command, and stop and delete the OpenStack."`
	Init initCommand `cmd:"" hidden:"" help:"The first process of the namespaces."`
}

func main() {
	// The first process of the namespaces ends with the thread that started it.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("openstack"), kong.Description("Runs an OpenStack from the packages of Debian for as long as another command takes."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := k.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() > 0 {
		fmt.Fprintln(os.Stderr, "openstack:", err)
		stop()
		os.Exit(failed.ExitCode())
	}
	k.FatalIfErrorf(err)
}
