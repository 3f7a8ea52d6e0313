package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/internal/schematest"
	"github.com/drover-dev/drover/test/examples"
)

const crds = "../../../package/provider-terraform/crds/terraform.drover.dev_"

func TestSchemas(t *testing.T) {
	config := func(provider string) string {
		return `{spec: {provider: {` + provider + `}, virtualMachines: [{type: fake_vm, arguments: [{argument: name, value: name}], userData: {argument: user_data}, outputs: {providerID: state.id}}]}}`
	}
	sum := strings.Repeat("0a", 32)
	cases := map[string]struct{ crd, object, want string }{
		"AConfiguration":                    {"clusterproviderconfigs.yaml", config(`source: hetznercloud/hcloud, version: 1.68.0, sha256: ["` + sum + `"]`), ""},
		"AHostIsAllowed":                    {"clusterproviderconfigs.yaml", config(`source: "registry.example.org:5000/a/b", version: 1.0.0-rc1, sha256: ["` + sum + `"]`), ""},
		"ASourceIsNoPath":                   {"clusterproviderconfigs.yaml", config(`source: ../../bin/sh, version: 1.68.0, sha256: ["` + sum + `"]`), "spec.provider.source"},
		"AVersionIsNoConstraint":            {"clusterproviderconfigs.yaml", config(`source: a/b, version: "~> 1.68", sha256: ["` + sum + `"]`), "spec.provider.version"},
		"AProgramNeedsADigest":              {"clusterproviderconfigs.yaml", config(`source: a/b, version: 1.0.0, sha256: []`), "spec.provider.sha256"},
		"ADigestIsHexadecimal":              {"clusterproviderconfigs.yaml", config(`source: a/b, version: 1.0.0, sha256: ["h1:abc="]`), "spec.provider.sha256[0]"},
		"AConfigurationAllowsTypes":         {"clusterproviderconfigs.yaml", `{spec: {provider: {source: a/b, version: 1.0.0, sha256: ["` + sum + `"]}, virtualMachines: []}}`, "spec.virtualMachines"},
		"AVM":                               {"virtualmachines.yaml", `{spec: {forProvider: {name: a, arguments: {size: large, nic: [{network: n}]}}}}`, ""},
		"ArgumentsAreAnObject":              {"virtualmachines.yaml", `{spec: {forProvider: {arguments: [a]}}}`, "spec.forProvider.arguments"},
		"OneThatIsOnlyLookedAtNeedsNothing": {"virtualmachines.yaml", `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}

func TestTheExamplesAreValid(t *testing.T) {
	for _, file := range []string{"providerconfig.yaml", "providerconfig-openstack.yaml"} {
		b, err := examples.Read("../../../examples/terraform/" + file)
		if err != nil {
			t.Fatal(err)
		}
		o := map[string]any{}
		if err := yaml.Unmarshal(b, &o); err != nil {
			t.Fatal(err)
		}
		if errs := schematest.Load(t, crds+"clusterproviderconfigs.yaml").Validate(o, nil); len(errs) > 0 {
			t.Errorf("%s: %v", file, errs.ToAggregate())
		}
	}
}
