package forecast_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/kubectl/forecast"
)

func TestTheExitCodeTellsTheOutcome(t *testing.T) {
	field := []forecast.Field{{Path: "spec.replicas"}}
	paused := []forecast.Block{{Reason: "MachineDeploymentPaused", All: true}}
	budget := []forecast.Block{{Reason: "PodDisruptionBudget"}}
	for name, tc := range map[string]struct {
		all  []forecast.Forecast
		want forecast.Outcome
		code int
	}{
		"NoChange":                         {[]forecast.Forecast{{}}, forecast.OutcomeNothing, 0},
		"NoChangeOfAPausedOne":             {[]forecast.Forecast{{Blocks: paused}}, forecast.OutcomeNothing, 0},
		"AFieldThatReachesMachines":        {[]forecast.Forecast{{Fields: field}}, forecast.OutcomeInPlace, 2},
		"AnUpdateInPlace":                  {[]forecast.Forecast{{Fields: field, Updated: []string{"a"}}}, forecast.OutcomeInPlace, 2},
		"AnUpdateThatWaitsForASelection":   {[]forecast.Forecast{{Fields: field, Updated: []string{"a"}, Waiting: []string{"b"}}}, forecast.OutcomeInPlace, 2},
		"AReplacement":                     {[]forecast.Forecast{{Fields: field, Replaced: []string{"a"}, Created: 1}}, forecast.OutcomeReplaces, 3},
		"AnotherMachine":                   {[]forecast.Forecast{{Fields: field, Created: 1}}, forecast.OutcomeReplaces, 3},
		"OneLess":                          {[]forecast.Forecast{{Fields: field, Deleted: []string{"a"}}}, forecast.OutcomeReplaces, 3},
		"OneThatAUserDeletes":              {[]forecast.Forecast{{Fields: field, Waiting: []string{"a"}}}, forecast.OutcomeReplaces, 3},
		"ABudgetBlocksForATimeOnly":        {[]forecast.Forecast{{Fields: field, Replaced: []string{"a"}, Blocks: budget}}, forecast.OutcomeReplaces, 3},
		"ARolloutThatIsPaused":             {[]forecast.Forecast{{Fields: field, Waiting: []string{"a"}, Blocks: paused}}, forecast.OutcomeBlocked, 4},
		"TheGreatestOfSeveral":             {[]forecast.Forecast{{Fields: field}, {Fields: field, Created: 1}, {}}, forecast.OutcomeReplaces, 3},
		"OneThatIsBlockedBesideAnotherOne": {[]forecast.Forecast{{Fields: field, Blocks: paused}, {Created: 1}}, forecast.OutcomeBlocked, 4},
	} {
		t.Run(name, func(t *testing.T) {
			got := forecast.OutcomeOf(tc.all)
			if got != tc.want || got.ExitCode() != tc.code {
				t.Errorf("%s, exit code %d, want %s, %d", got, got.ExitCode(), tc.want, tc.code)
			}
		})
	}
}
