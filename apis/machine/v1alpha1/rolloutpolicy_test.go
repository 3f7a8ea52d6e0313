package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const (
	policyCRD = "../../../package/provider-drover/crds/machine.drover.dev_rolloutpolicies.yaml"
	policy    = `
apiVersion: machine.drover.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: fleet}
spec: {delay: 1m, waves: [{name: development, matchLabels: {stage: development}, soak: 24h, deadline: 12h, afterDeadline: Hold}, {name: all}]}
`
)

// TestAMistakeInARolloutPolicyIsAnswered with the field, its value and what is allowed.
func TestAMistakeInARolloutPolicyIsAnswered(t *testing.T) {
	wave := func(key string, value any) []any {
		return []any{map[string]any{"name": "a", key: value}}
	}
	for name, tc := range map[string]struct {
		path  string
		value any
		want  []string
	}{
		"NoWaves":                 {"spec.waves", []any{}, []string{"spec.waves", "at least 1"}},
		"ANameInCapitals":         {"spec.waves", []any{map[string]any{"name": "Dev"}}, []string{"spec.waves[0].name", `"Dev"`, "must be a name of lower-case letters"}},
		"AWaveWithoutAName":       {"spec.waves", []any{map[string]any{"soak": "1h"}}, []string{"spec.waves[0].name", "Required value"}},
		"ASoakWithoutAUnit":       {"spec.waves", wave("soak", "30"), []string{"spec.waves[0].soak", `"30"`, "must be a duration"}},
		"ASoakOfYears":            {"spec.waves", wave("soak", "9000h"), []string{"spec.waves[0].soak", "must be at most 8760h"}},
		"ADeadlineOfSeconds":      {"spec.waves", wave("deadline", "10s"), []string{"spec.waves[0].deadline", "must be from 1m to 8760h"}},
		"AnEffectThatIsUnknown":   {"spec.waves", wave("afterDeadline", "Ignore"), []string{"spec.waves[0].afterDeadline", `"Ignore"`, `"Hold", "Continue"`}},
		"ANamespaceThatIsNone":    {"spec.waves", wave("namespaces", []any{"team-[ab]"}), []string{"spec.waves[0].namespaces[0]", "team-[ab]"}},
		"NoNamespaceAtAll":        {"spec.waves", wave("namespaces", []any{}), []string{"spec.waves[0].namespaces"}},
		"AClusterWithoutAName":    {"spec.waves", wave("clusters", []any{""}), []string{"spec.waves[0].clusters[0]"}},
		"ADelayOfNothing":         {"spec.delay", "0s", []string{"spec.delay", "must be from 1s to 24h"}},
		"ANameThatIsTooLong":      {"metadata.name", strings.Repeat("a", 64), []string{"must have at most 63 characters"}},
		"LabelsThatSelectNothing": {"spec.waves", wave("matchLabels", map[string]any{}), []string{"spec.waves[0].matchLabels"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := schematest.Load(t, policyCRD)
			if errs := s.Validate(parse(t, policy), nil); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			obj := parse(t, policy)
			setPath(obj, tc.path, tc.value)
			err := s.Validate(obj, nil).ToAggregate()
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}
