// Package approver approves the certificates that the kubelets of Machines request in a target
// cluster. It denies requests of their Nodes and of their bootstrap tokens for anything else. It
// leaves requests that are not about a Machine of Drover to other approvers.
//
// A kubelet may request any name and any address, and serving certificates are signed by an authority
// that the whole cluster trusts. With a certificate for an address of another host, a kubelet could
// intercept traffic. So the approver uses nothing that a Node reports of itself, and nothing from the
// status of a Machine, which a tenant may write. The Node must have the name that the Machine was
// given, and the Machine controller must have proven that the Node is the Machine's. If the cloud
// decides on the names of Nodes, the cloud must report the name for the VM. The addresses come from
// the VM resource that the Machine controls. The Machine controller holds all of this in memory:
// after a restart, a request waits for the first reconcile of its Machine.
//
// Not each address in a VM resource comes from the cloud: at vSphere the tools in the guest report
// them, and a guest can report any address. An address that only a guest reports counts in the
// networks that the configuration of the target cluster names. Some names and addresses are never in
// a certificate, whatever reports them: those of the API server, of Services and of the host itself,
// and those of other Machines of the cluster until these Machines are gone.
//
// A status may take a right away, but never give one. A bootstrap token gets no client certificate if
// its Machine has a Node by its status. A Node gets no certificate at all if the deletion of its
// Machine is past the Node.
package approver
