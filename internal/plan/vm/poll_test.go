package vm

import (
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func TestPollInterval(t *testing.T) {
	cases := map[string]struct{ expression, want, err string }{
		"NoneByDefault":                     {"", "", ""},
		"OneOfTheClass":                     {`class.spec.forProvider.?spot.orValue(false) ? "1m" : ""`, "1m", ""},
		"TheShortestThatThereMayBe":         {`"10s"`, "10s", ""},
		"AnEmptyOneIsNone":                  {`""`, "", ""},
		"OneThatIsNoDurationIsRefused":      {`"often"`, "", `gives "often"`},
		"OneThatCostsTooManyRequests":       {`"1s"`, "", "at least 10s"},
		"AnExpressionThatFailsNamesItself":  {`class.spec.forProvider.nothing`, "", "virtualMachine.pollInterval"},
		"AnExpressionOfTheWrongTypeIsNoted": {`class.spec.forProvider.spot`, "", "virtualMachine.pollInterval"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, o := single(t, func(in *fn.Infrastructure) { in.VirtualMachine.PollInterval = tc.expression })
			o.Class.Spec.ForProvider.Raw = []byte(`{"spot": true}`)
			made, problem := render(b, o, "")
			if tc.err != "" {
				if problem == nil || problem.Reason != "BindingInvalid" || !strings.Contains(problem.Message, tc.err) {
					t.Errorf("%+v, want %q", problem, tc.err)
				}
				return
			}
			if problem != nil {
				t.Fatal(problem.Message)
			}
			if got := made.vm.GetAnnotations()[meta.AnnotationKeyPollInterval]; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			kept := plan.AsObserved(plan.Object{Unstructured: made.vm}, o.Machine)
			if got := kept.GetAnnotations()[meta.AnnotationKeyPollInterval]; got != tc.want {
				t.Errorf("%q is kept once the VM exists, want %q", got, tc.want)
			}
		})
	}
}
