package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// An Object is an observed resource without its managed fields.
type Object struct {
	*unstructured.Unstructured
	// Connection details of the resource, if it publishes any.
	Connection map[string][]byte
}

// A Child is a resource that an XR composed.
type Child struct {
	Object
	// Observed is false for a child that the XR's references do not name. Such a child is
	// terminating, or a stale write removed its reference. Crossplane can delete it only after it
	// is composed again, which adds the reference.
	Observed bool
	// Terminating means that the child is being deleted.
	Terminating bool
}
