package plan

import (
	"fmt"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/text"
)

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

func invalid(keys []string, on string, annotations map[string]string) []string {
	var out []string
	for _, key := range keys {
		if v, ok := annotations[key]; ok && v != "true" && v != "false" {
			out = append(out, fmt.Sprintf("%s: %q of the %s must be true or false, and is passed over", key, ShownValue(v), on))
		}
	}
	return out
}
