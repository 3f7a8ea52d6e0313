package set

import (
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// A Machine of the set.
type Machine struct {
	*machinev1alpha1.Machine
	// Terminating means that the Machine is being deleted.
	Terminating bool
}

// Observed is the view of the planner.
type Observed struct {
	Set *machinev1alpha1.MachineSet
	// Machines that the set controls, in any order.
	Machines []Machine
	// Gone names those of status.creating that were created and are gone, or that will never be created.
	Gone []string
	// Released are Machines that are gone, as the MachineGroup reports them.
	Released []machinev1alpha1.ReleasedMachine
	// Members that the MachineGroup was to keep when it reported the Released ones, with their Templates: a
	// Machine that is in both was not deleted by the set.
	Members   []machinev1alpha1.GroupMember
	Templates []machinev1alpha1.GroupTemplate
	// IsBehind means that the Machines and the report of the MachineGroup are from different views.
	IsBehind bool
	// NotApplied is the reason why Machines cannot be written, or "".
	NotApplied string
	// Orphans match the selector and have no controller.
	Orphans []Machine
	// Foreign Machines match the selector, and another object controls them. Only their names and owners
	// are set.
	Foreign []*machinev1alpha1.Machine
	// Problem with the class or the cluster that prevents the creation of Machines.
	Problem *shared.Problem
	Safety  shared.Safety
	// HealthProblems are the parts of the template's spec.health that cannot be carried out as they are written.
	HealthProblems []shared.Problem
}

// A Desired Machine.
type Desired struct {
	*machinev1alpha1.Machine
	// Create it if it does not exist.
	Create bool
}

// A Decision is the output of the planner.
type Decision struct {
	// Machines that shall exist, the names of Machines to delete, and the names of Machines that are being
	// deleted already.
	Machines    []Desired
	Delete      []string
	Terminating []string
	// Vanished members are gone, and the MachineGroup did not report them yet. Templates has theirs.
	Vanished  []machinev1alpha1.GroupMember
	Templates []machinev1alpha1.GroupTemplate
	// IsTraced reports whether the MachineGroup may refer to its Machines: provider-drover of the previous
	// release has no field for the references.
	IsTraced bool

	Status machinev1alpha1.MachineSetStatus
	shared.Report
}
