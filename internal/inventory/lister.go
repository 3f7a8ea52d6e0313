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
	// Tags of the VM.
	Tags map[string]string
	// CreatedAt is zero if the cloud does not tell.
	CreatedAt time.Time
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
