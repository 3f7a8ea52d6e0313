package apis

import "embed"

// Clouds has the entry of each cloud, NAME/cloud.yaml. The package internal/clouds reads them.
//
//go:embed */cloud.yaml
var Clouds embed.FS
