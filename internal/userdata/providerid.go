package userdata

import (
	_ "embed"
	"strings"
)

//go:embed scripts/provider-id.sh
var providerIDScript string

// providerIDWriter returns the script that adds the output of the command to the kubelet's configuration. The
// command is the Composition's, and so trusted: it runs as it is.
func providerIDWriter(command string) string {
	return strings.Replace(providerIDScript, "@COMMAND@", strings.TrimRight(command, "\n"), 1)
}
