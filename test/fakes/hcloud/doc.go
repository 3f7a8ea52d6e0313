// Package hcloud is a Hetzner Cloud for tests: an [http.Handler] that speaks the part of
// its API that Drover's provider calls (servers, their actions, server types, images,
// locations, SSH keys, networks, placement groups), with the vendor's codes of errors,
// pages, label selectors, limits and rate limit. It keeps its state in memory, and takes
// time: what is asked for is done some time later, as the actions tell.
//
// See https://docs.hetzner.cloud/reference/cloud.
package hcloud
