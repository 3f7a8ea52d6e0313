package packageguard

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// ClusterUsageGroupVersionKind is the kind of the guards.
var ClusterUsageGroupVersionKind = schema.GroupVersionKind{Group: "protection.crossplane.io", Version: "v1beta1", Kind: "ClusterUsage"}

// labelGuard marks the ClusterUsages of this controller, so that it watches only these.
const labelGuard = v1alpha1.Group + "/package-guard"

var guardLabels = map[string]string{labelGuard: "true"}

// newUsage returns a ClusterUsage with only its name and label.
func newUsage(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ClusterUsageGroupVersionKind)
	u.SetName(name)
	u.SetLabels(guardLabels)
	return u
}

// desiredSpec returns the spec of a ClusterUsage. It omits replayDeletion, by which Crossplane would
// delete the package with the last Machine after one denied attempt.
func desiredSpec(kind, name, reason string) map[string]any {
	return map[string]any{
		"of": map[string]any{
			"apiVersion":  packageGroup + "/" + packageVersion,
			"kind":        kind,
			"resourceRef": map[string]any{"name": name},
		},
		"reason": reason,
	}
}

// usageOf returns the parts of a ClusterUsage that the decision depends on.
func usageOf(u *unstructured.Unstructured) *usage {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec") // A malformed spec differs from the desired one.
	return &usage{spec: spec, terminating: u.GetDeletionTimestamp() != nil}
}
