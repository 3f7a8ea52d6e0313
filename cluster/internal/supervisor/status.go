package supervisor

import "github.com/drover-dev/drover/cluster/internal/process"

// Status tells where everything of an instance is. Paths are absolute. A part that
// does not run is left out.
type Status struct {
	// Ready is true when the start is complete and every component runs.
	Ready bool   `json:"ready"`
	Dir   string `json:"dir"`
	PID   int    `json:"pid"`
	// Control is the control cluster, Target the separate target cluster.
	Control Cluster  `json:"control"`
	Target  *Cluster `json:"target,omitempty"`
	// Registry is host:port of the package registry, plain HTTP.
	Registry   string           `json:"registry"`
	LocalCloud *Cloud           `json:"localCloud,omitempty"`
	Components []process.Status `json:"components"`
}

// A Cluster is where an API server is, and the human's kubeconfig.
type Cluster struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	// AuditLog is a file with a line of JSON a write, if one is written.
	AuditLog string `json:"auditLog,omitempty"`
}

// A Cloud is where the local cloud is, and the file with its bearer token.
type Cloud struct {
	Endpoint  string `json:"endpoint"`
	TokenFile string `json:"tokenFile"`
}
