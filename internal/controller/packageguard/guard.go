package packageguard

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Names of the ClusterUsages. The packages of VMs have one for each API group, so that the
// rights to change them can be given by name.
const (
	ProviderUsage      = "drover-machines"
	ConfigurationUsage = "drover-configuration"
	FunctionUsage      = "drover-function"
	groupUsagePrefix   = "drover-machines."
)

// Reasons that a user reads when the deletion of a package is denied.
const (
	ProviderReason = "Machines exist: deleting this package would delete them and their VMs. " +
		"Delete all MachineDeployments, MachineSets and Machines first (kubectl get machines -A), then delete the package."
	ConfigurationReason = "Machines exist: without this package they cannot be created, updated or replaced. " +
		"Delete all MachineDeployments, MachineSets and Machines first (kubectl get machines -A), then delete the package."
	FunctionReason = ConfigurationReason
)

// GroupUsage returns the name of the ClusterUsage of the package that installs the VMs of an API
// group.
func GroupUsage(group string) string { return groupUsagePrefix + group }

// GroupReason returns the reason that a user reads when the deletion of this package is denied.
func GroupReason(group string) string {
	return "Machines have resources of " + group + ": without this package nothing deletes their VMs. " +
		"Delete these Machines first (kubectl get machines -A), then delete the package."
}

// A guard is one ClusterUsage with its dependencies.
type guard struct {
	usage  string
	kind   string // of the package
	reason string
	finder finder
	// machines selects the Machines that need the package.
	machines []client.ListOption

	// blockedUntil is the time of the next call to the API server after it lacked a kind or a right;
	// logged is the last logged error.
	blockedUntil time.Time
	logged       string
}

// groupOfUsage returns the API group that a ClusterUsage is for, empty for any other.
func groupOfUsage(usage string) string {
	group, found := strings.CutPrefix(usage, groupUsagePrefix)
	if !found {
		return ""
	}
	return group
}

// byGroup is an index of Machines by the API groups of their VMs and companions.
const byGroup = "packageguard.groups"

func groupsOf(o client.Object) []string {
	m, ok := o.(*v1alpha1.Machine)
	if !ok {
		return nil
	}
	var out []string
	for _, r := range m.Status.ResourceRefs {
		// Kinds of Kubernetes itself belong to no package.
		group := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group
		if strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") && !slices.Contains(out, group) {
			out = append(out, group)
		}
	}
	return out
}
