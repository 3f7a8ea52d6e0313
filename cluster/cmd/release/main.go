// Command release makes a release of Drover and publishes it; "make release" calls it.
//
//	release build --version v0.2.0 --registry registry.example.org/drover --bin amd64=DIR --bin arm64=DIR --key cosign.key --out DIR
//	release push --registry registry.example.org/drover DIR
package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/drover-dev/drover/cluster/internal/release"
	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

type cli struct {
	Build buildCommand `cmd:"" help:"Make a release in a folder."`
	Tools toolsCommand `cmd:"" help:"Make only the archives of kubectl drover and of the Terraform provider."`
	Push  pushCommand  `cmd:"" help:"Push a release to its registry, or continue to."`
}

type buildCommand struct {
	Root          string            `default:"." help:"The repository." placeholder:"DIR"`
	Bin           map[string]string `required:"" help:"Folder with the static binaries of an architecture; one for each." placeholder:"ARCH=DIR"`
	Only          []string          `help:"Packages to build; by default all." placeholder:"NAME"`
	Tool          map[string]string `help:"Folder with kubectl-drover and terraform-provider-drover of a platform, such as linux/amd64; one for each." placeholder:"OS/ARCH=DIR"`
	Demo          map[string]string `help:"Folder with bin and packages of the demo for an architecture; one for each." placeholder:"ARCH=DIR"`
	Image         []string          `help:"Static program of an image that is no package, whose name the image has; one for each architecture." placeholder:"FILE"`
	Downloads     string            `help:"URL of the folder that users download the files of the release from." placeholder:"URL"`
	Out           string            `required:"" help:"Folder of the release, which is replaced." placeholder:"DIR"`
	Version       string            `required:"" help:"Version of the release, vX.Y.Z." placeholder:"VERSION"`
	Registry      string            `required:"" help:"Registry and organization of the packages." placeholder:"PREFIX"`
	Key           string            `help:"Private key that signs the release: a file, or env://NAME. The password of a key of cosign is in COSIGN_PASSWORD." placeholder:"KEY" xor:"key" required:""`
	Unsigned      bool              `help:"Do not sign the release." xor:"key" required:""`
	AllowModified bool              `help:"Accept binaries that are not of one commit, or of a tree with changes that are not committed."`
}

func (c *buildCommand) Run(ctx context.Context) error {
	o := release.Options{
		Release: xpkg.Release{Registry: c.Registry, Version: c.Version},
		Root:    c.Root, Bin: c.Bin, Out: c.Out, Only: c.Only, Tools: c.Tool, Demo: c.Demo, Images: c.Image, Downloads: c.Downloads, AllowModified: c.AllowModified, Log: report,
	}
	var err error
	if o.Authorities, err = release.AuthoritiesVersion(); err != nil {
		return err
	}
	if c.Key != "" {
		if o.Signer, err = release.LoadSigner(c.Key); err != nil {
			return err
		}
	}
	return release.Build(ctx, o)
}

type toolsCommand struct {
	Root          string            `default:"." help:"The repository." placeholder:"DIR"`
	Tool          map[string]string `required:"" help:"Folder with kubectl-drover and terraform-provider-drover of a platform, such as linux/amd64; one for each." placeholder:"OS/ARCH=DIR"`
	Downloads     string            `required:"" help:"URL of the folder that users download the files from." placeholder:"URL"`
	Out           string            `required:"" help:"Folder of the archives, which is replaced." placeholder:"DIR"`
	Version       string            `required:"" help:"Version of the release, vX.Y.Z." placeholder:"VERSION"`
	Registry      string            `required:"" help:"Registry and organization of the packages." placeholder:"PREFIX"`
	AllowModified bool              `help:"Accept programs that are not all of one commit, or of a tree with changes that are not committed."`
}

func (c *toolsCommand) Run(ctx context.Context) error {
	return release.BuildTools(ctx, release.Options{
		Release: xpkg.Release{Registry: c.Registry, Version: c.Version},
		Root:    c.Root, Out: c.Out, Tools: c.Tool, Downloads: c.Downloads, AllowModified: c.AllowModified, Log: report,
	})
}

type pushCommand struct {
	Folder    string `arg:"" help:"Folder of the release."`
	Registry  string `required:"" help:"Registry and organization to push to: those that the release was built for." placeholder:"PREFIX"`
	Mirror    bool   `help:"Allow another registry: one that serves the packages for users who install them by their own names."`
	PlainHTTP bool   `help:"Allow a registry without TLS." name:"plain-http"`
}

func (c *pushCommand) Run(ctx context.Context) error {
	return release.Publish(ctx, release.PublishOptions{Folder: c.Folder, Registry: c.Registry, Mirror: c.Mirror, PlainHTTP: c.PlainHTTP, Log: report})
}

func report(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{},
		kong.Name("release"),
		kong.Description("Make a release of Drover and publish it."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	k.FatalIfErrorf(k.Run())
}
