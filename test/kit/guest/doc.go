// Package guest boots VMs of the local cloud that simulate VMs of other clouds: they get the user
// data of the other cloud, and requests to its metadata service are answered as that cloud does.
// So a Node joins by the path of its Composition, and gets the providerID of this path.
package guest
