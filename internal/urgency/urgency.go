// Package urgency orders the work of controllers. A mass event, such as the loss of hundreds of Nodes, a change of a class that
// all pools have, or the first look at all objects after a restart, makes a request for each object. Objects that
// are created or deleted are worked on first, and have a budget of reconciles of their own.
//
// It owns the levels, the queue of a controller and the limit on reconciles. Which level an object has is said by the
// controller of its kind.
package urgency

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Level of urgency. Requests of a higher level are worked on first, those of one level in the order of their arrival.
type Level int

// Levels.
const (
	// Routine is for an object that works, or that nothing can be done for now.
	Routine Level = iota
	// Starting is for an object that is new or being created: a user waits for it.
	Starting
	// Deleting is for an object that is being deleted: it costs money, and its drain has a deadline.
	Deleting
)

// A Judge returns the level of the object that a request names. It must be quick: it is asked with each event.
type Judge func(reconcile.Request) Level

// readTimeout bounds a read from a cache that is not filled yet.
const readTimeout = time.Second

// Of returns a Judge that reads objects of a kind from a cache. An object that cannot be read is Routine. The function is
// called for those that are not being deleted, and must not change them.
func Of[T client.Object](c client.Reader, empty T, isStarting func(T) bool) Judge {
	return func(req reconcile.Request) Level {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		obj, ok := empty.DeepCopyObject().(T)
		if !ok || c.Get(ctx, req.NamespacedName, obj, client.UnsafeDisableDeepCopy) != nil {
			return Routine
		}
		switch {
		case obj.GetDeletionTimestamp() != nil:
			return Deleting
		case isStarting(obj):
			return Starting
		}
		return Routine
	}
}

// OfManaged returns the Judge of a kind of managed resources, which are starting until they are Ready.
func OfManaged(c client.Reader, empty client.Object) Judge {
	return Of(c, empty, func(obj client.Object) bool {
		mg, ok := obj.(resource.Managed)
		return ok && mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue
	})
}
