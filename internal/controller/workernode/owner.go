package workernode

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// controllerOf returns what controls an object, and false unless it is of this kind of
// Drover's.
func controllerOf(o metav1.Object, kind schema.GroupVersionKind) (metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != kind.Kind {
		return metav1.OwnerReference{}, false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return *owner, err == nil && gv.Group == machinev1alpha1.Group
}

// readMachine that a WorkerNode belongs to. It is false if it belongs to none, or to one
// that is gone.
func readMachine(ctx context.Context, reader client.Reader, wn metav1.Object, into client.Object) (bool, error) {
	owner, ok := controllerOf(wn, machinev1alpha1.MachineGroupVersionKind)
	if !ok {
		return false, nil
	}
	err := reader.Get(ctx, client.ObjectKey{Namespace: wn.GetNamespace(), Name: owner.Name}, into)
	return err == nil && into.GetUID() == owner.UID, client.IgnoreNotFound(err)
}
