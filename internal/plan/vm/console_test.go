package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	"github.com/drover-dev/drover/internal/plan"
)

func TestReadConsole(t *testing.T) {
	const (
		expression = `vm.status.?console.orValue("")`
		userData   = "#cloud-config\nwrite_files:\n- path: /opt/drover/bin/steps/00-disks\n"
		failed     = "drover-bootstrap: step disks: started\nno disk\ndrover-bootstrap: step disks: failed (exit 7), trying again in 5s\n"
		refused    = "ignition[1]: Ignition failed: no config\n"
	)
	for name, tc := range map[string]struct {
		reason     string
		expression string
		status     any
		userData   string
		ready      bool
		want       *plan.Console
		err        string
	}{
		"NoneIsReported":       {"the binding has no expression", "", "x", userData, false, nil, ""},
		"NothingIsKnown":       {"the provider has not read it", expression, nil, userData, false, &plan.Console{}, ""},
		"OfAMachineThatJoined": {"it explains nothing any more", expression, failed, userData, true, &plan.Console{}, ""},
		"AStep":                {"the user data has it", expression, failed, userData, false, &plan.Console{Excerpt: failed, Step: &console.Step{Name: "disks", State: console.Failed, ExitCode: 7, Output: "no disk"}}, ""},
		"OwnUserData":          {"it has no steps", expression, failed, "#!/bin/sh\n", false, &plan.Console{Excerpt: failed}, ""},
		"UserDataIsRefused":    {"by Ignition", expression, refused, userData, false, &plan.Console{Excerpt: refused, Refusal: "Ignition failed: no config"}, ""},
		"AStepIsMoreRecent":    {"a module of cloud-init may fail beside", expression, refused + failed, userData, false, &plan.Console{Excerpt: refused + failed, Step: &console.Step{Name: "disks", State: console.Failed, ExitCode: 7, Output: "no disk"}}, ""},
		"SecretsAreMasked":     {"those that the user data was filled with", expression, "got s3cr3t-s3cr3t-16 and 0123ab.0123456789abcdef\n", "", false, &plan.Console{Excerpt: "got (secret) and (token)\n"}, ""},
		"AnExcerptOfAnyText":   {"a provider may report too much", expression, strings.Repeat("\x1b[31mx\n", 9999), "", false, &plan.Console{Excerpt: strings.Repeat("x\n", console.MaxLines)}, ""},
		"NotAText":             {"the expression is wrong", expression, []any{"x"}, "", false, &plan.Console{}, "status.console"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input()
			in.Status.Console = tc.expression
			b, err := Bind(in)
			if err != nil {
				t.Fatal(err)
			}
			status := map[string]any{"id": "test:///1"}
			if tc.status != nil {
				status["console"] = tc.status
			}
			o := Observed{Machine: &machinev1alpha1.Machine{}, UserData: tc.userData, Secrets: []string{"s3cr3t-s3cr3t-16"}}
			there := vm(nil, status)
			o.VM = &there
			if tc.ready {
				o.Machine.Status.ReadySince = &metav1.Time{}
			}
			got, err := read(b, o)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if d := cmp.Diff(tc.want, got.Console); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

func TestAConsoleMustBeText(t *testing.T) {
	in := input()
	in.Status.Console = "1 + 1"
	if _, err := Bind(in); err == nil || !strings.Contains(err.Error(), "status.console") {
		t.Errorf("error %v", err)
	}
}
