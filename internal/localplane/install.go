package localplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Rights are the files, from the root of the repository, with the rights that
// provider-drover needs beyond those that Crossplane gives to every provider, in a
// cluster that it runs in and that Machines join.
var Rights = []string{"package/provider-drover/rbac.yaml", TargetRights, "package/provider-drover/rbac-injected-identity.yaml"}

// TargetRights is for a cluster that Machines join.
const TargetRights = "package/provider-drover/rbac-target.yaml"

// ClientCertificateRights is for one that approves no client certificates of kubelets.
const ClientCertificateRights = "package/provider-drover/rbac-target-client-certificates.yaml"

// Packages are what a user of the local cloud installs, by kind. The
// configuration brings what it depends on.
var Packages = [][2]string{
	{"configuration", "xpkg.drover.dev/drover/drover:v0.1.0"},
	{"provider", "xpkg.drover.dev/drover/provider-local:v0.1.0"},
}

// Install a package as "crossplane xpkg install" does, and wait until it is healthy.
// bin is the folder of the binaries.
func Install(ctx context.Context, bin, kubeconfig, kind, pkg string) error {
	return Run(ctx, filepath.Join(bin, "xpkg"), "install", kind, pkg, "--kubeconfig", kubeconfig)
}

// Run a command whose output matters only when it fails.
func Run(ctx context.Context, name string, args ...string) error {
	out := &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// Account makes the Secret that the local cloud's ProviderConfig in the examples
// names, as a user does with the credentials of a cloud.
func Account(ctx context.Context, c client.Client, l LocalCloud) error {
	data, err := l.Credentials()
	if err != nil {
		return err
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "local-cloud"}}
	s.Data = map[string][]byte{"credentials": data}
	return client.IgnoreAlreadyExists(c.Create(ctx, s))
}

// Apply the objects of a YAML file, as kubectl apply --server-side does.
func Apply(ctx context.Context, c client.Client, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, doc := range strings.Split(string(b), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
