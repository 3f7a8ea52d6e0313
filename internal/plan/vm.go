package plan

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// FinalizerManaged is the finalizer that crossplane-runtime adds to every managed resource.
const FinalizerManaged = "finalizer.managedresource.crossplane.io"

// CreationBegan reports whether a VM exists or may exist, because the provider of its VM resource
// began to create it.
func CreationBegan(vm Object) bool {
	a := vm.GetAnnotations()
	for _, key := range []string{
		meta.AnnotationKeyExternalName,
		meta.AnnotationKeyExternalCreatePending,
		meta.AnnotationKeyExternalCreateSucceeded,
		meta.AnnotationKeyExternalCreateFailed,
	} {
		if a[key] != "" {
			return true
		}
	}
	return false
}

// WasCreationTried reports whether a provider began to create the external resource of an object, or was given one. Some
// providers choose the name of the object as the external name before they begin.
func WasCreationTried(obj metav1.Object) bool {
	a := obj.GetAnnotations()
	return a[meta.AnnotationKeyExternalCreatePending]+a[meta.AnnotationKeyExternalCreateSucceeded]+a[meta.AnnotationKeyExternalCreateFailed] != "" ||
		a[meta.AnnotationKeyExternalName] != "" && a[meta.AnnotationKeyExternalName] != obj.GetName()
}

// IsAfterVM reports whether a companion depends on the VM of its Machine.
func IsAfterVM(companion metav1.Object) bool {
	return companion.GetAnnotations()[machinev1alpha1.AnnotationAfterVM] == "true"
}

// HasRun reports whether a Machine had a healthy Node at any time, by its last status.
func HasRun(s machinev1alpha1.MachineStatus) bool {
	switch s.Phase {
	case machinev1alpha1.MachineRunning, machinev1alpha1.MachineUpdating, machinev1alpha1.MachineRebooting, machinev1alpha1.MachineUnknown:
		return true
	case machinev1alpha1.MachineFailed:
		return s.FailureReason == machinev1alpha1.FailureNodeUnhealthy
	default:
		return false
	}
}

// AnnotationsOfVM returns the annotations that Drover sets on a VM resource or a companion.
func AnnotationsOfVM() []string {
	return []string{
		machinev1alpha1.AnnotationOrder, machinev1alpha1.AnnotationAfterVM, machinev1alpha1.AnnotationCompanions,
		machinev1alpha1.AnnotationMachineUID, machinev1alpha1.AnnotationNodeName, machinev1alpha1.AnnotationInstallation, machinev1alpha1.AnnotationInstanceType,
		meta.AnnotationKeyPollInterval, meta.AnnotationKeyReconcileRequestedAt,
	}
}

// AsObserved returns a VM resource or companion as Drover composed it, without the metadata that
// other clients wrote.
func AsObserved(o Object, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetName(o.GetName())
	out.SetLabels(map[string]string{machinev1alpha1.LabelMachine: m.Name})
	kept := map[string]string{}
	for _, key := range AnnotationsOfVM() {
		if v, ok := o.GetAnnotations()[key]; ok {
			kept[key] = v
		}
	}
	if len(kept) > 0 {
		out.SetAnnotations(kept)
	}
	if spec, ok := o.Object["spec"].(map[string]any); ok {
		out.Object["spec"] = runtime.DeepCopyJSON(spec)
	}
	return out
}
