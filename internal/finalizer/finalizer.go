// Package finalizer keeps a MachineDeployment, MachineSet or Machine until all objects that it waits for are
// deleted.
//
// Each of the three kinds has FinalizerTerminator; an object that was created without it gets it. The garbage
// collector deletes the dependents of an owner only if the owner is gone, or is deleted in the foreground. So
// the terminator turns every deletion into a foreground deletion by repeating the DELETE, and repeats that
// whenever another client requests a background deletion again, as the namespace controller does.
package finalizer

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A State of an object is the input of a decision about its finalizer.
type State struct {
	Deleting   bool
	Held       bool // has FinalizerTerminator
	Foreground bool // is deleted in the foreground
}

// A Step is an action on the object itself.
type Step string

// Steps.
const (
	Nothing     Step = "Nothing"
	Add         Step = "Add"         // add FinalizerTerminator
	DeleteAgain Step = "DeleteAgain" // in the foreground
	Remove      Step = "Remove"      // remove FinalizerTerminator
)

// StateOf an object.
func StateOf(obj client.Object) State {
	return State{
		Deleting:   obj.GetDeletionTimestamp() != nil,
		Held:       controllerutil.ContainsFinalizer(obj, v1alpha1.FinalizerTerminator),
		Foreground: slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents),
	}
}

// Next returns the next step of an object, which depends on whether it still has something to wait for.
func (s State) Next(somethingLeft bool) Step {
	switch {
	case !s.Deleting && !s.Held:
		return Add
	case !s.Deleting, !s.Held:
		return Nothing
	case !somethingLeft:
		return Remove
	case !s.Foreground:
		return DeleteAgain
	}
	return Nothing
}

// Take carries out a step for an object of one of the three kinds.
func Take(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, s Step) error {
	switch s {
	case Add:
		return Patch(ctx, c, gvk, obj, func(m client.Object) {
			controllerutil.AddFinalizer(m, v1alpha1.FinalizerTerminator)
		})
	case Remove:
		return client.IgnoreNotFound(Patch(ctx, c, gvk, obj, func(m client.Object) {
			controllerutil.RemoveFinalizer(m, v1alpha1.FinalizerTerminator)
		}))
	case DeleteAgain:
		uid := obj.GetUID()
		return client.IgnoreNotFound(c.Delete(ctx, metadataOf(gvk, obj),
			client.PropagationPolicy(metav1.DeletePropagationForeground),
			client.Preconditions{UID: &uid}))
	case Nothing:
	}
	return nil
}

// Patch changes the metadata of an object, unless the object changed since it was read: a list of finalizers is
// patched as a whole.
func Patch(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, obj client.Object, change func(client.Object)) error {
	was := metadataOf(gvk, obj)
	now := was.DeepCopy()
	change(now)
	return c.Patch(ctx, now, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

func metadataOf(gvk schema.GroupVersionKind, obj client.Object) *metav1.PartialObjectMetadata {
	m := NewMetadata(gvk)
	m.SetNamespace(obj.GetNamespace())
	m.SetName(obj.GetName())
	m.SetUID(obj.GetUID())
	m.SetResourceVersion(obj.GetResourceVersion())
	m.SetFinalizers(slices.Clone(obj.GetFinalizers()))
	m.SetAnnotations(obj.GetAnnotations())
	return m.DeepCopy()
}

// Others returns the finalizers of an object that are neither Drover's, nor the garbage collector's, nor among own.
func Others(obj client.Object, own ...string) []string {
	own = append(own, v1alpha1.FinalizerTerminator, v1alpha1.FinalizerDrain, metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents)
	var out []string
	for _, f := range obj.GetFinalizers() {
		if !slices.Contains(own, f) {
			out = append(out, f)
		}
	}
	return out
}

// NewMetadata returns empty metadata of a kind.
func NewMetadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m
}
