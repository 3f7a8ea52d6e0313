package deployment

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func classNotFound(d *machinev1alpha1.MachineDeployment, t machinev1alpha1.MachineTemplate) *shared.Problem {
	field := "spec.template.spec.classRef.name"
	if d.Spec.RollbackTo != nil {
		field = fmt.Sprintf("spec.rollbackTo.revision: %d has a class that is gone", d.Spec.RollbackTo.Revision)
	}
	return &shared.Problem{
		Reason: machinev1alpha1.ReasonClassNotFound,
		Message: shared.NoClass(&machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace}, Spec: t.Spec}, field).Message +
			"; the Machines that exist stay as they are until there is",
	}
}

// notOfClass are the problems that another class of the same provider has, too.
var notOfClass = []string{machinev1alpha1.ReasonBindingInvalid, machinev1alpha1.ReasonCompositionNotFound, machinev1alpha1.ReasonProviderNotInstalled}

// classUnusable is the problem of a class from which no VM can be created.
func classUnusable(problem *shared.Problem) *shared.Problem {
	until := "spec.template.spec.classRef.name names a class that can be used"
	if slices.Contains(notOfClass, problem.Reason) {
		until = "that is corrected"
	}
	return &shared.Problem{Reason: problem.Reason, Message: problem.Message + "; the Machines that exist stay as they are until " + until}
}

// clusterUnusable is the problem of a cluster that no Machine can join.
func clusterUnusable(problem *shared.Problem) *shared.Problem {
	return &shared.Problem{Reason: problem.Reason, Message: problem.Message + "; the Machines that exist stay as they are until that is mended"}
}
