// Package terraform has the controller of VMs that are resources of a Terraform provider.
//
// A ClusterProviderConfig names the provider, its configuration, and which of its resource types
// are VMs. Package plugin runs the provider; all VMs of a configuration share its process.
//
// A VM that does not exist is validated and planned in Observe, before the creation begins: wrong
// arguments are reported, and no creation is recorded. Create applies the plan. It takes as long
// as the provider waits for the VM, in a worker of its own: there are many workers. So the
// annotations of crossplane-runtime have the truth about a creation at each moment, and
// docs/decisions/0007 holds for a provider that is killed.
//
// The state of a VM is saved before the creation is recorded. It is in a Secret of the provider's
// own namespace: users of the VM's namespace must neither read it (it has user data, and
// what the cloud keeps secret) nor write it (the ID in it decides which VM is deleted). A
// state that is lost is imported again by the external name.
package terraform
