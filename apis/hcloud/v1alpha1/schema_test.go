package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-hcloud/crds/hcloud.drover.dev_"

func TestSchemas(t *testing.T) {
	cases := map[string]struct{ crd, object, want string }{
		"AProviderConfigNeedsNoNamespace": {"providerconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s}}}}`, ""},
		"AClusterProviderConfigNeedsOne": {"clusterproviderconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"AnEndpointIsAURL": {"providerconfigs.yaml",
			`{spec: {endpoint: "api.example.org", credentials: {secretRef: {name: s}}}}`, "spec.endpoint"},
		"AnotherEndpointIsFine": {"providerconfigs.yaml",
			`{spec: {endpoint: "https://api.example.org:8443/v1", credentials: {secretRef: {name: s}}}}`, ""},
		"AServerNeedsAnImage": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31}}}`, "spec.forProvider.image is a required parameter"},
		"OneThatIsOnlyLookedAtNeedsNothing": {"virtualmachines.yaml",
			`{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"IDsAreNumbers": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, firewallIds: ["web"]}}}`, "firewallIds"},
		"APlacementGroupPrefixIsFine": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, placementGroupPrefix: workers-a}}}`, ""},
		"APlacementGroupPrefixIsAName": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, placementGroupPrefix: "Workers A"}}}`, "spec.forProvider.placementGroupPrefix"},
		"APlacementGroupPrefixIsShort": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, placementGroupPrefix: ` + strings.Repeat("a", 51) + `}}}`, "spec.forProvider.placementGroupPrefix"},
		"APlacementGroupPrefixExcludesAPlacementGroup": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, placementGroupPrefix: workers, placementGroupId: 7}}}`,
			"spec.forProvider.placementGroupId and spec.forProvider.placementGroupPrefix exclude each other"},
		"APlacementGroupPrefixExcludesAnInitialPlacementGroup": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, serverType: cpx31, image: ubuntu-24.04, placementGroupPrefix: workers}, initProvider: {placementGroupId: 7}}}`,
			"spec.forProvider.placementGroupId and spec.forProvider.placementGroupPrefix exclude each other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
