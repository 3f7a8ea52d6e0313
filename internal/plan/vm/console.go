package vm

import (
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// readConsole returns the observed console of a VM. It is empty for a Machine that has joined,
// because nothing is left to explain.
func readConsole(text string, o Observed) *plan.Console {
	out := &plan.Console{}
	if text == "" || o.Machine.Status.ReadySince != nil {
		return out
	}
	out.Excerpt = console.Excerpt(text, o.Secrets...)
	out.Step = console.LastStep(out.Excerpt, userdata.StepNames(o.UserData))
	if out.Step == nil {
		// The steps report only after user data was accepted.
		out.Refusal = console.Refusal(out.Excerpt)
	}
	return out
}
