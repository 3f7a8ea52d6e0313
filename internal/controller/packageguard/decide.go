package packageguard

import "k8s.io/apimachinery/pkg/api/equality"

// An action is what the controller does to the ClusterUsage.
type action string

const (
	keep   action = "keep"
	create action = "create"
	update action = "update"
	remove action = "delete"
)

// An observation is all that the decision depends on.
type observation struct {
	// hasMachines is true while a Machine exists, also one that is being deleted.
	hasMachines bool
	// provider that installed the Machine CRD, empty if the CRD has no such owner.
	// It is not observed while there are no Machines.
	provider string
	// usage is the ClusterUsage, nil if there is none.
	usage *usage
}

// A usage is what the decision needs to know of the ClusterUsage.
type usage struct {
	spec map[string]any
	// terminating is true while the usage waits for the finalizer of Crossplane.
	terminating bool
}

// decide returns what to do. Every change of an observed object leads to another
// decision, so that keep is also the answer while a deletion is under way.
func decide(o observation) action {
	switch {
	case o.usage != nil && o.usage.terminating:
		return keep
	case !o.hasMachines && o.usage != nil:
		return remove
	case !o.hasMachines, o.provider == "":
		return keep
	case o.usage == nil:
		return create
	case !equality.Semantic.DeepEqual(o.usage.spec, desiredSpec(o.provider)):
		return update
	default:
		return keep
	}
}
