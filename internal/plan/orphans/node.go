package orphans

import "fmt"

// mayGo reports whether the Node of an orphan allows its deletion. A Ready Node runs pods that were
// not drained: a control plane that was restored from a backup lacks Machines whose Nodes are in
// use. If the Node cannot be observed, the user decides by a confirmation.
func (p *plan) mayGo(vm VM, n Node) bool {
	return n.Looked && !n.Ready && (n.Problem == "" || p.isConfirmed(vm))
}

// hold explains why a VM is not deleted if mayGo is false.
func (n Node) hold() string {
	switch {
	case n.Ready:
		return fmt.Sprintf("not deleted: its Node %s in the cluster of %s is Ready; if it is of no use, drain the Node and delete it", n.Name, n.Cluster)
	case n.Problem != "":
		return fmt.Sprintf("not deleted: it is not known whether it has a Node that is Ready: %s; if it is of no use, name it in spec.confirmedOrphans", n.Problem)
	}
	return "its Node is looked for"
}
