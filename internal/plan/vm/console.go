package vm

import (
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/userdata"
)

// readConsole returns what the console of a VM shows. Of a Machine that has joined it is not
// read: it explains nothing any more.
func readConsole(text string, o Observed) *plan.Console {
	out := &plan.Console{}
	if text == "" || o.Machine.Status.ReadySince != nil {
		return out
	}
	out.Excerpt = console.Excerpt(text, o.Secrets...)
	out.Step = console.LastStep(out.Excerpt, userdata.StepNames(o.UserData))
	if out.Step == nil {
		// What the steps report comes after it.
		out.Refusal = console.Refusal(out.Excerpt)
	}
	return out
}
