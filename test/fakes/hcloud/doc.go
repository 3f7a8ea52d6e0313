// Package hcloud is a Hetzner Cloud for tests: an [http.Handler] that implements the part of the
// API that Drover's provider calls (servers, their actions, server types, images, locations, SSH
// keys, networks, placement groups), with the vendor's error codes, pages, label selectors,
// limits and rate limit. It keeps its state in memory. A request takes effect after some time, as
// its action reports.
//
// Hetzner documents no error for the reboot of a server that is off: the fake accepts it, and it has no effect.
//
// See https://docs.hetzner.cloud/reference/cloud.
package hcloud
