// Package gcp lists the VMs of an installation of Drover in one project of Google Cloud, and
// the disks and addresses that carry its label.
//
// It calls the aggregated lists of the Compute API: one call per 500 VMs has all zones, filtered
// by the label, with the state of each VM. Of an instance it asks for six fields only: the
// metadata contains the user data, and in it the join token.
//
// The package is on google.golang.org/api/compute/v1, which adds 4 MiB to a program and takes 40
// seconds of CPU to compile. cloud.google.com/go/compute has the same calls, adds 15 MiB and takes 63.
//
// A zone that does not answer makes a list incomplete, whether the API fails the call, names the
// zone as unreachable or warns about it.
package gcp
