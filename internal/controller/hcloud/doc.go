// Package hcloud has the controllers of the managed resources of Hetzner Cloud.
//
// A server's name is unique in its project, and Drover never uses a name twice. So a creation whose
// response is lost may be retried: it finds the existing server by its name and its labels.
package hcloud
