package finalizer

import (
	"context"
	"fmt"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LostOwner returns the name of the controller of an object if it is of this kind and does not exist, empty
// otherwise. An object of its name may exist with another UID. The reader must be that of the API server: a
// cache may lack a new owner.
//
// A MachineDeployment, MachineSet or Machine outlives the objects that it controls. If it does not exist, it
// did not decide on their deletion: it lost its finalizers, or was restored from a backup with another UID. The
// garbage collector deletes these objects.
func LostOwner(ctx context.Context, live client.Reader, obj client.Object, kind schema.GroupVersionKind) (string, error) {
	owner, ok := ControllerOf(obj, kind)
	if !ok {
		return "", nil
	}
	is := NewMetadata(kind)
	err := live.Get(ctx, client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}, is)
	switch {
	case err == nil && is.GetUID() == owner.UID:
		return "", nil
	case err != nil && !kerrors.IsNotFound(err) && !meta.IsNoMatchError(err):
		return "", fmt.Errorf("cannot read %s %s: %w", kind.Kind, owner.Name, err)
	}
	return owner.Name, nil
}

// ControllerOf returns the controller of an object, and false unless it is of this kind, of any version.
func ControllerOf(o metav1.Object, kind schema.GroupVersionKind) (metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != kind.GroupKind() {
		return metav1.OwnerReference{}, false
	}
	return *owner, true
}
