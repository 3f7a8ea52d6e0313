// Package localplane connects to a local control plane that drover-cluster started: its API servers and its
// local cloud.
package localplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/internal/localcloud"
)

// Limits are the flags of "drover-cluster up" with the limits of Crossplane that docs/install.md recommends.
var Limits = []string{"--circuit-breaker-burst=1000", "--circuit-breaker-refill-rate=50", "--max-concurrent-reconciles=8"}

// Status is the output of "drover-cluster status -o json".
type Status struct {
	Ready      bool `json:"ready"`
	Control    Cluster
	Target     *Cluster
	Registry   string
	Components []Component
	LocalCloud *LocalCloud `json:"localCloud"`
}

// A Cluster is one API server.
type Cluster struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	// AuditLog is empty unless the launcher writes one.
	AuditLog string `json:"auditLog"`
}

// A Component is one process of the instance.
type Component struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Metrics is the URL of its Prometheus metrics, if it serves any without
	// credentials.
	Metrics string `json:"metrics"`
}

// LocalCloud has the endpoint and the token of the local cloud.
type LocalCloud struct {
	Endpoint  string `json:"endpoint"`
	TokenFile string `json:"tokenFile"`
}

// Read returns the status of the instance in dir, from the launcher.
func Read(ctx context.Context, launcher, dir string) (*Status, error) {
	cmd := exec.CommandContext(ctx, launcher, "status", "--dir", dir, "-o", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	s := &Status{}
	if err := json.Unmarshal(out, s); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	if s.LocalCloud == nil {
		return nil, fmt.Errorf("%s: the instance has no local cloud", dir)
	}
	return s, nil
}

// Client returns a client of a cluster as its human user.
func (c Cluster) Client(o client.Options) (client.WithWatch, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.Burst = 200, 400
	return client.NewWithWatch(cfg, o)
}

// Token of the local cloud's account.
func (l LocalCloud) Token() (string, error) {
	b, err := os.ReadFile(l.TokenFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

// Client returns a client of the local cloud.
func (l LocalCloud) Client() (*localcloud.Client, error) {
	token, err := l.Token()
	if err != nil {
		return nil, err
	}
	return localcloud.NewClient(l.Endpoint, token)
}

// Credentials of the local cloud in the form that its ProviderConfig reads.
func (l LocalCloud) Credentials() ([]byte, error) {
	token, err := l.Token()
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"endpoint": l.Endpoint, "token": token})
}
