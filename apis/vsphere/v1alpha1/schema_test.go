package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-vsphere/crds/vsphere.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty if there is none
	}{
		"AVMWithWhatIsRequired":       {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c}}}`, ""},
		"AVMInAPool":                  {vm, `{spec: {forProvider: {name: vm, template: t, resourcePool: p}}}`, ""},
		"AVMThatIsObservedNeedsNone":  {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":               {vm, `{spec: {forProvider: {template: t, cluster: c}}}`, "spec.forProvider.name is required"},
		"AVMNeedsATemplate":           {vm, `{spec: {forProvider: {name: vm, cluster: c}}}`, "spec.forProvider.template is required"},
		"AVMNeedsAPlace":              {vm, `{spec: {forProvider: {name: vm, template: t}}}`, "spec.forProvider.cluster or spec.forProvider.resourcePool is required"},
		"OneKindOfStorage":            {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, datastore: d, datastoreCluster: e}}}`, "set datastore or datastoreCluster, not both"},
		"ALinkedCloneDoesNotGrow":     {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, cloneMode: Linked, diskSizeGiB: 9}}}`, "diskSizeGiB: the disk of a linked clone"},
		"ASnapshotIsForLinkedClones":  {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, snapshot: s}}}`, "snapshot is only for cloneMode Linked"},
		"CoresFillSockets":            {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, cpus: 6, coresPerSocket: 4}}}`, "cpus must be a multiple of coresPerSocket"},
		"MemoryIsAMultipleOf4":        {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, memoryMiB: 4097}}}`, "should be a multiple of 4"},
		"OneSourceOfUserData":         {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, guestInfo: {userData: x, userDataSecretRef: {name: s, key: k}}}}}`, "set userData or userDataSecretRef, not both"},
		"ExtraConfigIsNotForUserData": {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, extraConfig: {guestinfo.userdata: x}}}}`, "user data and metadata are set by guestInfo"},
		"ATagByID":                    {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, tags: [{id: x}]}}}`, ""},
		"ATagByName":                  {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, tags: [{category: x, name: tag}]}}}`, ""},
		"ATagByHalfAName":             {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, tags: [{name: tag}]}}}`, "set id, or category and name"},
		"DataDisks":                   {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, dataDisks: [{sizeGiB: 1}, {sizeGiB: 9, provisioningMode: EagerlyZeroed, datastore: d}]}}}`, ""},
		"ADataDiskNeedsASize":         {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, dataDisks: [{provisioningMode: Thin}]}}}`, "spec.forProvider.dataDisks[0].sizeGiB: Required"},
		"ADataDiskIsNotEmpty":         {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, dataDisks: [{sizeGiB: 0}]}}}`, "spec.forProvider.dataDisks[0].sizeGiB: Invalid value: 0"},
		"AnUnknownProvisioningMode":   {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, dataDisks: [{sizeGiB: 1, provisioningMode: thin}]}}}`, `supported values: "Thin", "Thick", "EagerlyZeroed"`},
		"TooManyDataDisks":            {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, dataDisks: [` + strings.Repeat("{sizeGiB: 1},", 30) + `]}}}`, "spec.forProvider.dataDisks: Too many: 30: must have at most 29 items"},
		"AnAntiAffinityGroup":         {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, antiAffinityGroup: workers-1}}}`, ""},
		"AGroupIsALabel":              {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, antiAffinityGroup: a.b}}}`, "spec.forProvider.antiAffinityGroup"},
		"AnUnknownAdapter":            {vm, `{spec: {forProvider: {name: vm, template: t, cluster: c, networks: [{name: n, adapter: ne2000}]}}}`, `supported values: "vmxnet3"`},
		"ANameWithASlash":             {vm, `{spec: {forProvider: {name: a/b, template: t, cluster: c}}}`, "spec.forProvider.name"},

		"AProviderConfigNeedsNoNamespace":     {config, `{spec: {server: v, credentials: {secretRef: {name: s}}}}`, ""},
		"AServerMayBeAURL":                    {config, `{spec: {server: "https://[2001:db8::1]:8443/sdk", credentials: {secretRef: {name: s}}}}`, ""},
		"AServerIsNoSentence":                 {config, `{spec: {server: "user@host", credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerIsRequired":                   {config, `{spec: {credentials: {secretRef: {name: s}}}}`, "spec.server: Required"},
		"ACertificateIsCheckedOrNot":          {config, `{spec: {server: v, insecureSkipVerify: true, caBundle: eA==, credentials: {secretRef: {name: s}}}}`, "set one of them"},
		"AClusterProviderConfigNeedsOne":      {cluster, `{spec: {server: v, credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
		"AClusterProviderConfigWithOneIsFine": {cluster, `{spec: {server: v, credentials: {secretRef: {name: s, namespace: ns}}}}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
