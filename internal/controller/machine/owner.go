package machine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// controllerOf returns the controller of an object, and false unless it is of the given kind of Drover.
func controllerOf(o metav1.Object, kind schema.GroupVersionKind) (metav1.OwnerReference, bool) {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || owner.Kind != kind.Kind {
		return metav1.OwnerReference{}, false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return *owner, err == nil && gv.Group == machinev1alpha1.Group
}
