// Package approver approves the certificates that the kubelets of our Machines ask
// for in a target cluster, and denies what their Nodes, or their bootstrap tokens, ask
// for beyond that. Whose request is not about a Machine of ours is left alone, for
// others to decide.
//
// A kubelet may ask for any name and any address, and the serving certificates of a
// cluster are signed with the authority that everybody in it trusts: a certificate for
// an address that is not the kubelet's own is a way to listen to others. So nothing counts
// here that a Node reports of itself, and nothing that the status of a Machine has, which a
// tenant may write. The Node must have the name that the Machine was given, and must be the
// one that the Machine controller has proven to be the Machine's. Where the cloud decides on
// the names of Nodes, the name must be one that the cloud reports of the VM. The addresses
// are those of the VM resource that the Machine controls. The Machine controller has all of
// it in the memory of the process: after a restart a request waits for the first reconcile
// of its Machine.
//
// Not each address in a VM resource is the cloud's word: at vSphere the tools in the guest
// report them, and a guest can report any. An address that only a guest reports counts in
// the networks that the configuration of the target cluster names. Some names and addresses
// are in no certificate, whoever reports them: those of the API server, of Services, of the
// host itself, and of other Machines of the cluster until these are gone.
//
// A status may take a right away, but never give one: a bootstrap token whose Machine has a
// Node by its status gets no client certificate, and the Node of a Machine whose deletion
// has left the Node gets no certificate at all.
package approver
