package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// layout names the files below a control plane's directory.
type layout struct{ dir string }

func (l layout) etcdData() string    { return filepath.Join(l.dir, "etcd") }
func (l layout) etcdSocket() string  { return filepath.Join(l.dir, "etcd.sock") }
func (l layout) peerSocket() string  { return filepath.Join(l.dir, "etcd-peer.sock") }
func (l layout) auditPolicy() string { return filepath.Join(l.dir, "audit-policy.yaml") }
func (l layout) auditLog() string    { return filepath.Join(l.dir, "audit.log") }
func (l layout) kubeconfig() string  { return filepath.Join(l.dir, "component.kubeconfig") }
func (l layout) pki(name string) string {
	return filepath.Join(l.dir, "pki", name)
}

// controllers are those that Drover's packages, kubelets and their pods need. Every other
// controller would cost memory and idle work.
var controllers = []string{
	// Any API server needs these to be usable.
	"garbage-collector", "namespace", "serviceaccount", "serviceaccount-token",
	"root-ca-certificate-publisher",
	// Crossplane uses aggregated roles.
	"clusterrole-aggregation",
	// TLS bootstrap of kubelets.
	"certificatesigningrequest-signing", "certificatesigningrequest-approving",
	"certificatesigningrequest-cleaner", "bootstrap-signer", "token-cleaner",
	// Nodes, and the pods on them.
	"node-lifecycle", "taint-eviction", "pod-garbage-collector",
	// Workloads that a drain must respect.
	"disruption", "replicaset", "deployment", "daemonset",
}

func apiserverArgs(l layout, port int) []string {
	return []string{
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--etcd-servers=unix://" + l.etcdSocket(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--allow-privileged",
		"--client-ca-file=" + l.pki("ca.crt"),
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + l.pki("sa.pub"),
		"--service-account-signing-key-file=" + l.pki("sa.key"),
	}
}

// auditArgs are the arguments of an API server that writes an audit log.
func auditArgs(l layout) []string {
	return []string{
		"--audit-policy-file=" + l.auditPolicy(),
		"--audit-log-path=" + l.auditLog(),
		// In MiB. A rotation would hide entries from a reader that follows the log.
		"--audit-log-maxsize=100000",
	}
}

func controllerManagerArgs(l layout) []string {
	names := make([]string, 0, len(controllers))
	for _, c := range controllers {
		names = append(names, c+"-controller")
	}
	return []string{
		"--kubeconfig=" + l.kubeconfig(),
		"--controllers=" + strings.Join(names, ","),
		"--secure-port=0",
		"--leader-elect=false",
		"--use-service-account-credentials=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--root-ca-file=" + l.pki("ca.crt"),
		"--cluster-signing-cert-file=" + l.pki("ca.crt"),
		"--cluster-signing-key-file=" + l.pki("ca.key"),
		"--service-account-private-key-file=" + l.pki("sa.key"),
	}
}

func schedulerArgs(l layout) []string {
	return []string{
		"--kubeconfig=" + l.kubeconfig(),
		"--secure-port=0",
		"--leader-elect=false",
	}
}
