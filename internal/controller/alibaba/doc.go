// Package alibaba implements the VMs of Alibaba Cloud for the package native. A VM is an instance of ECS, and
// its external name is the ID that ECS chose.
//
// Before each creation the provider chooses a ClientToken and records it in an annotation. While the result of a
// creation is unknown, it uses the same token again: ECS then returns the instance of the first request. An
// instance whose ID was lost is found by the tag drover-vm, which has the UID of the managed resource.
//
// The package uses the transport and the signatures of Alibaba's SDK (darabonba-openapi), and has types of its
// own for the few calls that it makes. The package of the SDK with all calls of ECS has 266,000 lines, which
// take many minutes to compile.
package alibaba
