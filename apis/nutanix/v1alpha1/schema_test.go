package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-nutanix/crds/nutanix.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":  {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048}}}`, ""},
		"AVMWithAFailureDomain":     {vm, `{spec: {forProvider: {name: vm, failureDomain: east, image: i, memoryMiB: 2048}}}`, ""},
		"AnObservedVMNeedsNoFields": {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":             {vm, `{spec: {forProvider: {cluster: east, image: i, memoryMiB: 2048}}}`, "spec.forProvider.name is required"},
		"AVMNeedsACluster":          {vm, `{spec: {forProvider: {name: vm, image: i, memoryMiB: 2048}}}`, "spec.forProvider.cluster or spec.forProvider.failureDomain is required"},
		"AVMNeedsAnImage":           {vm, `{spec: {forProvider: {name: vm, cluster: east, memoryMiB: 2048}}}`, "spec.forProvider.image is required"},
		"AVMNeedsMemory":            {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i}}}`, "spec.forProvider.memoryMiB is required"},
		"OneSourceOfUserData":       {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, userData: x, userDataSecretRef: {name: s, key: k}}}}`, "set userData or userDataSecretRef, not both"},
		"ADiskHasOneSource":         {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, dataDisks: [{sizeGiB: 1, image: i, storageContainer: s}]}}}`, "set image or storageContainer, not both"},
		"SecureBootHasNoIDE":        {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, bootType: SecureBoot, dataDisks: [{sizeGiB: 1, busType: IDE}]}}}`, "busType IDE is not possible with bootType SecureBoot"},
		"AnUnknownBootType":         {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, bootType: uefi}}}`, `supported values: "Legacy"`},
		"AnUnknownModeOfAGPU":       {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, gpus: [{mode: SHARED, deviceID: 1, vendor: NVIDIA}]}}}`, "spec.forProvider.gpus"},
		"ANameWithASlash":           {vm, `{spec: {forProvider: {name: a/b, cluster: east, image: i, memoryMiB: 2048}}}`, "spec.forProvider.name"},
		"NoVCPUs":                   {vm, `{spec: {forProvider: {name: vm, cluster: east, image: i, memoryMiB: 2048, vcpuSockets: 0}}}`, "spec.forProvider.vcpuSockets"},

		"AProviderConfigNeedsNoNamespace": {config, `{spec: {server: "https://prism", credentials: {secretRef: {name: s}}}}`, ""},
		"AServerIsAURL":                   {config, `{spec: {server: prism, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasTLS":                   {config, `{spec: {server: "http://prism", credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasNoUser":                {config, `{spec: {server: "https://admin@prism", credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"ACertificateIsCheckedOrNot":      {config, `{spec: {server: "https://prism", insecureSkipVerify: true, caBundle: eA==, credentials: {secretRef: {name: s}}}}`, "set one of them"},
		"AClusterProviderConfigNeedsOne":  {cluster, `{spec: {server: "https://prism", credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
