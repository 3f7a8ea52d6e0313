package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-openstack/crds/openstack.drover.dev_"

func TestSchemas(t *testing.T) {
	cases := map[string]struct{ crd, object, want string }{
		"AProviderConfigNeedsNoNamespace": {"providerconfigs.yaml",
			`{spec: {authURL: "https://k/v3", credentials: {secretRef: {name: s}}}}`, ""},
		"AClusterProviderConfigNeedsOne": {"clusterproviderconfigs.yaml",
			`{spec: {authURL: "https://k/v3", credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"KeystoneIsSomewhere": {"providerconfigs.yaml",
			`{spec: {credentials: {secretRef: {name: s}}}}`, "spec.authURL"},
		"ItsAddressIsAURL": {"providerconfigs.yaml",
			`{spec: {authURL: "keystone", credentials: {secretRef: {name: s}}}}`, "spec.authURL"},
		"AnInstanceNeedsAName": {"virtualmachines.yaml",
			`{spec: {forProvider: {flavorName: a, imageName: b}}}`, "spec.forProvider.name is a required parameter"},
		"OneThatIsOnlyLookedAtNeedsNothing": {"virtualmachines.yaml",
			`{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"APortNeedsANetwork": {"ports.yaml",
			`{spec: {forProvider: {name: a, description: b}}}`, "spec.forProvider.networkId is a required parameter"},
		"APortNeedsADescription": {"ports.yaml",
			`{spec: {forProvider: {name: a, networkId: x}}}`, "spec.forProvider.description is a required parameter"},
		"AFloatingIPNeedsAPort": {"floatingips.yaml",
			`{spec: {forProvider: {description: b, pool: public}}}`, "spec.forProvider.portId is a required parameter"},
		"NetworksAreAList": {"virtualmachines.yaml",
			`{spec: {forProvider: {name: a, network: {name: nodes}}}}`, "network"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
