// Package openstack is an OpenStack for tests: an [http.Handler] that implements the parts of
// Keystone v3, Nova v2.1, Glance v2 and Neutron v2.0 that Drover's provider calls, with their
// tokens, catalog, markers, errors, quota and rate limit. It keeps its state in memory. A
// server is built some time after it was requested. Ports and floating IPs are there at once, and a port that
// Nova did not create stays when its server is deleted.
//
// See https://docs.openstack.org/api-quick-start/.
package openstack
