package supervisor

import "github.com/drover-dev/drover/cluster/internal/process"

// Status has the addresses and files of an instance. Paths are absolute. Components that do not run
// are omitted.
type Status struct {
	// Ready is true if the start is complete and every component runs.
	Ready bool   `json:"ready"`
	Dir   string `json:"dir"`
	PID   int    `json:"pid"`
	// Control is the control cluster, and Target the separate target cluster.
	Control Cluster  `json:"control"`
	Target  *Cluster `json:"target,omitempty"`
	// Registry is host:port of the package registry, which uses plain HTTP.
	Registry   string           `json:"registry"`
	LocalCloud *Cloud           `json:"localCloud,omitempty"`
	Components []process.Status `json:"components"`
}

// A Cluster is the address of an API server, and the user's kubeconfig.
type Cluster struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	// AuditLog is a file with a line of JSON per write, empty if none is written.
	AuditLog string `json:"auditLog,omitempty"`
}

// A Cloud is the address of the local cloud, and the file with its bearer token.
type Cloud struct {
	Endpoint  string `json:"endpoint"`
	TokenFile string `json:"tokenFile"`
}
