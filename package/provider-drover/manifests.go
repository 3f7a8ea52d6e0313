// Package manifests holds the manifests of provider-drover that its users apply.
package manifests

import _ "embed"

// TargetRights are the rights that Drover needs in a cluster that Machines join.
//
//go:embed rbac-target.yaml
var TargetRights []byte

// ClientCertificateRights are the additional rights to approve the client certificates of kubelets.
//
//go:embed rbac-target-client-certificates.yaml
var ClientCertificateRights []byte
