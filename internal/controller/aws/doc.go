// Package aws implements the VMs of AWS for the package native. A VM is an instance of Amazon EC2, and its external
// name is the ID that EC2 chose.
//
// # No second instance
//
// Before each creation the provider chooses a ClientToken from the UID of the managed resource and the number of the
// attempt, and records it in an annotation. While the result of a creation is unknown, it uses the same token again:
// EC2 then returns the instance of the first request, so that a creation is repeated at once (Provider.Repeatable). An
// instance whose ID was lost is found by the tag drover-vm, which EC2 sets together with the creation. This also
// protects after EC2 forgot the token, and if the parameters changed since (IdempotentParameterMismatch).
//
// # Observation
//
// One paged list of the account's instances serves the reconciles of all VMs. EC2 is eventually consistent: an instance
// that was accepted a moment ago may be missing from a list, and is lost only if it is missing after the time settle. An
// instance that was terminated is listed for an hour, with the reason: by it, an allocation that failed after
// RunInstances succeeded is reported with its class.
package aws
