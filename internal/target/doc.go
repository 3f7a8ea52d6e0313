// Package target holds the connections to target clusters, those that Machines
// join. There is one connection a cluster, with one client and one watch of Nodes,
// however many objects and configurations use it, as long as these hold the same
// credentials.
//
// All connections are made by newTransport, in layers from the outside to the inside:
//
//   - The breaker fails calls to a cluster that is dead.
//   - The lanes keep a cluster that is slow from taking all workers.
//   - The answers replace the texts of failures, and refuse redirects.
//   - The limits bound what an answer holds, and the pace of a watch.
//   - The dialer refuses addresses that a tenant's configuration may not reach.
//
// A target cluster may be dead, slow or refuse us at any time, and its
// credentials are somebody else's input. So no call takes longer than callTimeout,
// calls to a dead cluster fail at once, and every error names the configuration
// and what is wrong with it, but never what its Secret holds.
package target
