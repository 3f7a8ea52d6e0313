// Package guest boots VMs of the local cloud that stand for VMs of other clouds: what
// they read as user data is what the other cloud was given, and what they ask that
// cloud's metadata service is answered as that cloud does. So a Node joins by the path
// that its Composition lays, and has the providerID that this path gives it.
package guest
