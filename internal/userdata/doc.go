// Package userdata renders the user data for the first boot of a VM: a document that installs a kubelet and has
// it join its cluster by TLS bootstrap.
//
// New builds the document of files, units and steps. Encode writes it as cloud-init's #cloud-config or as
// Ignition, with placeholders. Filling.Fill replaces the placeholders and encodes the whole in the form that
// the cloud requires.
//
// On the VM one unit, drover-bootstrap.service, runs the steps: each until it has succeeded once, across
// reboots.
//
// It is a pure function of its input: the same input gives the same bytes.
package userdata
