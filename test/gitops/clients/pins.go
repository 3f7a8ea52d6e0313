//go:build tools

// Package clients pins the Crossplane CLI that test/gitops runs.
package clients

import _ "github.com/crossplane/cli/v2/cmd/crossplane"
