package packageguard

import "k8s.io/apimachinery/pkg/api/equality"

// An action is what the controller does to a ClusterUsage.
type action string

const (
	keep   action = "keep"
	create action = "create"
	update action = "update"
	remove action = "delete"
)

// An observation is all that the decision depends on.
type observation struct {
	// isNeeded is true while there is a Machine that needs the package, also one that is
	// being deleted.
	isNeeded bool
	// desired is the spec of the ClusterUsage, nil if there is no package to guard. It is
	// not observed while the package is not needed.
	desired map[string]any
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
	case !o.isNeeded && o.usage != nil:
		return remove
	case !o.isNeeded, o.desired == nil:
		return keep
	case o.usage == nil:
		return create
	case !equality.Semantic.DeepEqual(o.usage.spec, o.desired):
		return update
	default:
		return keep
	}
}
