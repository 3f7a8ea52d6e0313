package drover

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// Progress of a change that was applied to an object.
type progress struct {
	// done means that all is as the spec desires it.
	done bool
	// stalled is why a user has to change something first, "" if that is not needed.
	stalled string
	// waits is the reason for waiting if it is neither done nor stalled.
	waits string
}

// progressOf returns the progress of an object whose status has conditions. The status does not count before it
// is about the generation of the spec.
func progressOf(u *unstructured.Unstructured) progress {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if observed < u.GetGeneration() {
		return progress{waits: "its controller has not observed the change yet"}
	}
	conditions := conditionsOf(u)
	if c := conditions[machinev1alpha1.ConditionStalled]; c.Status == metav1.ConditionTrue {
		return progress{stalled: textOf(c)}
	}
	if paused, _, _ := unstructured.NestedBool(u.Object, "spec", "paused"); paused {
		return progress{done: true}
	}
	if c := conditions[machinev1alpha1.ConditionReconciling]; c.Status == metav1.ConditionTrue {
		return progress{waits: textOf(c)}
	}
	if c, there := conditions[machinev1alpha1.ConditionReady]; there && c.Status != metav1.ConditionTrue {
		return progress{waits: textOf(c)}
	}
	if text := missing(u); text != "" {
		return progress{waits: text}
	}
	return progress{done: true}
}

// missing returns which replicas of a MachineDeployment are missing, "" if none are.
func missing(u *unstructured.Unstructured) string {
	if u.GetKind() != machinev1alpha1.MachineDeploymentGroupVersionKind.Kind {
		return ""
	}
	wanted, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	fields := []string{"replicas", "updatedReplicas", "availableReplicas"}
	if kind, _, _ := unstructured.NestedString(u.Object, "spec", "strategy", "type"); kind == string(machinev1alpha1.OnDelete) {
		// A user deletes Machines of the old template, at any time.
		fields = []string{"replicas", "availableReplicas"}
	}
	for _, field := range fields {
		if n, _, _ := unstructured.NestedInt64(u.Object, "status", field); n != wanted {
			return fmt.Sprintf("status.%s is %d of %d", field, n, wanted)
		}
	}
	return ""
}

func conditionsOf(u *unstructured.Unstructured) map[string]metav1.Condition {
	out := map[string]metav1.Condition{}
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		raw, ok := item.(map[string]any)
		if !ok {
			continue
		}
		c := metav1.Condition{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &c) == nil {
			out[c.Type] = c
		}
	}
	return out
}

func textOf(c metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// deletion returns the reason why an object that is being deleted still exists.
func deletion(u *unstructured.Unstructured) string {
	conditions := conditionsOf(u)
	for _, name := range []string{machinev1alpha1.ConditionStalled, machinev1alpha1.ConditionReconciling, machinev1alpha1.ConditionReady} {
		if c, there := conditions[name]; there && c.Message != "" {
			return textOf(c)
		}
	}
	finalizers := u.GetFinalizers()
	slices.Sort(finalizers)
	return "the finalizers " + strings.Join(finalizers, ", ")
}
