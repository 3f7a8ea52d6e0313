package vm

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// Observed is the view of the step.
type Observed struct {
	Now     time.Time
	Machine *machinev1alpha1.Machine
	// RawMachine is metadata and spec of the Machine as the API server returns them.
	RawMachine map[string]any
	// VM is nil if there is no VM resource.
	VM *plan.Object
	// Companions of the VM that exist, by their names.
	Companions map[string]plan.Object

	// Node of the Machine, as last observed in its cluster.
	Node workernode.Observation

	// Bootstrap is the output of the step bootstrap, and UserData the user data itself.
	Bootstrap plan.Bootstrap
	UserData  string
	// Inventory is the report of the cloud's inventory about the VM, nil if there is none.
	Inventory *plan.InventoryReport
	// MissingConfig is the configuration of the provider that the VM would refer to, if it does not
	// exist. It is nil if it exists, or if that is not known.
	MissingConfig *plan.MissingConfig
	// Secrets that are part of the user data. The guest may print them on its console.
	Secrets []string

	// Class of the Machine, or the problem with it. Validator is that of its VM, nil if there is
	// none, and Validators are those of its companions by their names. They are needed until
	// creation began, and while the VM has LackingDependents.
	Class        *machinev1alpha1.MachineClass
	ClassProblem *plan.Problem
	Validator    *Validator
	Validators   map[string]*Validator
	// Installation is the ID of the installation, or the problem with it. It is needed as long as
	// the class.
	Installation        string
	InstallationProblem *plan.Problem
}

// Begun reports whether the VM exists or may exist.
func (o Observed) Begun() bool {
	return o.Machine.Status.ProviderID != "" || o.VM != nil && plan.CreationBegan(*o.VM)
}

// Desired is the output of the step.
type Desired struct {
	// VM is nil while no VM resource shall exist.
	VM *unstructured.Unstructured
	// Companions of the VM by their names.
	Companions map[string]*unstructured.Unstructured
	// Word is the output for the later steps.
	Word plan.VM
}
