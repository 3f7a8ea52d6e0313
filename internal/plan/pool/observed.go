package pool

import (
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
	offers "github.com/drover-dev/drover/internal/plan/offer"
)

// A Deployment is a MachineDeployment of the pool.
type Deployment struct {
	*machinev1alpha1.MachineDeployment
	// Observed is false for a MachineDeployment that the pool's references do not name. See
	// shared.Child.
	Observed bool
	// Terminating means that the MachineDeployment is being deleted.
	Terminating bool
	// ScaledByOthers means that another field manager owns spec.replicas.
	ScaledByOthers bool
}

// Observed is the view of the step.
type Observed struct {
	Pool *machinev1alpha1.NodePool
	// Namespace of the MachineDeployments.
	Namespace string
	// Offer of the platform, and the classes that it names, by the keys of their references. They are nil while it is not
	// known which of them exist.
	Offer   fn.Pool
	Classes map[string]offers.Spec
	// Deployments that the pool controls, in any order, and those without an owner that have its
	// label.
	Deployments []Deployment
}

// A Desired MachineDeployment.
type Desired struct {
	*machinev1alpha1.MachineDeployment
	// OmitReplicas means that another field manager decides spec.replicas.
	OmitReplicas bool
	Ready        bool
}

// A Decision is the output of the step.
type Decision struct {
	Deployments []Desired
	Status      machinev1alpha1.NodePoolStatus
	shared.Report
}
