// Package azure is a fake of one subscription of Azure: an [http.Handler] with the calls of the Compute and Network APIs that
// provider-azure makes. It keeps its state in memory. Entra ID, Azure Resource Graph, roles and their refusals are those of
// azuretest.
//
// Microsoft's own fake servers decode the requests and encode the answers, with the types of the SDK. The package
// azuremodel judges each request by Microsoft's model: a difference is reported to Options.Report.
//
// The rest follows these pages:
//
//	subject                                    source
//	provisioning and power states              https://learn.microsoft.com/azure/virtual-machines/states-billing
//	failed allocations                         https://learn.microsoft.com/troubleshoot/azure/virtual-machines/allocation-failure
//	deleteOption                               https://learn.microsoft.com/azure/virtual-machines/delete
//	If-None-Match                              https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update
//	NicInUse, PublicIPAddressCannotBeDeleted   https://learn.microsoft.com/azure/networking/troubleshoot-failed-state
//	spot VMs                                   https://learn.microsoft.com/azure/virtual-machines/spot-vms
//	redeployment, restart                      https://learn.microsoft.com/rest/api/compute/virtual-machines/redeploy
//	boot diagnostics                           https://learn.microsoft.com/rest/api/compute/virtual-machines/retrieve-boot-diagnostics-data
//	limits of calls                            https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
//	LinkedAuthorizationFailed                  https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
//
// It is unkind where the API may be: lists show a resource some time after it was created, and for some time after it was
// deleted; operations take their time; an allocation may fail after the VM was accepted, which leaves a VM in the state
// Failed; a resource that is in use cannot be deleted, and a resource with deleteOption Delete ends some time after its VM. The
// messages of errors about fields are the fake's own, except those quoted on the pages.
package azure
