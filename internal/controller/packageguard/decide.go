package packageguard

import "k8s.io/apimachinery/pkg/api/equality"

// An action on a ClusterUsage.
type action string

const (
	keep   action = "keep"
	create action = "create"
	update action = "update"
	remove action = "delete"
)

// An observation is the input of the decision.
type observation struct {
	// isNeeded reports whether a Machine needs the package, which may be one that is being deleted.
	isNeeded bool
	// desired is the spec of the ClusterUsage, nil if there is no package to guard. It is
	// not observed while the package is not needed.
	desired map[string]any
	// usage is the ClusterUsage, nil if there is none.
	usage *usage
}

// A usage has the parts of a ClusterUsage that the decision depends on.
type usage struct {
	spec map[string]any
	// terminating reports whether the usage waits for the finalizer of Crossplane.
	terminating bool
}

// decide returns the next action. Every change of an observed object leads to another decision, so
// keep is also the answer during a deletion.
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
