package kit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// TargetVersions returns the versions of Kubernetes that "make target-versions" builds, the oldest first.
// The version of the control cluster is not among them.
func TargetVersions() ([]string, error) {
	pins, err := filepath.Glob(filepath.Join(Root(), "cluster", "kubernetes", "versions", "*.mod"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range pins {
		v := strings.TrimSuffix(filepath.Base(p), ".mod")
		if !semver.IsValid(v) {
			return nil, fmt.Errorf("%s: the name of the file must be a version like v1.37.2", p)
		}
		out = append(out, v)
	}
	semver.Sort(out)
	return out, nil
}

// targetKube is the path of a link to the drover-kube of the target cluster.
func (p *Plane) targetKube() string { return filepath.Join(p.Dir, "target-kube") }

// linkTarget links targetKube to the drover-kube of a version.
func (p *Plane) linkTarget(version string) error {
	binary := filepath.Join(p.bin, "kubernetes", version, "drover-kube")
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("the control plane of Kubernetes %s is not built, run \"make target-versions\": %w", version, err)
	}
	next := p.targetKube() + ".next"
	if err := os.Symlink(binary, next); err != nil {
		return err
	}
	return os.Rename(next, p.targetKube())
}

// UpgradeTarget restarts the target cluster with another version of Kubernetes and the same data, and
// waits until it is ready. The Plane must have been started with Options.TargetVersion.
func (p *Plane) UpgradeTarget(ctx context.Context, version string) error {
	if err := p.linkTarget(version); err != nil {
		return err
	}
	return p.Launcher(ctx, "restart", "target")
}

// Version returns the version of the cluster's API server.
func (c *Cluster) Version() (string, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return "", err
	}
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return "", err
	}
	v, err := d.ServerVersion()
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}
