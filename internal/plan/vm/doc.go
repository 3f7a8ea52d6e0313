// Package vm is the planner of the step infrastructure, which composes a Machine's VM. It knows no
// cloud: its input binds the VM resource of a provider by CEL expressions.
//
// A VM is rendered from its class once. From the moment that the provider may have created it, the
// requested spec does not change. Once it is known to exist, its resource may only be observed and
// deleted. Neither the class nor the binding can change it then, and a VM that is lost is not
// created again.
//
// The same holds for companions of a VM, such as a network interface of its own. They are created
// before the VM, each when the earlier ones are ready. An existing companion stays desired as long
// as its Machine exists, regardless of the class and the binding. Only the deletion of the Machine
// deletes it, in the order that the Machine's controller keeps.
package vm
