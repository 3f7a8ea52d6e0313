// Package crossplane installs Crossplane core as its Helm chart does, and runs its
// two processes with the identities and rights that the chart gives them.
package crossplane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/cluster/internal/apply"
	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/kubeconfig"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/probe"
	"github.com/drover-dev/drover/cluster/internal/process"
	"github.com/drover-dev/drover/cluster/internal/token"
)

const (
	// Version is the version of Crossplane in go.mod.
	Version = "v2.4.2"
	// Namespace is the namespace of Crossplane and its packages.
	Namespace = "crossplane-system"
	// RootCASecret has the authority that signs the certificates of packages.
	RootCASecret = "crossplane-root-ca"

	serverSecret   = "crossplane-tls-server"
	clientSecret   = "crossplane-tls-client"
	webhookService = "crossplane-webhooks"

	core = "crossplane"
	rbac = "rbac-manager"
)

// Options of Crossplane core.
type Options struct {
	// Binary is the path of the crossplane binary.
	Binary string
	// Manifests is a copy of the folder "cluster" of the Crossplane module.
	Manifests string
	// WebhookPort, MetricsPort and HealthPort are bound by core.
	WebhookPort, MetricsPort, HealthPort int
	// CircuitBreakerBurst and CircuitBreakerRefillRate are core's flags of these names. 0 means
	// Crossplane's default.
	CircuitBreakerBurst, CircuitBreakerRefillRate float64
	// MaxConcurrentReconciles is core's flag of this name. 0 means Crossplane's default.
	MaxConcurrentReconciles int
}

// An Installation is Crossplane in one control cluster.
type Installation struct {
	Options
	Dir    layout.Dir
	Server string
	CA     []byte
	Client client.Client
}

// Install creates the objects of the chart, and the Service by which the API server reaches the
// webhooks of a process outside the cluster.
func (x Installation) Install(ctx context.Context) error {
	// In a Pod these folders are volumes. Crossplane cannot unpack a package without them.
	for _, cache := range []string{"xpkg", "xfn"} {
		if err := os.MkdirAll(x.Dir.Crossplane("cache", cache), 0o700); err != nil {
			return err
		}
	}
	objects, err := renderChart(os.DirFS(filepath.Join(x.Manifests, "charts", "crossplane")))
	if err != nil {
		return fmt.Errorf("chart of Crossplane: %w", err)
	}
	if err := apply.Object(ctx, x.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return err
	}
	for _, o := range objects {
		if err := apply.Object(ctx, x.Client, o); err != nil {
			return err
		}
	}
	return apply.Object(ctx, x.Client, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: webhookService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
}

// Identities writes the tokens and kubeconfigs of both processes, and renews the tokens until ctx
// ends.
func (x Installation) Identities(ctx context.Context, log func(error)) error {
	for _, sa := range []string{core, rbac} {
		path := x.Dir.Crossplane(sa + ".token")
		renew, err := token.Request(ctx, x.Client, Namespace, sa, path)
		if err != nil {
			return err
		}
		go token.Keep(ctx, x.Client, Namespace, sa, path, renew, log)
		if err := kubeconfig.Write(x.kubeconfig(sa), kubeconfig.TokenFile(x.Server, x.CA, sa, path)); err != nil {
			return err
		}
	}
	return nil
}

func (x Installation) kubeconfig(sa string) string { return x.Dir.Crossplane(sa + ".kubeconfig") }

func (x Installation) environment() []string {
	return []string{
		"KUBECONFIG=" + x.kubeconfig(core),
		"POD_NAMESPACE=" + Namespace,
		"POD_SERVICE_ACCOUNT=" + core,
		"LEADER_ELECTION=false",
		"TLS_SERVER_SECRET_NAME=" + serverSecret,
		"TLS_CLIENT_SECRET_NAME=" + clientSecret,
	}
}

// Core returns how to run "crossplane core start".
func (x Installation) Core(name, log string) process.Spec {
	args := []string{
		"core", "start",
		"--enable-dependency-version-upgrades",
		"--package-runtime=External",
		"--xpkg-cache-dir=" + x.Dir.Crossplane("cache", "xpkg"),
		"--xfn-cache-dir=" + x.Dir.Crossplane("cache", "xfn"),
		"--tls-server-certs-dir=" + x.Dir.Crossplane("tls", "server"),
		"--tls-client-certs-dir=" + x.Dir.Crossplane("tls", "client"),
		fmt.Sprintf("--webhook-port=%d", x.WebhookPort),
		fmt.Sprintf("--metrics-port=%d", x.MetricsPort),
		fmt.Sprintf("--health-probe-port=%d", x.HealthPort),
	}
	if x.CircuitBreakerBurst != 0 {
		args = append(args, fmt.Sprintf("--circuit-breaker-burst=%g", x.CircuitBreakerBurst))
	}
	if x.CircuitBreakerRefillRate != 0 {
		args = append(args, fmt.Sprintf("--circuit-breaker-refill-rate=%g", x.CircuitBreakerRefillRate))
	}
	if x.MaxConcurrentReconciles != 0 {
		args = append(args, fmt.Sprintf("--max-concurrent-reconciles=%d", x.MaxConcurrentReconciles))
	}
	return process.Spec{
		Name: name, Path: x.Binary, Args: args, Env: x.environment(), Log: log,
		Metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", x.MetricsPort),
		Ready: func(ctx context.Context) error {
			return probe.HTTP(ctx, http.DefaultClient, fmt.Sprintf("http://127.0.0.1:%d/readyz", x.HealthPort))
		},
	}
}

// RBAC returns how to run "crossplane rbac start". It has no endpoint that reports its readiness.
func (x Installation) RBAC(name, log string) process.Spec {
	return process.Spec{
		Name: name, Path: x.Binary, Log: log,
		Args: []string{"rbac", "start", "--provider-clusterrole=crossplane:allowed-provider-permissions"},
		Env:  []string{"KUBECONFIG=" + x.kubeconfig(rbac), "LEADER_ELECTION=false"},
	}
}

// ExtractTLS writes the certificates that Init created to files, as a Pod's volumes would.
func (x Installation) ExtractTLS(ctx context.Context) error {
	for folder, secret := range map[string]string{"server": serverSecret, "client": clientSecret} {
		s := &corev1.Secret{}
		if err := x.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: secret}, s); err != nil {
			return err
		}
		for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
			if len(s.Data[key]) == 0 {
				return fmt.Errorf("secret %s/%s: %s is empty", Namespace, secret, key)
			}
			if err := files.Write(x.Dir.Crossplane("tls", folder, key), s.Data[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
