package packageguard

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UsageName is the name of the ClusterUsage.
const UsageName = "drover-machines"

// Reason is what a user reads when the deletion of the Provider is denied.
const Reason = "Machines exist: deleting this package would delete them and their VMs. " +
	"Delete all MachineDeployments, MachineSets and Machines first (kubectl get machines -A), then delete the package."

// ClusterUsageGroupVersionKind is the kind of the guard.
var ClusterUsageGroupVersionKind = schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "ClusterUsage"}

// newUsage returns a ClusterUsage with nothing but its name.
func newUsage() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ClusterUsageGroupVersionKind)
	u.SetName(UsageName)
	return u
}

// desiredSpec of the ClusterUsage. It leaves out replayDeletion, by which Crossplane would
// delete the Provider with the last Machine after one denied attempt.
func desiredSpec(provider string) map[string]any {
	return map[string]any{
		"of": map[string]any{
			"apiVersion":  providerGroup + "/" + providerVersion,
			"kind":        providerKind,
			"resourceRef": map[string]any{"name": provider},
		},
		"reason": Reason,
	}
}

// usageOf returns what the decision needs to know of a ClusterUsage.
func usageOf(u *unstructured.Unstructured) *usage {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec") // A malformed spec differs from the desired one.
	return &usage{spec: spec, terminating: u.GetDeletionTimestamp() != nil}
}
