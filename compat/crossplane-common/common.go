// Package common has the names that upjet v2.3.0 imports from crossplane-runtime's package of
// this path: see package v1.
package common

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Types of the present API.
type (
	SecretKeySelector = xpv2.SecretKeySelector
	SecretReference   = xpv2.SecretReference
)
