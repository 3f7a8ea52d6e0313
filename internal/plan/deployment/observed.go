package deployment

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A Set is a MachineSet of the deployment.
type Set struct {
	*machinev1alpha1.MachineSet
	// Observed is false for a MachineSet that the deployment's references do not name. See
	// shared.Child.
	Observed bool
	// Terminating means that the MachineSet is being deleted.
	Terminating bool
}

// Observed is the view of the step.
type Observed struct {
	Deployment *machinev1alpha1.MachineDeployment
	// Sets that the deployment controls, in any order.
	Sets []Set
	// ClassFound means that the class of the template that is rolled out exists.
	ClassFound bool
	// ClassProblem is the reason why no VM can be created from the class, nil if one can.
	ClassProblem *shared.Problem
	Safety       shared.Safety
	// Gate of a step of the user's own in the pipeline, nil without one.
	Gate *shared.RolloutGate
	// HasPolicies means that there are RolloutPolicies. Turn has their answer, nil without one.
	HasPolicies bool
	Turn        *machinev1alpha1.RolloutTurn
	// Analysis has the verdicts of the analyses of the steps, nil without one.
	Analysis *machinev1alpha1.RolloutAnalysisRun
}

// A Desired MachineSet.
type Desired struct {
	*machinev1alpha1.MachineSet
	Ready bool
}

// A Decision is the output of the step.
type Decision struct {
	Sets []Desired
	// Analysis that provider-drover is to carry out, nil for none.
	Analysis *machinev1alpha1.RolloutAnalysisRun
	// Turn asks the RolloutPolicies, nil if there is nothing to ask.
	Turn   *machinev1alpha1.RolloutTurn
	Status machinev1alpha1.MachineDeploymentStatus
	shared.Report
}
