// Command xpkg builds, pushes and installs Crossplane packages without Docker.
//
//	xpkg build --root . --bin .work/bin --out .work/packages --version v0.1.0 [NAME...]
//	xpkg push --registry 127.0.0.1:5000 FILE...
//	xpkg image --binary .work/bin/drover-karpenter registry.example.org/drover/drover-karpenter:v0.1.0
//	xpkg install configuration REGISTRY/drover:v0.1.0 --kubeconfig FILE
package main

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/install"
	"github.com/drover-dev/drover/cluster/internal/xpkg"
)

type cli struct {
	Build   buildCommand   `cmd:"" help:"Build the packages of the repository into NAME-VERSION.xpkg files."`
	Push    pushCommand    `cmd:"" help:"Push package files to a registry."`
	Image   imageCommand   `cmd:"" help:"Push an image of a static Go program to a registry, with the credentials of docker login."`
	Install installCommand `cmd:"" help:"Install a package and wait until it and what it depends on is healthy."`
}

type buildCommand struct {
	Root     string   `default:"." help:"The repository." placeholder:"DIR"`
	Bin      string   `default:".work/bin" help:"Folder with the static binaries of functions and providers." placeholder:"DIR"`
	Out      string   `default:".work/packages" help:"Folder of the package files." placeholder:"DIR"`
	Version  string   `default:"v0.1.0" help:"Version of the packages, vX.Y.Z." placeholder:"VERSION"`
	Registry string   `default:"${registry}" help:"Registry and organization that packages depend on each other by." placeholder:"PREFIX"`
	Names    []string `arg:"" optional:"" help:"Packages to build; all of them by default."`
}

func (c *buildCommand) Run(ctx context.Context) error {
	sources, err := xpkg.Sources(c.Root, c.Bin)
	if err != nil {
		return err
	}
	var known []string
	for _, s := range sources {
		known = append(known, s.Name)
	}
	for _, name := range c.Names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("package %q: there is none of that name, only %s", name, strings.Join(known, ", "))
		}
	}
	for _, s := range sources {
		if len(c.Names) > 0 && !slices.Contains(c.Names, s.Name) {
			continue
		}
		path, err := xpkg.BuildFile(ctx, s, xpkg.Release{Registry: c.Registry, Version: c.Version}, c.Out)
		if err != nil {
			return fmt.Errorf("build %s: %w", s.Name, err)
		}
		fmt.Println(path)
	}
	return nil
}

type pushCommand struct {
	Registry string   `required:"" help:"Registry to push to." placeholder:"HOST:PORT"`
	Files    []string `arg:"" help:"Package files, NAME-VERSION.xpkg."`
}

func (c *pushCommand) Run(ctx context.Context) error {
	for _, path := range c.Files {
		pushed, err := xpkg.Push(ctx, path, c.Registry)
		if err != nil {
			return fmt.Errorf("push %s: %w", path, err)
		}
		fmt.Println(pushed)
	}
	return nil
}

type imageCommand struct {
	Binary    string `required:"" help:"The program." placeholder:"FILE"`
	Reference string `arg:"" help:"Repository and tag."`
}

func (c *imageCommand) Run(ctx context.Context) error {
	pushed, err := xpkg.PushImage(ctx, c.Binary, c.Reference)
	if err != nil {
		return fmt.Errorf("push %s: %w", c.Reference, err)
	}
	fmt.Println(pushed)
	return nil
}

type installCommand struct {
	Kind       string        `arg:"" enum:"configuration,provider,function" help:"configuration, provider or function."`
	Package    string        `arg:"" help:"Reference of the package, as ${registry}/drover:v0.1.0."`
	Name       string        `arg:"" optional:"" help:"Name of the object; by default that of the repository."`
	Kubeconfig string        `required:"" env:"KUBECONFIG" help:"Kubeconfig of the cluster." placeholder:"FILE"`
	Timeout    time.Duration `default:"20m" help:"How long to wait. What it waits for is printed every 15 seconds."`
}

func (c *installCommand) Run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return err
	}
	kube, err := client.New(config, client.Options{Scheme: apply.Scheme()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := time.Now()
	return install.Run(ctx, kube, install.Package{Kind: c.Kind, Reference: c.Package, Name: c.Name}, func(message string) {
		fmt.Printf("%6.1fs  %s\n", time.Since(began).Seconds(), message)
	})
}

func main() {
	// Without a logger, controller-runtime prints a stack trace after 30 seconds.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	k := kong.Parse(&cli{},
		kong.Name("xpkg"),
		kong.Description("Build, push and install Crossplane packages without Docker."),
		kong.UsageOnError(),
		kong.Vars{"registry": xpkg.DefaultRegistry},
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	k.FatalIfErrorf(k.Run())
}
