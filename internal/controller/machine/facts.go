package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// composed resources of a Machine, by their roles.
type composed map[string]*unstructured.Unstructured

// facts about a Machine, collected once per reconcile.
type facts struct {
	machine  *machinev1alpha1.Machine
	revision string
	steps    []pipeline.Step
	observed composed
	join     jointoken.State
	// report of the cloud's inventory about the VM, nil if there is none.
	report *plan.InventoryReport
	// missingConfig of the provider, nil if it exists or is not known. configChecked means that it was looked for in this
	// reconcile.
	missingConfig *plan.MissingConfig
	configChecked bool
	// joinError is why the join token or the user data could not be created.
	joinError error
	// node is nil until the pipeline has decided on parameters for one.
	node *nodekeeper.Node
	// applying is the record of the keys that the Node is about to get, nil at any other time.
	applying *machinev1alpha1.AppliedToNode
	// joinDue is when milestones of the join must be written that no other write included, 0 if there are none.
	joinDue time.Duration
}

// A decision is the result of the pipeline.
type decision struct {
	pipeline.Result
	bootstrap plan.Bootstrap
	vm        plan.VM
	node      *workernode.Parameters
}

// knowsNode reports whether the decision was made with the Node in the target cluster. A process that has just
// started reads the Node in its first round. Before that, a join token that was deleted since the Node joined
// would be missing, and be created again.
func (f *facts) knowsNode(d decision) bool { return d.node == nil || f.node != nil }
