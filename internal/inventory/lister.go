package inventory

import (
	"context"
	"time"
)

// A VM is a virtual machine as its cloud lists it.
type VM struct {
	// ExternalName is the value of the annotation crossplane.io/external-name of a managed resource
	// of the VM's kind, byte for byte.
	ExternalName string
	// ProviderID is the providerID of the VM's Node, "" if the list does not contain it.
	ProviderID string
	// Name that the VM was given, which is the name of its Machine's VM resource, "" if the list
	// does not contain it. It is required at a cloud whose tags do not name the Machine.
	Name string
	// Tags of the VM.
	Tags map[string]string
	// CreatedAt is zero if the list does not contain it.
	CreatedAt time.Time
	// State of the VM, StateUnknown if the list does not contain it.
	State State
	// StateText is the state in the cloud's own words, such as "provisioning state Failed,
	// power state stopped".
	StateText string
}

// A State is the state of a VM in the terms of its Machine. A cloud has many more.
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

// A Resource is a resource beside the VMs that costs money and that a cloud may leave behind when a
// VM is deleted: a network interface, an address, a disk.
type Resource struct {
	// Type in the cloud's own words, such as NetworkInterface.
	Type string
	// ID by which a user finds it at the cloud.
	ID string
	// Tags of the resource.
	Tags map[string]string
	// CreatedAt is zero if the list does not contain it.
	CreatedAt time.Time
	// AttachedTo is the ID of the VM or other resource that uses it, "" if it is not in use.
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

	// Find returns the VMs that exist, regardless of their tags. A VM that the cloud does not have
	// is left out. Complete has the same meaning as in List.
	Find(ctx context.Context, externalNames []string) (vms []VM, complete bool, err error)
}

// A Lister lists the VMs of one account.
type Lister interface {
	// List lists the VMs whose tag drover-installation has the value, in any state and in all
	// places of the account in which the provider may create VMs. It leaves out VMs that the cloud
	// still shows although they are gone and cost nothing, such as terminated instances. Complete
	// is false if a page, a zone or another part is missing: the inventory then ignores the list.
	List(ctx context.Context, installation string) (vms []VM, complete bool, err error)
}
