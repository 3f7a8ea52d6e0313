package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// An Object is a resource that was observed, without its managed fields.
type Object struct {
	*unstructured.Unstructured
	// Connection details of the resource, if it publishes any.
	Connection map[string][]byte
}

// A Child is a resource that the XR composed.
type Child struct {
	Object
	// Observed is false for a child that the XR's references do not name: one
	// that is terminating, or that a stale write forgot. Crossplane cannot delete
	// it until it is composed, and so named, again.
	Observed bool
	// Terminating means that the child is being deleted.
	Terminating bool
}
