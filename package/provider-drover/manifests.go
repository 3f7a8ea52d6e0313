// Package manifests holds what is shipped with provider-drover for its users to apply.
package manifests

import _ "embed"

// TargetRights are what Drover needs in a cluster that Machines join.
//
//go:embed rbac-target.yaml
var TargetRights []byte

// ClientCertificateRights are what it needs beside them where it is to approve the
// client certificates of kubelets.
//
//go:embed rbac-target-client-certificates.yaml
var ClientCertificateRights []byte
