// Package terraform has the controller of VMs that are resources of a Terraform provider.
//
// A ClusterProviderConfig names the provider, its configuration, and which of its resource types are
// VMs. Package plugin runs the provider; all VMs of a configuration share its process.
//
// A VM that does not exist is validated and planned in Observe, before its creation starts: invalid
// arguments are reported, and no creation is recorded. Create applies the plan. It takes as long as
// the provider waits for the VM, in a worker of its own: there are many workers. So the annotations
// of crossplane-runtime are correct about a creation at each moment, and docs/decisions/0007 also
// holds if a provider is killed.
//
// The state of a VM is saved before the creation is recorded. It is in a Secret of the provider's own
// namespace. Users of the VM's namespace must not read it, because it has user data and secrets of
// the cloud. They must not write it, because its ID decides which VM is deleted. A lost state is
// imported again by the external name.
package terraform
