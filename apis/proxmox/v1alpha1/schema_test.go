package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-proxmox/crds/proxmox.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":  {vm, `{spec: {forProvider: {name: vm, template: "9000"}}}`, ""},
		"AVMWithUserData":           {vm, `{spec: {forProvider: {name: vm, template: t, cloudInit: {storage: local}, userDataSecretRef: {name: s, key: k}}}}`, ""},
		"AnObservedVMNeedsNoFields": {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":             {vm, `{spec: {forProvider: {template: t}}}`, "spec.forProvider.name is required"},
		"AVMNeedsATemplate":         {vm, `{spec: {forProvider: {name: vm}}}`, "spec.forProvider.template is required"},
		"UserDataNeedsAStorage":     {vm, `{spec: {forProvider: {name: vm, template: t, userData: x}}}`, "spec.forProvider.cloudInit is required for user data"},
		"OneSourceOfUserData":       {vm, `{spec: {forProvider: {name: vm, template: t, cloudInit: {storage: local}, userData: x, userDataSecretRef: {name: s, key: k}}}}`, "set userData or userDataSecretRef, not both"},
		"ALinkedCloneStays":         {vm, `{spec: {forProvider: {name: vm, template: t, cloneMode: Linked, storage: s}}}`, "storage: a linked clone is on the storage of its template"},
		"ATagInLowerCase":           {vm, `{spec: {forProvider: {name: vm, template: t, tags: [Kubernetes]}}}`, "spec.forProvider.tags"},
		"AnUnknownModel":            {vm, `{spec: {forProvider: {name: vm, template: t, networks: [{bridge: vmbr0, model: ne2000}]}}}`, `supported values: "virtio"`},
		"AVLANThatThereIsNot":       {vm, `{spec: {forProvider: {name: vm, template: t, networks: [{bridge: vmbr0, vlan: 4095}]}}}`, "less than or equal to 4094"},
		"ANameWithASlash":           {vm, `{spec: {forProvider: {name: a/b, template: t}}}`, "spec.forProvider.name"},
		"ADeviceThatThereIsNot":     {vm, `{spec: {forProvider: {name: vm, template: t, cloudInit: {storage: local, device: ide4}}}}`, "spec.forProvider.cloudInit.device"},

		"AProviderConfigNeedsNoNamespace": {config, `{spec: {server: "https://pve", credentials: {secretRef: {name: s}}}}`, ""},
		"AServerIsAURL":                   {config, `{spec: {server: pve, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasNoUser":                {config, `{spec: {server: "https://root@pve", credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"ACertificateIsCheckedOrNot":      {config, `{spec: {server: "https://pve", insecureSkipVerify: true, caBundle: eA==, credentials: {secretRef: {name: s}}}}`, "set one of them"},
		"AClusterProviderConfigNeedsOne":  {cluster, `{spec: {server: "https://pve", credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
