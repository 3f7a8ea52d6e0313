package move

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// resourceKinds returns the kinds of the copied VMs and companions.
func (m *Move) resourceKinds(ctx context.Context) ([]schema.GroupVersionKind, error) {
	o, err := m.objects(ctx)
	if err != nil {
		return nil, err
	}
	kinds, err := o.kinds()
	if err != nil || len(kinds) > 0 {
		return kinds, err
	}
	// The source is empty already.
	machines, err := list(ctx, m.Destination, machinev1alpha1.MachineGroupVersionKind, m.Namespace)
	if err != nil {
		return nil, err
	}
	for _, u := range machines {
		for _, s := range strings.Split(u.GetAnnotations()[annotationKinds], ",") {
			if gvk, _ := schema.ParseKindArg(s); gvk != nil {
				kinds = append(kinds, *gvk)
			}
		}
		if len(kinds) > 0 {
			break // All have the same.
		}
	}
	return kinds, nil
}

// untaken lists the objects that have to be taken over before objects of a kind are resumed, or, without a
// kind, before the move is complete.
func (m *Move) untaken(ctx context.Context, next string) (string, error) {
	var out []string
	note := func(kind schema.GroupVersionKind, problem func(*unstructured.Unstructured) string) error {
		objs, err := list(ctx, m.Destination, kind, m.Namespace)
		for _, u := range objs {
			if p := problem(u); p != "" && u.GetDeletionTimestamp() == nil {
				out = append(out, describe(u)+" "+p)
			}
		}
		return err
	}
	var err error
	switch next {
	case machinev1alpha1.MachineSetGroupVersionKind.Kind:
		err = note(machinev1alpha1.MachineGroupVersionKind, withoutVM)
	case machinev1alpha1.MachineDeploymentGroupVersionKind.Kind:
		err = note(machinev1alpha1.MachineGroupVersionKind, withoutOwner(machinev1alpha1.LabelSet))
	case machinev1alpha1.NodePoolGroupVersionKind.Kind:
		err = note(machinev1alpha1.MachineSetGroupVersionKind, withoutOwner(machinev1alpha1.LabelDeployment))
	case "":
		if err = note(machinev1alpha1.MachineSetGroupVersionKind, withoutOwner(machinev1alpha1.LabelDeployment)); err == nil {
			err = note(machinev1alpha1.MachineDeploymentGroupVersionKind, withoutOwner(machinev1alpha1.LabelNodePool))
		}
	}
	return strings.Join(out, ", "), err
}

// withoutVM returns why a Machine that had a VM does not have it again.
func withoutVM(u *unstructured.Unstructured) string {
	m, err := machineOf(u)
	switch {
	case err != nil:
		return err.Error()
	case m.Spec.ProviderID == nil || m.Status.ProviderID != "":
		return ""
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionValid); c != nil && c.Status == metav1.ConditionFalse {
		if c.Reason == machinev1alpha1.ReasonVMOfAnotherInstallation {
			return "" // A user has to decide: the condition of the Machine shows how.
		}
		return fmt.Sprintf("waits for its VM: %s", c.Message)
	}
	return "waits for its VM"
}

// withoutOwner returns a function that reports objects with a label and without a controller.
func withoutOwner(label string) func(*unstructured.Unstructured) string {
	return func(u *unstructured.Unstructured) string {
		if owner := u.GetLabels()[label]; owner != "" && metav1.GetControllerOfNoCopy(u) == nil {
			return "waits for " + owner
		}
		return ""
	}
}
