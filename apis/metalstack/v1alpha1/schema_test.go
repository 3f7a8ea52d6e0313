package v1alpha1_test

import (
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const crds = "../../../package/provider-metalstack/crds/metalstack.drover.dev_"

func TestSchemas(t *testing.T) {
	const vm, config, cluster = "virtualmachines.yaml", "providerconfigs.yaml", "clusterproviderconfigs.yaml"
	cases := map[string]struct {
		crd, object string
		want        string // part of the error; empty for none
	}{
		"AVMWithItsRequiredFields":  {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw]}}}`, ""},
		"AVMWithAFailureDomain":     {vm, `{spec: {forProvider: {name: vm, failureDomain: p, size: s, image: i, failureDomains: [{name: p, networks: [nw]}]}}}`, ""},
		"AnObservedVMNeedsNoFields": {vm, `{spec: {managementPolicies: [Observe, Delete], forProvider: {}}}`, ""},
		"AVMNeedsAName":             {vm, `{spec: {forProvider: {partition: p, size: s, image: i, networks: [nw]}}}`, "spec.forProvider.name is required"},
		"AVMNeedsAPartition":        {vm, `{spec: {forProvider: {name: vm, size: s, image: i, networks: [nw]}}}`, "spec.forProvider.partition or spec.forProvider.failureDomain is required"},
		"AVMNeedsASize":             {vm, `{spec: {forProvider: {name: vm, partition: p, image: i, networks: [nw]}}}`, "spec.forProvider.size is required"},
		"AVMNeedsAnImage":           {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, networks: [nw]}}}`, "spec.forProvider.image is required"},
		"AVMNeedsNetworks":          {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i}}}`, "spec.forProvider.networks is required"},
		"OneSourceOfUserData":       {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], userData: x, userDataSecretRef: {name: s, key: k}}}}`, "set userData or userDataSecretRef, not both"},
		"ANameInUpperCase":          {vm, `{spec: {forProvider: {name: VM, partition: p, size: s, image: i, networks: [nw]}}}`, "spec.forProvider.name"},
		"ASizeWithAPath":            {vm, `{spec: {forProvider: {name: vm, partition: p, size: ../s, image: i, networks: [nw]}}}`, "spec.forProvider.size"},
		"ASSHKey":                   {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], sshKeys: ["ssh-ed25519 AAAA ops"]}}}`, ""},
		"AnSSHKeyThatIsNone":        {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], sshKeys: ["-----BEGIN OPENSSH PRIVATE KEY-----"]}}}`, "spec.forProvider.sshKeys[0]"},
		"FourDNSServers":            {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], dnsServers: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4]}}}`, "spec.forProvider.dnsServers"},
		"TwoNTPServers":             {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], ntpServers: [a, b]}}}`, "spec.forProvider.ntpServers"},
		"TheTagOfTheProvider":       {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], tags: {drover-vm: x}}}}`, "the keys drover-vm and machine.metal-stack.io/... are reserved"},
		"ATagOfMetalStack":          {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], tags: {machine.metal-stack.io/rack: x}}}}`, "are reserved"},
		"ATagOfMetalCCM":            {vm, `{spec: {forProvider: {name: vm, partition: p, size: s, image: i, networks: [nw], tags: {cluster.metal-stack.io/id: x}}}}`, ""},

		"AProviderConfigNeedsNoNamespace": {config, `{spec: {server: "https://api/metal", project: p, credentials: {secretRef: {name: s}}}}`, ""},
		"AServerIsAURL":                   {config, `{spec: {server: api, project: p, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasTLS":                   {config, `{spec: {server: "http://api", project: p, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasNoUser":                {config, `{spec: {server: "https://admin@api", project: p, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AServerHasNoQuery":               {config, `{spec: {server: "https://api/metal?x=y", project: p, credentials: {secretRef: {name: s}}}}`, "spec.server"},
		"AProjectIsRequired":              {config, `{spec: {server: "https://api", credentials: {secretRef: {name: s}}}}`, "spec.project"},
		"AProjectHasNoPath":               {config, `{spec: {server: "https://api", project: a/b, credentials: {secretRef: {name: s}}}}`, "spec.project"},
		"ACertificateIsCheckedOrNot":      {config, `{spec: {server: "https://api", project: p, insecureSkipVerify: true, caBundle: eA==, credentials: {secretRef: {name: s}}}}`, "set one of them"},
		"AClusterProviderConfigNeedsOne":  {cluster, `{spec: {server: "https://api", project: p, credentials: {secretRef: {name: s}}}}`, "spec.credentials.secretRef.namespace is required"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schematest.Check(t, crds+tc.crd, tc.object, tc.want)
		})
	}
}
