// Command demo shows Drover's main job on a local control plane: it starts one, installs the
// packages, applies the examples, and shows the Machines until all have a Node. In a demo
// that runs, it causes faults of the local cloud.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/render"
	"github.com/drover-dev/drover/internal/localplane"
)

// errInterrupted is the result of a demo that the user interrupted. Its consequences are printed before.
var errInterrupted = errors.New("interrupted")

// exitInterrupted is the exit code of a shell's command that SIGINT ended.
const exitInterrupted = 130

func main() {
	path := flag.String("launcher", ".work/bin/drover-cluster", "the launcher of the local control plane; the other binaries are beside it")
	dir := flag.String("dir", ".work/cluster", "the folder of the local control plane, which is started unless it runs")
	packages := flag.String("packages", ".work/packages", "the folder of the packages")
	root := flag.String("root", ".", "the folder of the repository, whose files are applied")
	realVMs := flag.String("real-vms", "", "the folder of the local cloud's real VMs: let real machines join, run a pod each, roll and go")
	breaks := flag.Bool("break", false, "cause a fault of the local cloud of a demo that runs")
	fault := flag.String("fault", "", "the fault of --break: a name or a number, or none to end all faults; without it the menu is shown")
	keep := flag.Bool("keep", false, "when the demo is complete, wait for Ctrl-C, and then stop the control plane")
	timeout := flag.Duration("timeout", 30*time.Minute, "how long to wait until all Nodes are Ready")
	flag.Parse()
	// Without a logger, controller-runtime prints a stack trace after 30 seconds.
	log.SetLogger(logr.Discard())

	if *breaks {
		// The default action of Ctrl-C ends the menu.
		exit(runBreak(context.Background(), *path, *dir, *fault))
	}
	exit(demo(launcher{path: *path, dir: *dir, packages: *packages, realVMs: *realVMs, keep: *keep, out: os.Stdout}, *root, *timeout))
}

// demo starts the control plane and shows Drover in it, until the timeout or an interrupt.
func demo(l launcher, root string, timeout time.Duration) error {
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second interrupt ends the process at once.
	context.AfterFunc(interrupted, stop)
	ctx, cancel := context.WithTimeout(interrupted, timeout)
	defer cancel()
	return l.inControlPlane(ctx, interrupted, filepath.Dir(l.path), func(ctx context.Context) error { return run(ctx, l, root) })
}

// exit ends the process with the exit code of a result, and prints an error.
func exit(err error) {
	switch {
	case errors.Is(err, errInterrupted):
		os.Exit(exitInterrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run installs the packages, applies the examples, and shows the Machines until all have a Node.
func run(ctx context.Context, l launcher, root string) error {
	bin := filepath.Dir(l.path)
	plane, err := localplane.Read(ctx, l.path, l.dir)
	if err != nil {
		return err
	}
	c, err := plane.Control.Client(client.Options{Scheme: scheme()})
	if err != nil {
		return err
	}
	show := newSteps(os.Stdout, installationSteps(l.realVMs != ""))
	defer show.end()
	for _, f := range localplane.Rights {
		if err := apply(ctx, c, show, filepath.Join(root, f)); err != nil {
			return err
		}
	}
	if err := localplane.Runtime(ctx, c, root); err != nil {
		return err
	}
	for _, p := range localplane.Packages {
		show.next("installing %s %s", p[0], p[1])
		if err := localplane.InstallTo(ctx, show.waits(), bin, plane.Control.Kubeconfig, p[0], p[1]); err != nil {
			return err
		}
	}
	if err := localplane.Account(ctx, c, *plane.LocalCloud); err != nil {
		return err
	}
	if err := applyLocal(ctx, c, show, root, "providerconfig", "clusterproviderconfig"); err != nil {
		return err
	}
	if l.realVMs != "" {
		return runReal(ctx, c, plane, show, root, os.Stdout)
	}
	if err := applyLocal(ctx, c, show, root, "machineclass", "machinedeployment"); err != nil {
		return err
	}
	show.end()
	if err := follow(ctx, c, os.Stdout); err != nil {
		return err
	}
	return whatNext(os.Stdout, bin, plane.Control.Kubeconfig)
}

// runBreak causes a fault of the local cloud. Only a terminal is asked for one.
func runBreak(ctx context.Context, launcher, dir, fault string) error {
	plane, err := localplane.Read(ctx, launcher, dir)
	if err != nil {
		return fmt.Errorf("no demo runs, start it with make demo: %w", err)
	}
	cloud, err := plane.LocalCloud.Client()
	if err != nil {
		return err
	}
	var in io.Reader
	if render.IsTerminal(os.Stdin) {
		in = os.Stdin
	}
	return breakDemo(ctx, cloud, fault, in, os.Stdout)
}

// installationSteps counts the files that are applied and the packages that are installed.
func installationSteps(realVMs bool) int {
	const configurations, examples = 2, 2
	n := len(localplane.Rights) + len(localplane.Packages) + configurations
	if realVMs {
		return n + len(realExamples)
	}
	return n + examples
}

// applyLocal applies examples of the local cloud.
func applyLocal(ctx context.Context, c client.Client, show *steps, root string, names ...string) error {
	for _, f := range names {
		if err := apply(ctx, c, show, filepath.Join(root, "examples", "local", f+".yaml")); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, c client.Client, show *steps, file string) error {
	show.next("applying %s", file)
	return localplane.Apply(ctx, c, file)
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme, machinev1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}
