// Package hcloud has the controllers of the managed resources of Hetzner Cloud.
//
// A server's name is unique in its project, and Drover gives none twice. So a creation
// whose answer is lost may be tried again: it finds the server that is there already,
// by its name and its labels.
package hcloud
