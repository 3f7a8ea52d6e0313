package inventory

import (
	"context"
	"time"
)

// A VM, as its cloud lists it.
type VM struct {
	// ExternalName is what a managed resource of the VM's kind has in its annotation
	// crossplane.io/external-name, byte for byte.
	ExternalName string
	// ProviderID is that of the VM's Node, "" if the list does not tell.
	ProviderID string
	// Name that the VM was given, which is that of its Machine's VM resource, "" if the list
	// does not contain it. At a cloud whose tags do not name the Machine it is required.
	Name string
	// Tags of the VM.
	Tags map[string]string
	// CreatedAt is zero if the cloud does not tell.
	CreatedAt time.Time
	// State of the VM, StateUnknown if the list does not contain it.
	State State
	// StateText is the state in the cloud's own words, such as "provisioning state Failed,
	// power state stopped".
	StateText string
}

// A State is what a cloud's many states of a VM mean for its Machine.
type State string

// States of a VM.
const (
	// StateUnknown means that the list does not contain the state.
	StateUnknown State = ""
	// StatePending means that the VM is being created or started.
	StatePending State = "Pending"
	// StateRunning means that the VM is powered on.
	StateRunning State = "Running"
	// StateStopped means that the VM exists and is powered off, or is about to be: a user or the
	// cloud stopped it.
	StateStopped State = "Stopped"
	// StateFailed means that the cloud has an entry for the VM and could not create it, such
	// as after a failed allocation. It never runs.
	StateFailed State = "Failed"
)

// A Resource is something beside the VMs that costs money and that a cloud may leave behind
// when a VM is deleted: a network interface, an address, a disk.
type Resource struct {
	// Type in the cloud's own words, such as NetworkInterface.
	Type string
	// ID by which a user finds it at the cloud.
	ID string
	// Tags of the resource.
	Tags map[string]string
	// CreatedAt is zero if the list does not contain it.
	CreatedAt time.Time
	// AttachedTo is the ID of what uses the resource, "" if it is not in use.
	AttachedTo string
}

// A ResourceLister is a Lister that also lists the resources beside the VMs.
type ResourceLister interface {
	Lister

	// ListResources lists the resources whose tag drover-installation has the value. Complete
	// has the same meaning as in List.
	ListResources(ctx context.Context, installation string) (resources []Resource, complete bool, err error)
}

// A Finder is a Lister that also finds VMs by their external names. It protects a VM whose tags
// a user removed: the list lacks such a VM, and it is not lost.
type Finder interface {
	Lister

	// Find the VMs that exist, whatever their tags. A VM that the cloud does not have is left
	// out. Complete has the same meaning as in List.
	Find(ctx context.Context, externalNames []string) (vms []VM, complete bool, err error)
}

// A Lister lists the VMs of one account.
type Lister interface {
	// List the VMs whose tag drover-installation has the value, in all places of the
	// account that the provider may create VMs in, whatever their state. It leaves out
	// what the cloud still shows although it is gone and costs nothing, such as a
	// terminated instance. Complete is false if a page, a zone or anything else is
	// missing: the VMs then count for nothing.
	List(ctx context.Context, installation string) (vms []VM, complete bool, err error)
}
