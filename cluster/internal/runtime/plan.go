package runtime

import (
	"fmt"
	"path"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"

	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/drover-dev/drover/cluster/internal/crossplane"
	"github.com/drover-dev/drover/cluster/internal/layout"
)

// containerName is the container in a DeploymentRuntimeConfig that runs the package.
const containerName = "package-runtime"

// identity has the properties of a package revision that determine how its process is run.
type identity struct {
	// Component is the name of the process: the last part of the repository.
	Component string
	// Package is the name of the package object, and Revision the name of the revision.
	Package, Revision, UID string
	Function               bool
}

func identify(r pkgv1.PackageRevisionWithRuntime) (identity, error) {
	component, err := Component(r)
	if err != nil {
		return identity{}, err
	}
	_, function := r.(*pkgv1.FunctionRevision)
	return identity{
		Component: component,
		Package:   r.GetLabels()[pkgv1.LabelParentPackage],
		Revision:  r.GetName(),
		UID:       string(r.GetUID()),
		Function:  function,
	}, nil
}

// Component returns the name of the process of a package revision.
func Component(r pkgv1.PackageRevision) (string, error) {
	ref, err := name.ParseReference(r.GetSource(), name.StrictValidation)
	if err != nil {
		return "", fmt.Errorf("spec.image: %w", err)
	}
	return path.Base(ref.Context().RepositoryStr()), nil
}

// ports are the ports on 127.0.0.1 that a process listens on.
type ports struct{ GRPC, Metrics, Health int }

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// customization has the settings of a DeploymentRuntimeConfig that apply to a process outside the
// cluster.
type customization struct {
	ServiceAccount string
	Labels         map[string]string
	Annotations    map[string]string
	Args           []string
	Env            []string
}

// customize reads a DeploymentRuntimeConfig. It may be nil.
func customize(id identity, c *v1beta1.DeploymentRuntimeConfig) customization {
	out := customization{ServiceAccount: id.Revision}
	if c == nil {
		return out
	}
	if t := c.Spec.ServiceAccountTemplate; t != nil && t.Metadata != nil {
		if t.Metadata.Name != nil {
			out.ServiceAccount = *t.Metadata.Name
		}
		out.Labels, out.Annotations = t.Metadata.Labels, t.Metadata.Annotations
	}
	if t := c.Spec.DeploymentTemplate; t != nil && t.Spec != nil {
		for _, container := range t.Spec.Template.Spec.Containers {
			if container.Name == containerName {
				out.Args = container.Args
				out.Env = plainEnv(container.Env)
			}
		}
		if sa := t.Spec.Template.Spec.ServiceAccountName; sa != "" {
			out.ServiceAccount = sa
		}
	}
	return out
}

func plainEnv(vars []corev1.EnvVar) []string {
	var env []string
	for _, v := range vars {
		if v.ValueFrom == nil {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env
}

// environment returns the variables that Crossplane's own Deployment would give the package, and
// the addresses that separate processes of one computer.
func environment(id identity, c customization, p ports, dir layout.Dir) []string {
	server, client := tlsFolder(dir, id, "server"), tlsFolder(dir, id, "client")
	env := []string{
		"KUBECONFIG=" + dir.Package(id.Component, "kubeconfig"),
		"POD_NAMESPACE=" + crossplane.Namespace,
		"REVISION_NAME=" + id.Revision,
		"REVISION_UID=" + id.UID,
		"TLS_SERVER_CERTS_DIR=" + server,
	}
	if id.Function {
		env = append(env,
			"FUNCTION_NAME="+id.Package,
			"ADDRESS="+address(p.GRPC),
			"METRICS_ADDRESS="+address(p.Metrics))
	} else {
		env = append(env,
			"PROVIDER_NAME="+id.Package,
			"TLS_CLIENT_CERTS_DIR="+client,
			"WEBHOOK_TLS_CERT_DIR="+server,
			// The runner stops a process before it starts the next one of the component, and a
			// process ends with the supervisor, so two never overlap. A process that was killed
			// would leave a lease, and the next one would wait until it expires.
			"LEADER_ELECTION=false",
			"METRICS_BIND_ADDRESS="+address(p.Metrics),
			"HEALTH_PROBE_BIND_ADDRESS="+address(p.Health))
	}
	// If a name occurs twice, the later value is used.
	return append(env, c.Env...)
}

func tlsFolder(dir layout.Dir, id identity, use string) string {
	return dir.Package(id.Component, "tls", use)
}

// binaryPath returns a path that differs per revision.
func binaryPath(dir layout.Dir, id identity, entrypoint string) string {
	return dir.Package(id.Component, id.Revision, filepath.Base(entrypoint))
}
