// Package drover holds the files of the repository that users apply, under the paths that the docs name.
package drover

import "embed"

// Registry is the registry and organization that the manifests name: the one that releases have by default.
const Registry = "xpkg.drover.dev/drover"

// Completion is the script that kubectl runs to complete "kubectl drover". Its name must be kubectl_complete-drover, and
// it must be in a folder of PATH: see kubectl completion --help.
//
//go:embed package/krew/kubectl_complete-drover
var Completion string

// Manifests are rights, policies, runtime configurations, the Compositions of Machines, and examples. They name
// the default registry.
//
//go:embed package/policies/*.yaml package/provider-drover/*.yaml apis/machine/compositions/machine-*.yaml examples/*/*.yaml
var Manifests embed.FS
