package main

import (
	"fmt"
	"strings"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
)

const healthIntro = `# Health profiles

<!-- Generated from the profiles in the code by "make generate". Do not edit. -->

The HealthProfiles that Drover has built in: the conditions that agents set on Nodes, and the action that follows when one lasts.
[Profiles](../health.md#profiles) explains how to use them, and how to write one.
`

// renderHealthProfiles returns the page of the built-in HealthProfiles.
func renderHealthProfiles(*source) (string, error) {
	var out strings.Builder
	out.WriteString(healthIntro)
	for _, name := range healthprofile.Names() {
		p := healthprofile.BuiltIn(name).Spec
		fmt.Fprintf(&out, "\n## %s\n\n%s [Source](%s)\n\n| condition | status | action | after | meaning |\n|---|---|---|---|---|\n", name, cell(p.Description), p.Source)
		for _, c := range p.Conditions {
			after := "`health.timeout`"
			switch {
			case c.ActionOrDefault() == machinev1alpha1.HealthReport:
				after = "at once"
			case c.Timeout != nil:
				after = strings.TrimSuffix(strings.TrimSuffix(c.Timeout.Duration.String(), "0s"), "0m")
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", c.Type, c.Status, c.ActionOrDefault(), after, cell(c.Meaning))
		}
	}
	return out.String(), nil
}
