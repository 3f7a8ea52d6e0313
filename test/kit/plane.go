package kit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/localplane"
	"github.com/drover-dev/drover/test/patience"
)

// Environment variables that the Makefile sets.
const (
	envBin      = "DROVER_BIN"
	envPackages = "DROVER_PACKAGES"
	envPrevious = "DROVER_PREVIOUS"
	envKeep     = "DROVER_KEEP"
)

// Versions of the packages of this tree, and of the previous release.
const (
	Version         = localplane.Version
	PreviousVersion = "v0.0.9"
)

// HasPrevious reports whether the packages of the previous release were built.
func HasPrevious() bool { return os.Getenv(envPrevious) != "" }

// A Plane is a local control plane with Drover installed.
type Plane struct {
	Dir        string
	Kubeconfig string
	Client     client.WithWatch
	Cloud      *localcloud.Client
	LocalCloud localplane.LocalCloud

	// Control is the cluster that Drover runs in. Target is the separate cluster that Machines can
	// join, nil without Options.Target.
	Control, Target *Cluster

	// Witness of the run, nil without Options.Witness.
	Witness *Witness

	// laterFleet has the Machines of Throughout. The first call makes it.
	laterOnce  sync.Once
	laterFleet Fleet
	laterErr   error

	bin, packages string
	// version of Drover that Install installs.
	version string
}

// Limits of Crossplane that docs/install.md recommends.
var Limits = localplane.Limits

// Options of a Plane.
type Options struct {
	// Args are passed to "drover-cluster up".
	Args []string
	// Target requests a separate target cluster.
	Target bool
	// TargetVersion is the version of Kubernetes of the target cluster, one of TargetVersions. The
	// default is that of the control cluster.
	TargetVersion string
	// CloudOf is another Plane whose local cloud and target cluster this one shares, as a second
	// control cluster of the same account. Nil means that this Plane has its own.
	CloudOf *Plane
	// Audit requests audit logs with the bodies of all writes: see Journal.
	Audit bool
	// Witness requests a Witness: see Leaks.
	Witness bool
	// Previous installs the previous release. The registry has the packages of both releases.
	Previous bool
	// Bare leaves the control plane without Drover.
	Bare bool
	// Fresh requests an installation of its own. Without it, the Plane can be a copy of one that was installed before:
	// see copyInstalled. Planes that share a cloud, have the previous release or are Bare are never copies.
	Fresh bool
	// Before is called on the empty control plane, before Drover is installed.
	Before func(ctx context.Context, p *Plane) error
}

func (o Options) mayBeCopy() bool {
	return !o.Fresh && !o.Bare && !o.Previous && o.CloudOf == nil && o.Before == nil
}

// Up starts a separate local control plane in a new directory, and installs Drover from its
// packages.
func Up(ctx context.Context, o Options) (*Plane, error) {
	p := &Plane{bin: os.Getenv(envBin), packages: os.Getenv(envPackages), version: Version}
	if p.bin == "" || p.packages == "" {
		return nil, fmt.Errorf("%s and %s must name the folders of binaries and packages: run the tests with make", envBin, envPackages)
	}
	// Install reads files of the repository. If there is no repository, fail before anything is
	// started.
	if _, err := root(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "drover-")
	if err != nil {
		return nil, err
	}
	p.Dir = dir
	if o.Previous {
		p.version = PreviousVersion
		if p.packages, err = both(dir, p.packages, os.Getenv(envPrevious)); err != nil {
			return p, err
		}
	}
	if o.mayBeCopy() {
		if err := p.copyInstalled(ctx); err != nil {
			return p, err
		}
	}
	args := append([]string{"up", "--bin", p.bin, "--packages", p.packages}, o.Args...)
	args = append(args, realVMArgs()...)
	if o.Target {
		args = append(args, "--target")
	}
	if o.TargetVersion != "" {
		if err := p.linkTarget(o.TargetVersion); err != nil {
			return p, err
		}
		args = append(args, "--target-kube="+p.targetKube())
	}
	if o.Audit || o.Witness {
		args = append(args, "--audit="+auditLevel)
	}
	if err := p.Launcher(ctx, args...); err != nil {
		return p, err
	}
	status, err := p.Status(ctx)
	if err != nil {
		return p, err
	}
	p.Kubeconfig, p.LocalCloud = status.Control.Kubeconfig, *status.LocalCloud
	if p.Control, err = newCluster(status.Control); err != nil {
		return p, err
	}
	p.Client = p.Control.Client
	if status.Target != nil {
		if p.Target, err = newCluster(*status.Target); err != nil {
			return p, err
		}
		if err := p.Target.prepare(ctx); err != nil {
			return p, err
		}
	}
	if o.CloudOf != nil {
		p.LocalCloud, p.Target = o.CloudOf.LocalCloud, o.CloudOf.Target
	}
	if o.Witness {
		if p.Witness, err = newWitness(ctx, p); err != nil {
			return p, err
		}
	}
	if p.Cloud, err = p.LocalCloud.Client(); err != nil {
		return p, err
	}
	if o.Before != nil {
		if err := o.Before(ctx, p); err != nil {
			return p, err
		}
	}
	if o.Bare {
		return p, nil
	}
	return p, p.Install(ctx)
}

// Down stops the control plane and deletes everything that it created. If DROVER_KEEP is set,
// everything keeps running for inspection.
func (p *Plane) Down() {
	if p == nil || p.Dir == "" {
		return
	}
	if os.Getenv(envKeep) != "" {
		fmt.Fprintf(os.Stderr, "kept: %s down --dir %s --purge ends it\n", p.launcher(), p.Dir)
		return
	}
	if err := p.Launcher(context.Background(), "down", "--purge"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = os.RemoveAll(p.Dir)
}

// accountFiles are the files, from the root of the repository, that name the account of the local cloud.
var accountFiles = []string{"examples/local/providerconfig.yaml", "examples/local/clusterproviderconfig.yaml"}

// Install Drover and the local cloud's provider by the steps of the README. Where they are installed already, it changes
// nothing but the account, and waits until they are healthy.
func (p *Plane) Install(ctx context.Context) error {
	for _, file := range localplane.Rights {
		if err := localplane.Apply(ctx, p.Client, filepath.Join(Root(), file)); err != nil {
			return err
		}
	}
	if err := localplane.Runtime(ctx, p.Client, Root()); err != nil {
		return err
	}
	for _, pkg := range localplane.PackagesOf(p.version) {
		if err := localplane.Install(ctx, p.bin, p.Kubeconfig, pkg[0], pkg[1], patience.Flag()); err != nil {
			return err
		}
	}
	if err := localplane.Account(ctx, p.Client, p.LocalCloud); err != nil {
		return err
	}
	for _, file := range accountFiles {
		if err := localplane.Apply(ctx, p.Client, filepath.Join(Root(), file)); err != nil {
			return err
		}
	}
	return nil
}

// InstallPackage installs a package of Drover like "crossplane xpkg install": by its kind and its
// name without the version.
func (p *Plane) InstallPackage(ctx context.Context, kind, name string) error {
	return p.InstallVersion(ctx, kind, name, p.version)
}

// InstallVersion installs a version of a package like "crossplane xpkg update", and waits until
// it is healthy.
func (p *Plane) InstallVersion(ctx context.Context, kind, name, version string) error {
	return localplane.Install(ctx, p.bin, p.Kubeconfig, kind, localplane.Registry+"/"+name+":"+version, patience.Flag())
}

// both returns a new folder with the packages of the given folders.
func both(dir string, folders ...string) (string, error) {
	to := filepath.Join(dir, "packages-of-both")
	if err := os.Mkdir(to, 0o700); err != nil {
		return "", err
	}
	for _, from := range folders {
		files, err := filepath.Glob(filepath.Join(from, "*.xpkg"))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("no packages in %q: run the tests with make: %w", from, err)
		}
		for _, f := range files {
			if err := os.Symlink(f, filepath.Join(to, filepath.Base(f))); err != nil {
				return "", err
			}
		}
	}
	return to, nil
}

// Status of the control plane's processes.
func (p *Plane) Status(ctx context.Context) (*localplane.Status, error) {
	return localplane.Read(ctx, p.launcher(), p.Dir)
}

// Launcher runs drover-cluster for this control plane.
func (p *Plane) Launcher(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience.Limit())
	defer cancel()
	return localplane.Run(ctx, p.launcher(), append([]string{args[0], "--dir", p.Dir}, args[1:]...)...)
}

// PID of a component's process.
func (p *Plane) PID(ctx context.Context, component string) (int, error) {
	s, err := p.Status(ctx)
	if err != nil {
		return 0, err
	}
	for _, c := range s.Components {
		if c.Name == component && c.PID > 0 {
			return c.PID, nil
		}
	}
	return 0, fmt.Errorf("component %s does not run", component)
}

// Kubectl runs kubectl as the human user, and returns its output, both of stdout and stderr. A command that waits longer than
// a test may, such as for a deletion that is held, is ended.
func (p *Plane) Kubectl(t testing.TB, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "drover-kube"), append([]string{"kubectl", "--kubeconfig", p.Kubeconfig}, args...)...)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		err = fmt.Errorf("it did not end: %w", ctx.Err())
	}
	return string(out), err
}

func (p *Plane) launcher() string { return filepath.Join(p.bin, "drover-cluster") }

// Root is the folder of the repository. It panics if the working directory is not in a
// repository.
func Root() string {
	dir, err := root()
	if err != nil {
		panic(err)
	}
	return dir
}

func root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "crossplane.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no crossplane.yaml in %s or above: run it in Drover's repository", start)
		}
	}
}

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, machinev1alpha1.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// KeepLogs copies the logs of a failed run to a folder that is kept, and prints its path.
func (p *Plane) KeepLogs() {
	to := filepath.Join(Root(), ".work", "failed", filepath.Base(p.Dir))
	if err := os.CopyFS(to, os.DirFS(filepath.Join(p.Dir, "logs"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Fprintf(os.Stderr, "the logs of the run are in %s\n", to)
}
