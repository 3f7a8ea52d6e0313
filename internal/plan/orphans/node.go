package orphans

import "fmt"

// A Node is what the target cluster of a VM has of it, and what was found with it.
type Node struct {
	// Looked means that somebody has looked for the Node of the VM.
	Looked bool
	// Machine whose VM has the name of this one, empty if there is none or the name is not
	// known.
	Machine string
	// Name of the Node and the Cluster that has it, empty if there is none.
	Name, Cluster string
	// Ready is the condition Ready of the Node.
	Ready bool
	// Problem is why it is not known whether the VM has a Node that is Ready, empty if that is
	// known.
	Problem string
}

// mayGo reports whether the Node of an orphan lets it go. A Node that is Ready runs what
// nobody drained, and a control plane that was restored from a backup lacks Machines whose
// Nodes are in use. If nobody can look at the Node, a person who looked at the VM decides.
func (p *plan) mayGo(vm VM, n Node) bool {
	return n.Looked && !n.Ready && (n.Problem == "" || p.isConfirmed(vm))
}

// hold is why a VM is not deleted that mayGo holds.
func (n Node) hold() string {
	switch {
	case n.Ready:
		return fmt.Sprintf("not deleted: its Node %s in the cluster of %s is Ready; if it is of no use, drain the Node and delete it", n.Name, n.Cluster)
	case n.Problem != "":
		return fmt.Sprintf("not deleted: it is not known whether it has a Node that is Ready: %s; if it is of no use, name it in spec.confirmedOrphans", n.Problem)
	}
	return "its Node is looked for"
}
