// Package userdata renders what a VM is told at its first boot: the cloud-init
// document that installs a kubelet and has it join its cluster by TLS bootstrap.
//
// It is a pure function of its input: the same input gives the same bytes.
package userdata
