package gitops

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kinds that are recorded.
var kinds = []schema.GroupVersionKind{
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "NodePool"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineDeployment"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineSet"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineGroup"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "Machine"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineClass"},
	{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"},
}

// composites that are recorded: Crossplane derives their CRDs from XRDs, and takes no default of
// status from them.
var composites = []string{"NodePool", "MachineDeployment", "MachineSet"}

// isObservable reports whether an object of a kind that users apply has status.observedGeneration.
func isObservable(kind string) bool { return kind == "Machine" || slices.Contains(composites, kind) }
