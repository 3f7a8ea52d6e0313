package localplane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	drover "github.com/drover-dev/drover"
	"github.com/drover-dev/drover/internal/kubectl/installation"
)

// Rights are the files, from the root of the repository, that are applied before the packages to a cluster that
// Drover runs in and that Machines join: the rights that provider-drover needs beyond those that Crossplane
// gives to every provider, the roles of users, and the admission policies with the rights that these require.
var Rights = []string{
	"package/provider-drover/rbac.yaml", TargetRights, "package/provider-drover/rbac-injected-identity.yaml",
	"package/provider-drover/rbac-users.yaml", "package/provider-drover/rbac-policies.yaml", ControlPolicies, TargetPolicies,
}

// ControlPolicies are the admission policies of a cluster that Drover runs in, and
// TargetPolicies those of a cluster that Machines join.
const (
	ControlPolicies = "package/policies/control-cluster.yaml"
	TargetPolicies  = "package/policies/target-cluster.yaml"
)

// TargetRights is for a cluster that Machines join.
const TargetRights = "package/provider-drover/rbac-target.yaml"

// ClientCertificateRights is for a cluster that approves no client certificates of kubelets.
const ClientCertificateRights = "package/provider-drover/rbac-target-client-certificates.yaml"

// RuntimeFile has the DeploymentRuntimeConfig of provider-drover.
const RuntimeFile = "package/provider-drover/runtime.yaml"

// arguments of provider-drover in a local control plane, beside the shipped ones: the Machines
// of the configuration default join the control cluster, and the API servers of all clusters
// have this one loopback address.
var arguments = []string{"--injected-identity-for=default", "--allow-target-networks=127.0.0.1/32"}

// Runtime applies the shipped DeploymentRuntimeConfig of provider-drover with the arguments of
// a local control plane. root is the folder of the repository.
func Runtime(ctx context.Context, c client.Client, root string) error {
	objs, err := read(filepath.Join(root, RuntimeFile))
	if err != nil {
		return err
	}
	for _, u := range objs {
		if u.GetKind() == "DeploymentRuntimeConfig" {
			if err := installation.ChangeArguments(u, func(shipped []string) []string { return append(shipped, arguments...) }); err != nil {
				return fmt.Errorf("%s: %w", RuntimeFile, err)
			}
		}
	}
	return apply(ctx, c, RuntimeFile, objs)
}

// Registry is the prefix of the names of packages that a local control plane serves from its
// own registry: the one that releases have by default.
const Registry = drover.Registry

// Version of the packages that the Makefile builds by default.
const Version = "v0.1.0"

// Packages are the packages that a user of the local cloud installs, by kind. The Configuration installs its
// dependencies.
var Packages = PackagesOf(Version)

// PackagesOf returns these packages in a version.
func PackagesOf(version string) [][2]string {
	return [][2]string{
		{"configuration", Registry + "/drover:" + version},
		{"provider", Registry + "/provider-local:" + version},
	}
}

// Install a package as "crossplane xpkg install" does, and wait until it is healthy.
// bin is the folder of the binaries. The arguments are further flags of "xpkg install".
func Install(ctx context.Context, bin, kubeconfig, kind, pkg string, args ...string) error {
	return InstallTo(ctx, io.Discard, bin, kubeconfig, kind, pkg, args...)
}

// InstallTo is Install that writes the progress to a writer as well, a line each.
func InstallTo(ctx context.Context, progress io.Writer, bin, kubeconfig, kind, pkg string, args ...string) error {
	return runTo(ctx, progress, filepath.Join(bin, "xpkg"), append([]string{"install", kind, pkg, "--kubeconfig", kubeconfig}, args...)...)
}

// endGrace is how long an interrupted command may take to report the cause of its wait.
const endGrace = 10 * time.Second

// Run runs a command whose output matters only if it fails. If ctx ends, the command is interrupted, so that it reports
// the cause of its wait.
func Run(ctx context.Context, name string, args ...string) error {
	return runTo(ctx, io.Discard, name, args...)
}

func runTo(ctx context.Context, progress io.Writer, name string, args ...string) error {
	out := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, name, args...)
	both := io.MultiWriter(out, progress)
	cmd.Stdout, cmd.Stderr = both, both
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endGrace
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// Account writes the Secret that the local cloud's ProviderConfig in the examples names, as a user does with
// the credentials of a cloud.
func Account(ctx context.Context, c client.Client, l LocalCloud) error {
	data, err := l.Credentials()
	if err != nil {
		return err
	}
	s := applycorev1.Secret("local-cloud", "crossplane-system").WithData(map[string][]byte{"credentials": data})
	return c.Apply(ctx, s, client.FieldOwner("kubectl"), client.ForceOwnership)
}

// Apply the objects of a YAML file, as kubectl apply --server-side does.
func Apply(ctx context.Context, c client.Client, file string) error {
	objs, err := read(file)
	if err != nil {
		return err
	}
	return apply(ctx, c, file, objs)
}

func read(file string) ([]*unstructured.Unstructured, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, doc := range strings.Split(string(b), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
	return out, nil
}

func apply(ctx context.Context, c client.Client, file string, objs []*unstructured.Unstructured) error {
	for _, u := range objs {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
