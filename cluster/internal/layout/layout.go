// Package layout names every file of one instance of the local control plane.
package layout

import (
	"fmt"
	"path/filepath"
)

// maxSocketPath is the longest path in sockaddr_un on Linux, without its final NUL.
const maxSocketPath = 107

// A Dir is the directory of one instance. Instances in different directories share nothing.
type Dir string

// New makes path absolute and checks that the sockets below it can be bound.
func New(path string) (Dir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	d := Dir(abs)
	longest := d.Target().EtcdPeerSocket()
	for _, s := range []string{d.Socket(), d.Kubernetes().EtcdPeerSocket()} {
		if len(s) > len(longest) {
			longest = s
		}
	}
	if len(longest) > maxSocketPath {
		return "", fmt.Errorf("--dir %s: path is too long by %d characters for the unix sockets below it", abs, len(longest)-maxSocketPath)
	}
	return d, nil
}

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// Kubeconfig is the user's kubeconfig: cluster-admin of the control cluster.
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// TargetKubeconfig is the user's kubeconfig: cluster-admin of the target cluster.
func (d Dir) TargetKubeconfig() string { return d.path("target.kubeconfig") }

// State is the file with the state that must survive a restart.
func (d Dir) State() string { return d.path("state.json") }

// Socket is the socket that the supervisor listens on.
func (d Dir) Socket() string { return d.path("supervisor.sock") }

// Lock is the file that the supervisor locks while it runs.
func (d Dir) Lock() string { return d.path("supervisor.lock") }

// Logs is the folder of all logs.
func (d Dir) Logs() string { return d.path("logs") }

// Log is the log file of one component.
func (d Dir) Log(component string) string { return d.path("logs", component+".log") }

// Kubernetes is the folder of the control cluster.
func (d Dir) Kubernetes() Cluster { return Cluster(d.path("kubernetes")) }

// Target is the folder of the separate target cluster.
func (d Dir) Target() Cluster { return Cluster(d.path("target")) }

// Registry is the folder of the registry's blobs and manifests.
func (d Dir) Registry() string { return d.path("registry") }

// LocalCloud is the folder of the local cloud's state.
func (d Dir) LocalCloud() string { return d.path("local-cloud") }

// LocalCloudToken is the file with the local cloud's bearer token.
func (d Dir) LocalCloudToken() string { return d.path("local-cloud", "token") }

// Crossplane is a file below the folder of Crossplane core.
func (d Dir) Crossplane(elem ...string) string {
	return d.path(append([]string{"crossplane"}, elem...)...)
}

// Package is a file below the folder of the running package of that name.
func (d Dir) Package(name string, elem ...string) string {
	return d.path(append([]string{"packages", name}, elem...)...)
}

// A Cluster is the folder of one Kubernetes process, as drover-kube reads it.
type Cluster string

// PKI is a file of the cluster's certificates and keys.
func (c Cluster) PKI(name string) string { return filepath.Join(string(c), "pki", name) }

// ComponentKubeconfig has the identity of the control plane's own components.
func (c Cluster) ComponentKubeconfig() string {
	return filepath.Join(string(c), "component.kubeconfig")
}

// AuditLog is the file of the API server's audit log, if it writes one.
func (c Cluster) AuditLog() string { return filepath.Join(string(c), "audit.log") }

// EtcdPeerSocket has the longest path of etcd's sockets.
func (c Cluster) EtcdPeerSocket() string { return filepath.Join(string(c), "etcd-peer.sock") }
