package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-vcd/crds/vcd.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	const secret = `credentials: {secretRef: {name: s}}`
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":  {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t}}}`, ""},
		"AVMWithAFailureDomain":     {vm, `{spec: {forProvider: {name: vm, failureDomain: east, catalog: c, template: t}}}`, ""},
		"AnObservedVMNeedsNoFields": {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":             {vm, `{spec: {forProvider: {vdc: east, catalog: c, template: t}}}`, "spec.forProvider.name is required"},
		"AVMNeedsAVDC":              {vm, `{spec: {forProvider: {name: vm, catalog: c, template: t}}}`, "spec.forProvider.vdc or spec.forProvider.failureDomain is required"},
		"AVMNeedsACatalog":          {vm, `{spec: {forProvider: {name: vm, vdc: east, template: t}}}`, "spec.forProvider.catalog is required"},
		"AVMNeedsATemplate":         {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c}}}`, "spec.forProvider.template is required"},
		"OneSourceOfUserData":       {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, userData: x, userDataSecretRef: {name: s, key: k}}}}`, "set userData or userDataSecretRef, not both"},
		"CoresDivideCPUs":           {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, cpus: 4, coresPerSocket: 2}}}`, ""},
		"CoresDoNotDivideCPUs":      {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, cpus: 4, coresPerSocket: 3}}}`, "must divide cpus"},
		"CoresWithoutCPUs":          {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, coresPerSocket: 2}}}`, "coresPerSocket requires cpus"},
		"MemoryOfAnOddSize":         {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, memoryMiB: 4097}}}`, "spec.forProvider.memoryMiB"},
		"AnUnknownMode":             {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, networks: [{name: n, ipAllocationMode: MANUAL}]}}}`, `supported values: "DHCP", "POOL"`},
		"ANetworkNeedsAName":        {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, networks: [{ipAllocationMode: POOL}]}}}`, "spec.forProvider.networks[0].name"},
		"ANameWithADot":             {vm, `{spec: {forProvider: {name: a.b, vdc: east, catalog: c, template: t}}}`, "spec.forProvider.name"},
		"NoCPUs":                    {vm, `{spec: {forProvider: {name: vm, vdc: east, catalog: c, template: t, cpus: 0}}}`, "spec.forProvider.cpus"},

		"AProviderConfigNeedsNoNamespace": {config, `{spec: {server: "https://vcd", organization: acme, ` + secret + `}}`, ""},
		"AnOrganizationIsRequired":        {config, `{spec: {server: "https://vcd", ` + secret + `}}`, "spec.organization"},
		"TheOrganizationIsThatOfATenant":  {config, `{spec: {server: "https://vcd", organization: System, ` + secret + `}}`, "must be that of a tenant"},
		"AServerIsAURL":                   {config, `{spec: {server: vcd, organization: acme, ` + secret + `}}`, "spec.server"},
		"AServerHasTLS":                   {config, `{spec: {server: "http://vcd", organization: acme, ` + secret + `}}`, "spec.server"},
		"AServerHasNoPath":                {config, `{spec: {server: "https://vcd/api", organization: acme, ` + secret + `}}`, "spec.server"},
		"ACertificateIsCheckedOrNot":      {config, `{spec: {server: "https://vcd", organization: acme, insecureSkipVerify: true, caBundle: eA==, ` + secret + `}}`, "set one of them"},
		"AClusterProviderConfigNeedsOne":  {cluster, `{spec: {server: "https://vcd", organization: acme, ` + secret + `}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
