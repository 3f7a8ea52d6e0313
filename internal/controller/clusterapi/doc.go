// Package clusterapi implements the VMs of infrastructure providers of Cluster API for the package native. A VM is an
// InfraMachine, such as an AWSMachine: the provider of its kind makes it, and this package is the other side of the
// contract (https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-machine).
//
// # Objects
//
// An InfraMachine works only with the objects that Cluster API's own controllers keep. The package keeps them instead,
// in the namespace of the VM and in the cluster that the configuration reaches:
//
//	Cluster         one per configuration and namespace. It refers to the InfraCluster, and its status reports that
//	                this is provisioned. It is never deleted: users of the InfraCluster may need it.
//	Machine         one per VM: it owns the InfraMachine. A finalizer keeps it until the InfraMachine is gone, because
//	                the garbage collector would delete the InfraMachine with it.
//	Secret          the user data, in the form of a bootstrap provider.
//	InfraMachine    the VM.
//
// None of them is owned by the VirtualMachine: a foreground deletion of a Drover Machine reaches everything below it at
// once, and a provider deletes its VM as soon as the InfraMachine is marked for deletion, whatever finalizers it has.
//
// # Bootstraps
//
// A Bootstrap is the user data that a bootstrap provider makes for a Machine of any cloud. The package keeps a Machine of
// its own for it, and the BootstrapConfig, which is made from a template:
// https://cluster-api.sigs.k8s.io/developer/providers/contracts/bootstrap-config
//
// # Identity
//
// The external name is the UID of the VirtualMachine, which is a label of Machine and InfraMachine. Names are those of
// the VirtualMachine, so that a repeated creation finds the objects of the first one.
//
// # Files
//
// contract.go and read.go are the decisions: which contract a kind fulfills, and the report of an InfraMachine. objects.go
// renders the objects. account.go and the files beside it call the API server. The files of Bootstraps begin with bootstrap,
// in the same order.
package clusterapi
