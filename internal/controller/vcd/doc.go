// Package vcd implements the VMs of VMware Cloud Director for the package native.
//
// # API
//
// The provider calls version 37.0 of the API of Cloud Director, which the releases 10.4 to 10.6 serve, with typed calls
// of its own. Two alternatives were considered:
//
//   - A lift of terraform-provider-vcd. The provider polls each task within one call, so that a reconcile would last for
//     minutes and a restart would lose the task. Its resource of a VM is found by its vApp, and makes dozens of calls
//     that a fake would have to answer.
//   - VMware's Go client (github.com/vmware/go-vcloud-director/v2). Its calls have no context, wait for tasks by
//     themselves, and read some errors by their text only. Its types alone have 10000 lines, of which the provider
//     needs a dozen elements.
//
// # Standalone VMs
//
// Each VM is a standalone VM: Cloud Director creates a vApp for it alone (instantiateVmTemplate of a VDC) and deletes
// the vApp with it. In a vApp that VMs share, each change excludes every other change (BUSY_ENTITY), so that
// 50 VMs would be created one after the other.
//
// # Identity
//
// Cloud Director chooses the ID of a VM. The provider chooses another UUID before the creation: the external name of the
// managed resource, which the description of the VM has. The vApp of the VM is known from the task of the creation, and
// the VM from its vApp. After that, the VM is found by its ID, which Cloud Director never assigns again.
//
// # Lost responses
//
// The API has no idempotency token. While the result of a creation is unknown, the provider searches for a VM with its
// name and its external name in the description, for longer than a query may need to show a new VM. If two creations
// succeed nevertheless, the deletion deletes both VMs.
//
// # Absence
//
// Cloud Director responds to a read of a VM that does not exist with the status 403 and the code
// ACCESS_TO_RESOURCE_IS_FORBIDDEN, as if the user had no access to it. A VM counts as lost only if a query with the same
// credentials does not list it either, the user still sees its VDC, and the user is the one who observed the VM before.
package vcd
