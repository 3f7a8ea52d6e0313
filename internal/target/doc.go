// Package target holds the connections to target clusters, which Machines join. There is one connection per
// cluster, with one client and one watch of Nodes, however many objects and configurations use it, as long as
// these have the same credentials.
//
// All connections are made by newTransport, in layers from the outside to the inside:
//
//   - The breaker fails calls to a cluster that is dead.
//   - The lanes keep a cluster that is slow from taking all workers.
//   - The answers replace the texts of failures, and refuse redirects.
//   - The limits bound the size of a response, and the pace of a watch.
//   - The dialer refuses addresses that a tenant's configuration may not reach.
//
// A target cluster may be dead, slow or refuse Drover at any time, and its credentials are untrusted input. So
// no call takes longer than callTimeout, calls to a dead cluster fail at once, and every error names the
// configuration and its problem, but never the content of its Secret.
package target
