// Package kube prepares, starts and completes one Kubernetes control plane, as kubeadm does.
package kube

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/drover-dev/drover/cluster/internal/certs"
	"github.com/drover-dev/drover/cluster/internal/files"
	"github.com/drover-dev/drover/cluster/internal/kubeconfig"
	"github.com/drover-dev/drover/cluster/internal/layout"
	"github.com/drover-dev/drover/cluster/internal/probe"
	"github.com/drover-dev/drover/cluster/internal/process"
)

// adminGroup is bound to cluster-admin. Unlike the rights of system:masters, the rights of this
// group can be revoked.
const adminGroup = "drover:cluster-admins"

// realVMs is the address at which the local cloud's real VMs reach this computer's loopback
// interface: localcloud.HostAddress.
var realVMs = net.IPv4(10, 200, 0, 2)

// A ControlPlane is one API server with its etcd, controllers and scheduler.
type ControlPlane struct {
	// Name is the component's name.
	Name string
	Dir  layout.Cluster
	Port int
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Audit is the level of the API server's audit log, empty for none.
	Audit string
}

// Server returns the URL of the API server.
func (k ControlPlane) Server() string { return fmt.Sprintf("https://127.0.0.1:%d", k.Port) }

// CA returns the certificate of the cluster's authority.
func (k ControlPlane) CA() ([]byte, error) { return os.ReadFile(k.Dir.PKI("ca.crt")) }

// Prepare creates missing certificates and keys, and the kubeconfigs.
func (k ControlPlane) Prepare(now time.Time) error {
	ca, err := k.authority(now)
	if err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	if !files.Exists(k.Dir.PKI("sa.key")) {
		pair, err := certs.SigningKey()
		if err != nil {
			return err
		}
		if err := write(pair, k.Dir.PKI("sa.pub"), k.Dir.PKI("sa.key")); err != nil {
			return err
		}
	}
	if !files.Exists(k.Dir.PKI("apiserver.key")) {
		pair, err := ca.Server("kube-apiserver",
			[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
			[]net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1), realVMs}, now)
		if err != nil {
			return err
		}
		if err := write(pair, k.Dir.PKI("apiserver.crt"), k.Dir.PKI("apiserver.key")); err != nil {
			return err
		}
	}
	for _, u := range []struct{ path, user, group string }{
		{k.Dir.ComponentKubeconfig(), "drover-control-plane", "system:masters"},
		{k.Kubeconfig, "drover-admin", adminGroup},
	} {
		pair, err := ca.Client(u.user, []string{u.group}, nil, now)
		if err != nil {
			return err
		}
		if err := kubeconfig.Write(u.path, kubeconfig.Certificate(k.Server(), ca.Cert, u.user, pair)); err != nil {
			return err
		}
	}
	return nil
}

func (k ControlPlane) authority(now time.Time) (*certs.Authority, error) {
	cert, key := k.Dir.PKI("ca.crt"), k.Dir.PKI("ca.key")
	// The key is written last, because its existence marks the pair as complete.
	if !files.Exists(key) {
		ca, err := certs.NewAuthority("kubernetes", now)
		if err != nil {
			return nil, err
		}
		return ca, write(ca.Pair, cert, key)
	}
	var pair certs.Pair
	var err error
	if pair.Cert, err = os.ReadFile(cert); err != nil {
		return nil, err
	}
	if pair.Key, err = os.ReadFile(key); err != nil {
		return nil, err
	}
	return certs.LoadAuthority(pair)
}

func write(pair certs.Pair, cert, key string) error {
	if err := files.Write(cert, pair.Cert); err != nil {
		return err
	}
	return files.Write(key, pair.Key)
}

// Spec returns how to run the process, after Prepare.
func (k ControlPlane) Spec(binary, log string) (process.Spec, error) {
	config, err := k.Config()
	if err != nil {
		return process.Spec{}, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return process.Spec{}, err
	}
	args := []string{"serve", "--dir", string(k.Dir), "--port", fmt.Sprint(k.Port)}
	if k.Audit != "" {
		args = append(args, "--audit", k.Audit)
	}
	return process.Spec{
		Name: k.Name,
		Path: binary,
		Args: args,
		// An API server allocates a lot of short-lived memory. With Go's default, the small heap of
		// a small cluster is collected all the time, which takes a quarter of its CPU.
		Env:   []string{"GOGC=400"},
		Dir:   string(k.Dir),
		Log:   log,
		Ready: func(ctx context.Context) error { return probe.HTTP(ctx, client, k.Server()+"/readyz") },
	}, nil
}

// Config returns a client configuration with all rights, to complete the cluster as kubeadm does.
func (k ControlPlane) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.Dir.ComponentKubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	return config, nil
}
