package v1alpha1

import "time"

// Defaults of the schemas that planners use where a schema was not applied, such as for Machines
// that were written before it had the default.
const (
	// DefaultMaxUnhealthy is the default of Remediation.MaxUnhealthy.
	DefaultMaxUnhealthy = "40%"
	// DefaultMaxInFlight is the default of Remediation.MaxInFlight.
	DefaultMaxInFlight = 1
	// DefaultHealthTimeout is the default of Health.Timeout.
	DefaultHealthTimeout = 10 * time.Minute
	// DefaultRebootLimit is the default of HealthReboot.Limit.
	DefaultRebootLimit = 2
	// DefaultRebootWindow is the default of HealthReboot.Window.
	DefaultRebootWindow = 24 * time.Hour
	// DefaultRebootTimeout is the default of HealthReboot.Timeout. A physical machine takes several minutes to
	// boot.
	DefaultRebootTimeout = 15 * time.Minute
	// DefaultPreserveTimeout is the default of Preserve.Timeout.
	DefaultPreserveTimeout = 96 * time.Hour
	// DefaultUpdateTimeout is the default of the timeouts of updates in place.
	DefaultUpdateTimeout = 20 * time.Minute
	// DefaultDrainTimeout is the default of Drain.Timeout.
	DefaultDrainTimeout = 2 * time.Hour
	// DefaultHookTimeout is the default of Drain.HookTimeout.
	DefaultHookTimeout = 2 * time.Hour
	// DefaultKubeletPath is the default of ProfileKubelet.Path. Images without a profile have their
	// kubelet there, too.
	DefaultKubeletPath = "/usr/local/bin/kubelet"
	// DefaultContainerdURL is the default of ContainerdDownload.URL.
	DefaultContainerdURL = "https://github.com/containerd/containerd/releases/download"
	// DefaultKubeletDownloadURL is the default of OperatingSystem.KubeletDownloadURL.
	DefaultKubeletDownloadURL = "https://dl.k8s.io/release"
	// DefaultClusterDomain is the default of Kubelet.ClusterDomain.
	DefaultClusterDomain = "cluster.local"
)

// Defaults of settings of the operating system.
const (
	// DefaultCredentialProviderDir is the default of ImageCredentialProviders.BinDir. SELinux labels
	// files below a folder called bin as executable.
	DefaultCredentialProviderDir = "/opt/credential-providers/bin"
	// DefaultTrustExtension is the default of ProfileTrust.Extension.
	DefaultTrustExtension = "crt"
)

// Defaults that no schema has, because they depend on other fields.
const (
	// DefaultCapacityTimeout is the default for Machines of a node group. The cluster-autoscaler
	// checks its groups every ten seconds, so it sees the failure within a minute.
	DefaultCapacityTimeout = 30 * time.Second
	// DefaultFreezeLimit is how long a freeze by hand may last until it is reported as Stalled,
	// where the spec has no deadline.
	DefaultFreezeLimit = 30 * time.Minute
)

// DefaultHealthConditions returns the default of Health.Conditions.
func DefaultHealthConditions() []HealthCondition {
	return []HealthCondition{
		{Type: "KernelDeadlock", Status: "True"},
		{Type: "ReadonlyFilesystem", Status: "True"},
		{Type: "DiskPressure", Status: "True"},
		{Type: "NetworkUnavailable", Status: "True"},
	}
}
