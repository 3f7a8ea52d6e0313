// Package gcp lists the VMs of an installation of Drover in one project of Google Cloud, and
// the disks and addresses that carry its label.
//
// It calls the aggregated lists of the Compute API: one call per 500 VMs has all zones, filtered
// by the label, with the state of each VM. Of an instance it asks for six fields only: the
// metadata contains the user data, and in it the join token.
//
// A zone that does not answer makes a list incomplete, whether the API fails the call, names the
// zone as unreachable or warns about it.
package gcp
