// Package manifests holds what is shipped with provider-drover for its users to apply.
package manifests

import _ "embed"

// TargetRights are what Drover needs in a cluster that Machines join.
//
//go:embed rbac-target.yaml
var TargetRights []byte
