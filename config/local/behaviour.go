package local

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	api "github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/terraform/localcloud"

	"github.com/drover-dev/drover/internal/lift"
)

// Behaviours of the generated resources, by their names in Terraform.
var Behaviours = map[string]lift.Behaviour{
	VirtualMachine: {Ready: ready, CreationUnknown: creationUnknown},
}

// ready returns the condition Ready for the VM's state in status.atProvider, with Terraform's
// names.
func ready(state map[string]any) xpv2.Condition {
	switch s := text(state["state"]); api.State(s) {
	case api.StateRunning:
		return xpv2.Available()
	case api.StateFailed:
		e, _ := state["error"].(map[string]any)
		return xpv2.Unavailable().WithMessage(fmt.Sprintf("%s: %s", text(e["code"]), text(e["message"])))
	case api.StateTerminating:
		return xpv2.Deleting()
	default:
		return xpv2.Creating().WithMessage("state: " + s)
	}
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func creationUnknown(err error) bool {
	return strings.Contains(err.Error(), localcloud.CodeCreationUnknown+": ")
}
