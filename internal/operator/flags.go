package operator

import (
	"fmt"
	"time"
)

// Flags are the options that every provider binary has. Each can also be set by an environment variable.
type Flags struct {
	Debug bool `help:"Log in detail, as text." env:"DEBUG"`

	LeaderElection          bool   `help:"Let only one of several instances work: two overlap while a Deployment is rolled out." default:"true" negatable:"" env:"LEADER_ELECTION"`
	LeaderElectionNamespace string `help:"Namespace of the lease. Default: where the pod runs." env:"LEADER_ELECTION_NAMESPACE,POD_NAMESPACE"`

	MaxReconcileRate int           `help:"Reconciles a second, of all controllers together, and as many again of objects that are being created or deleted. Calls to the API server are limited to 5 times as many." default:"100" env:"MAX_RECONCILE_RATE"`
	Concurrency      int           `help:"Reconciles at the same time, a controller." default:"${concurrency}" env:"CONCURRENCY"`
	Poll             time.Duration `help:"How often an external resource is looked at when nothing happens." default:"${poll}" env:"POLL"`
	Sync             time.Duration `help:"How often every object is reconciled, whatever happened." default:"1h" env:"SYNC"`

	MetricsBindAddress     string `help:"Address of the metrics; empty: none." default:":8080" env:"METRICS_BIND_ADDRESS"`
	HealthProbeBindAddress string `help:"Address of /healthz and /readyz; empty: none." default:":8081" env:"HEALTH_PROBE_BIND_ADDRESS"`
	PprofBindAddress       string `help:"Address of /debug/pprof; empty: none." env:"PPROF_BIND_ADDRESS"`
}

// Validate returns an error that names a flag with an invalid value.
func (f *Flags) Validate() error {
	for _, n := range []struct {
		name  string
		value int
	}{{"max-reconcile-rate", f.MaxReconcileRate}, {"concurrency", f.Concurrency}} {
		if n.value < 1 {
			return fmt.Errorf("--%s: invalid value %d: must be 1 or more", n.name, n.value)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"poll", f.Poll}, {"sync", f.Sync}} {
		if d.value < time.Second {
			return fmt.Errorf("--%s: invalid value %s: must be 1s or more", d.name, d.value)
		}
	}
	return nil
}
