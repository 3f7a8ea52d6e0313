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

// composites that are recorded: Crossplane derives their CRDs from XRDs, without the defaults of
// status.
var composites = []string{"NodePool", "MachineDeployment", "MachineSet"}

// isObservable reports whether objects of a kind have status.observedGeneration and are applied
// by users.
func isObservable(kind string) bool { return kind == "Machine" || slices.Contains(composites, kind) }
