package gitops

import "k8s.io/apimachinery/pkg/runtime/schema"

// kinds that are recorded.
var kinds = []schema.GroupVersionKind{
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineDeployment"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineSet"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineGroup"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "Machine"},
	{Group: "machine.drover.dev", Version: "v1alpha1", Kind: "MachineClass"},
	{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachine"},
}
