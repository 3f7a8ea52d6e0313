// Package vm is the planner of the step infrastructure, which composes a Machine's VM. It knows no
// cloud: its input binds the VM resource of a provider by CEL expressions.
//
// A VM is made from its class once. From the moment that its provider may have
// created it, what was asked for stays as it is, and from the moment that it is
// known to be there, its resource is only observed and deleted. Neither the class
// nor the binding can touch it any more, and a VM that is gone is not made again.
//
// A VM may have companions, such as a network interface of its own, for which the same
// holds. They are made before it, each when those before it are ready. What is there is
// desired for as long as its Machine lives, whatever becomes of class and binding: only
// the deletion of the Machine, whose order the Machine's controller keeps, deletes it.
package vm
