//go:build tools

// Package velero pins the commands that the tests of the recipe with Velero run.
package velero

import (
	_ "github.com/johannesboyne/gofakes3/cmd/gofakes3"
	_ "github.com/vmware-tanzu/velero-plugin-for-aws/velero-plugin-for-aws"
	_ "github.com/vmware-tanzu/velero/cmd/velero"
)
