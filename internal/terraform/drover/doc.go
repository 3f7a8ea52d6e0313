// Package drover is a Terraform provider for NodePools, MachineDeployments and classes.
//
// A resource owns the fields of spec that its configuration names, by server-side apply, and no
// others: what the API server defaults, and what Crossplane or an autoscaler writes, is no drift.
// Each plan asks the API server by a dry run whether it takes the change. Each apply waits until
// the change has happened, or ends with the reason that the object itself gives.
package drover
