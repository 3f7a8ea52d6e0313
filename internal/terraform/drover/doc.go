// Package drover is a Terraform provider for NodePools, MachineDeployments and classes.
//
// A resource owns the fields of spec that its configuration names, by server-side apply, and no other fields:
// defaults of the API server, and writes of Crossplane or an autoscaler, are no drift. Each plan checks the
// change by a dry run at the API server. Each apply waits until the change is complete, or fails with the
// reason that the object itself reports.
package drover
