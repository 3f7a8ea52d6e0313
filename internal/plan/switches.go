package plan

import (
	"fmt"
	"strings"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

// What a user sets on a Machine or its Node, and what sets, MachineDeployments and NodePools pass over.
var ofMachines = append([]string{
	machinev1alpha1.AnnotationForceDelete, machinev1alpha1.AnnotationPreserve, machinev1alpha1.AnnotationDeletionCost,
	machinev1alpha1.AnnotationReboot, machinev1alpha1.AnnotationRebootDrain,
}, switches...)

// Annotations that only the value "true" switches on: those of Machines and Nodes, and those of Machines alone.
var (
	switches = []string{
		machinev1alpha1.AnnotationReplace, machinev1alpha1.AnnotationSkipRemediation,
		machinev1alpha1.AnnotationSkipDrain, machinev1alpha1.AnnotationForceDrain,
	}
	switchesOfMachines = []string{
		machinev1alpha1.AnnotationForceDelete, machinev1alpha1.AnnotationConfirmDeletion, xpmeta.AnnotationKeyReconciliationPaused,
	}
)

// ShownValue of an annotation bounds what a message quotes: a value may be 256 KiB long, and a message that is too long keeps
// the API server from accepting the status.
func ShownValue(v string) string { return text.Shorten(v, maxShownValue) }

// maxShownValue is more than any value that Drover knows.
const maxShownValue = 64

// InvalidSwitches returns a text for each annotation of a Machine that switches something on, and whose value is neither
// true nor false, such as True. It does nothing then.
func InvalidSwitches(annotations map[string]string) []string {
	return append(invalid(switches, "Machine", annotations), invalid(switchesOfMachines, "Machine", annotations)...)
}

// InvalidSwitchesOfNode is InvalidSwitches for the annotations of a Node.
func InvalidSwitchesOfNode(annotations map[string]string) []string {
	return invalid(switches, "Node", annotations)
}

// InvalidSwitchesOfSet is InvalidSwitches for a NodePool, MachineDeployment or MachineSet. It also returns a text for each
// annotation and label that has an effect on other kinds only.
func InvalidSwitchesOfSet(kind string, o metav1.Object) []string {
	annotations := o.GetAnnotations()
	keys := []string{xpmeta.AnnotationKeyReconciliationPaused}
	without := func(key, remedy string) string {
		return fmt.Sprintf("%s of the %s has no effect: %s", key, kind, remedy)
	}
	var out []string
	if _, ok := annotations[machinev1alpha1.AnnotationConfirmDeletion]; kind == machinev1alpha1.MachineSetGroupVersionKind.Kind {
		keys = append(keys, machinev1alpha1.AnnotationConfirmDeletion)
	} else if ok {
		out = append(out, without(machinev1alpha1.AnnotationConfirmDeletion, "set it on a Machine or MachineSet"))
	}
	for _, key := range ofMachines {
		if _, ok := annotations[key]; ok {
			out = append(out, without(key, "set it on a Machine"))
		}
	}
	if kind == machinev1alpha1.NodePoolGroupVersionKind.Kind {
		if _, ok := annotations[machinev1alpha1.AnnotationPaused]; ok {
			out = append(out, without(machinev1alpha1.AnnotationPaused, "set spec.paused"))
		}
		if _, ok := o.GetLabels()[machinev1alpha1.LabelFreeze]; ok {
			out = append(out, without("label "+machinev1alpha1.LabelFreeze, "set it on the MachineDeployments of the NodePool"))
		}
	}
	return append(invalid(keys, kind, annotations), out...)
}

// AnnotationsValid returns the condition of the given texts about annotations. It is nil for an object that has no invalid
// ones, and whose conditions before lack it.
func AnnotationsValid(wrong []string, before []metav1.Condition) *Condition {
	c := &Condition{Type: machinev1alpha1.ConditionAnnotationsValid, Status: "True", Reason: machinev1alpha1.ReasonValid}
	switch {
	case len(wrong) > 0:
		c.Status, c.Reason, c.Message = "False", machinev1alpha1.ReasonAnnotationInvalid, strings.Join(wrong, "; ")
	case !c.IsKnown(before):
		return nil
	}
	return c
}

func invalid(keys []string, on string, annotations map[string]string) []string {
	var out []string
	for _, key := range keys {
		if v, ok := annotations[key]; ok && v != "true" && v != "false" {
			out = append(out, fmt.Sprintf("%s: %q of the %s must be true or false, and is passed over", key, ShownValue(v), on))
		}
	}
	return out
}
