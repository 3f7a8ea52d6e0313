// Command vm-image creates the files for real VMs of the local cloud: their disk images, and the
// content of their mirror.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/drover-dev/drover/cluster/cloud/internal/image"
	"github.com/drover-dev/drover/cluster/cloud/internal/mirror"
)

type cli struct {
	Build  buildCommand  `cmd:"" help:"Build the disk images from packages of Debian, unless they are there."`
	Mirror mirrorCommand `cmd:"" help:"Add a kubelet, network plugins, or a container image with one static program, to a mirror."`
}

type buildCommand struct {
	Dir   string   `required:"" type:"path" help:"Folder of all images."`
	Image []string `help:"Names of the images to build. Default: all."`
}

func (c *buildCommand) Run(ctx context.Context) error {
	all, err := image.DefinitionsOf(c.Image)
	if err != nil {
		return fmt.Errorf("--image: %w", err)
	}
	for _, d := range all {
		if err := d.Build(ctx, c.Dir, os.Stderr); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return nil
}

type mirrorCommand struct {
	Dir      string   `required:"" type:"path" help:"Folder of the mirror."`
	Release  string   `required:"" xor:"what" help:"Version of Kubernetes that the program is of, like v1.35.4."`
	Plugins  string   `required:"" xor:"what" help:"Version of the network plugins that the programs are, like v1.9.1."`
	Image    []string `required:"" xor:"what" help:"Names of the image with the program, like registry.k8s.io/pause:3.10."`
	Programs []string `arg:"" type:"existingfile" help:"The programs, for Linux on amd64."`
}

func (c *mirrorCommand) Run() error {
	if c.Plugins != "" {
		return mirror.AddPlugins(c.Dir, c.Plugins, c.Programs)
	}
	if len(c.Programs) != 1 {
		return fmt.Errorf("%d programs: only network plugins are several", len(c.Programs))
	}
	for _, i := range c.Image {
		if err := mirror.AddImage(c.Dir, i, c.Programs[0]); err != nil {
			return err
		}
	}
	if c.Release == "" {
		return nil
	}
	return mirror.AddRelease(c.Dir, c.Release, c.Programs[0])
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{}, kong.Name("vm-image"), kong.Description("Builds what real VMs of the local cloud boot and download."),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k.FatalIfErrorf(k.Run())
}
