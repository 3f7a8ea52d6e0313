package orphans

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A VM at a cloud, and the Machine that it was created for by its tags.
type VM struct {
	ExternalName string
	ProviderID   string
	// Installation that created it.
	Installation string
	// Cluster is the name of the configuration of the target cluster that it was created for.
	Cluster string
	Owner   Owner
}

// An Owner is the Machine that a VM was created for. At a cloud whose tags name no Machine, only
// the name of the VM identifies it: Machine and UID are empty.
type Owner struct {
	Namespace, Machine string
	UID                types.UID
	// VMName is the name of the VM and of its VM resource, empty if it is unknown.
	VMName string
}

// isNamed reports whether the tags of the VM name the Machine.
func (o Owner) isNamed() bool { return o.Machine != "" }

// Standing reports which objects of an Owner exist. If one exists, the VM is no orphan.
type Standing struct {
	// Machine with the Owner's name and UID exists.
	Machine bool
	// Resource means that the VM resource of this Machine exists.
	Resource bool
}

func (s Standing) stands() bool { return s.Machine || s.Resource }

// An Unclaimed VM is one that the inventory reports.
type Unclaimed struct {
	VM
	FirstSeen   time.Time
	ConfirmedAt *time.Time
	Standing
	Node Node
}

// confirmed reports whether two reads, the grace period apart, found it unclaimed.
func (u Unclaimed) confirmed(grace time.Duration) bool {
	return u.ConfirmedAt != nil && u.ConfirmedAt.Sub(u.FirstSeen) >= grace
}

// A Node is the result of the search for the Node of a VM in its target cluster.
type Node struct {
	// Looked means that the search was carried out.
	Looked bool
	// Machine whose VM has the name of this one. It is empty if there is none or the name is
	// unknown.
	Machine string
	// Name of the Node and the Cluster that has it, empty if there is none.
	Name, Cluster string
	// Ready is the condition Ready of the Node.
	Ready bool
	// Problem is the reason why it is unknown whether the VM has a Ready Node, empty if that is
	// known.
	Problem string
}

// An Adopted VM is one for which the collector composes a VM resource.
type Adopted struct {
	VM
	Standing
	Node Node
	// Observed is false if the collector's references do not name the resource: see [shared.Child].
	Observed bool
	// Terminating means that the resource is being deleted.
	Terminating bool
	// MayDelete means that the resource may delete the VM.
	MayDelete bool
	// Seen means that the provider found the VM, and Missing that it did not.
	Seen, Missing bool
	// Trouble is the provider's error, "" if there is none.
	Trouble string
}

func (a Adopted) stands() bool { return a.Standing.stands() || a.Node.Machine != "" }

// Inventory is the report of the collector's inventory.
type Inventory struct {
	// Problem is the reason why nothing can be decided by the report, "" if it is usable.
	Problem string
	// Pending means that the report does not answer the latest request yet: nothing can be decided
	// until it does.
	Pending bool
	// Count of all unclaimed VMs, and the ones that the report names.
	Count     int32
	Unclaimed []Unclaimed
	// Claimed is the number of claimed VMs.
	Claimed int32
	// Unused resources other than VMs. They have been unused for the grace period.
	Unused []Unused
}

// An Unused resource is not a VM. HasMachine means that the Machine exists that it was created for:
// a Machine may have its network interface before its VM.
type Unused struct {
	machinev1alpha1.UnusedResource
	HasMachine bool
}

// A Resource is the desired state of a VM resource.
type Resource struct {
	VM
	// MayDelete gives it the right to delete the VM.
	MayDelete bool
}

// Observed is the view of the step.
type Observed struct {
	Collector    *machinev1alpha1.OrphanCollector
	Installation string
	// InstallationProblem is the reason why Installation is unknown.
	InstallationProblem *shared.Problem
	// Gone are the former installations that are proven not to run any more.
	Gone      map[string]bool
	Inventory Inventory
	Adopted   []Adopted
}

// A Search for the Node of a VM.
type Search struct {
	VM
	// MayDelete is that of the VM's Resource. A change of it requests a new search, because each
	// pass requires a search that was carried out after the previous pass.
	Adopted, MayDelete bool
}

// Decision is the output of the step.
type Decision struct {
	Resources []Resource
	// Searches for the Nodes of VMs.
	Searches []Search
	Status   machinev1alpha1.OrphanCollectorStatus
	// Ready means that the inventory's report is usable.
	shared.Report

	terminating []string
}

// Ignored returns the external names of VMs that the inventory need not report: those that have a
// resource of the collector, or will have one. Each change of them requests a new read of the
// cloud, so that no decision uses an old report.
func (d Decision) Ignored() []string {
	out := slices.Clone(d.terminating)
	for _, r := range d.Resources {
		out = append(out, r.ExternalName)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
