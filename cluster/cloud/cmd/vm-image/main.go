// Command vm-image makes what real VMs of the local cloud need: their disk image, and the
// container images of their mirror.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/drover-dev/drover/cluster/cloud/internal/image"
	"github.com/drover-dev/drover/cluster/cloud/internal/mirror"
)

type cli struct {
	Build  buildCommand  `cmd:"" help:"Build the disk image from packages of Debian, unless it is there."`
	Mirror mirrorCommand `cmd:"" help:"Add a kubelet, or a container image with one static program, to a mirror."`
}

type buildCommand struct {
	Dir string `required:"" type:"path" help:"Folder of all images."`
}

func (c *buildCommand) Run(ctx context.Context) error { return image.Build(ctx, c.Dir, os.Stderr) }

type mirrorCommand struct {
	Dir     string `required:"" type:"path" help:"Folder of the mirror."`
	Release string `required:"" xor:"what" help:"Version of Kubernetes that the program is of, like v1.35.4."`
	Image   string `required:"" xor:"what" help:"Name of the image, like registry.k8s.io/pause:3.10."`
	Program string `arg:"" type:"existingfile" help:"The program, for Linux on amd64."`
}

func (c *mirrorCommand) Run() error {
	if c.Image != "" {
		return mirror.AddImage(c.Dir, c.Image, c.Program)
	}
	return mirror.AddRelease(c.Dir, c.Release, c.Program)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("vm-image"), kong.Description("Builds what real VMs of the local cloud boot and download."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
