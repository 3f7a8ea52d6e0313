//go:build tools

// Package cluster pins the Crossplane core that the local control plane runs.
package cluster

import _ "github.com/crossplane/crossplane/v2/cmd/crossplane"
