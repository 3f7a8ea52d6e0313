// Package v1alpha1 holds the inputs of the steps that function-drover serves. The kind of a step's
// input selects the step.
//
// +kubebuilder:object:generate=true
// +groupName=fn.drover.dev
// +versionName=v1alpha1
package v1alpha1

// Group and version of the inputs in this package.
const (
	Group   = "fn.drover.dev"
	Version = "v1alpha1"
)
