// Package approver approves the certificates that the kubelets of our Machines ask
// for in a target cluster, and denies what their Nodes, or their bootstrap tokens, ask
// for beyond that. Whose request is not about a Machine of ours is left alone, for
// others to decide.
//
// A kubelet may ask for any name and any address, and the serving certificates of a
// cluster are signed with the authority that everybody in it trusts: a certificate for
// an address that is not the kubelet's own is a way to listen to others. So what a Node
// says of itself counts for nothing here. It has to be the Node that the machine may
// take, by the name that the machine was given, and its addresses those that the cloud
// tells of the VM.
package approver
