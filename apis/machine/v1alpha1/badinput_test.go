package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/schematest"
)

const nodePool = `
apiVersion: machine.drover.dev/v1alpha1
kind: NodePool
metadata: {name: web, namespace: team-a}
spec: {class: standard, size: 3}
`

const target = `
apiVersion: cluster.drover.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {credentials: {source: Secret, secretRef: {name: target, namespace: drover}}, allowedNamespaces: [team-a]}
`

const (
	poolXRD   = "../xrds/machine.drover.dev_nodepools.yaml"
	targetCRD = "../../../package/provider-drover/crds/cluster.drover.dev_clusterproviderconfigs.yaml"
)

// ofCloud returns the CRD of a cloud's ClusterProviderConfig, and an object of it.
func ofCloud(cloud, pkg, spec string) (crd, object string) {
	return "../../../package/provider-" + pkg + "/crds/" + cloud + ".drover.dev_clusterproviderconfigs.yaml",
		"apiVersion: " + cloud + ".drover.dev/v1alpha1\nkind: ClusterProviderConfig\nmetadata: {name: default}\n" +
			"spec: {" + spec + "credentials: {source: Secret, secretRef: {name: a, namespace: b, key: c}}}\n"
}

// TestAMistakeIsAnsweredWithFieldValueAndForm has mistakes as users make them. kubectl shows the error as it is here: it is the
// only help that the user gets.
func TestAMistakeIsAnsweredWithFieldValueAndForm(t *testing.T) {
	type object = map[string]any
	type list = []any
	of := func(crd, o string) func(name, path string, value any, want string) mistake {
		return func(name, path string, value any, want string) mistake {
			return mistake{name, crd, o, path, value, want}
		}
	}
	inDeployment, inClass, inPool, inTarget := of(deploymentXRD, deployment), of(classCRD, class), of(poolXRD, nodePool), of(targetCRD, target)
	inClusterClass, inMachine, inCollector := of(clusterCRD, clusterClass), of(machineCRD, machine), of(collectorXRD, collector)
	inOpenStack, inProxmox := of(ofCloud("openstack", "openstack", "authURL: 'https://a', ")), of(ofCloud("proxmox", "proxmox", "server: 'https://a', "))
	inVCD, inAlibaba := of(ofCloud("vcd", "vcd", "server: 'https://a', organization: a, ")), of(ofCloud("alibaba", "alibaba", "region: a, "))
	ofInventory := of(ofCloud("digitalocean", "inventory", ""))
	const (
		duration = "must be a duration of at most 87600h, with the largest unit first, such as 90s, 10m or 1h30m"
		key      = "must be a key as labels have it: a name of at most 63 letters, digits, -, _ and ., that begins and ends with a letter or a digit, and may follow a domain and a slash, such as example.org/dedicated"
		time     = "must be a time with a time zone from the year 1000 to 2999, such as 2026-11-27T08:00:00Z or 2026-11-27T09:00:00+01:00"
		base64   = "must be base64 of certificates in PEM, such as the output of: base64 -w0 ca.crt"
		name     = "must be a name of lower-case letters, digits, - and ., that begins and ends with a letter or a digit, such as"
	)
	for _, m := range []mistake{
		// Numbers, times and units.
		inDeployment("AVersionWithoutV", "spec.template.spec.version", "1.35.3", `spec.template.spec.version: Invalid value: "1.35.3": must be a kubelet version like v1.35.4`),
		inPool("AVersionWithoutPatch", "spec.version", "v1.35", `spec.version: Invalid value: "v1.35": must be a kubelet version like v1.35.4`),
		inMachine("AVersionWithATab", "spec.version", "v1.35.4\t", `spec.version: Invalid value: "v1.35.4\t": must be a kubelet version like v1.35.4`),
		inDeployment("APercentageWithoutItsSign", "spec.strategy.rollingUpdate.maxSurge", "25", `spec.strategy.rollingUpdate.maxSurge: Invalid value: "25": must be a number from 0 to 10000, or a percentage from 0% to 100%`),
		inDeployment("ADurationInDaysAndAHalf", "spec.template.spec.drain.timeout", "1.5d", `spec.template.spec.drain.timeout: Invalid value: "1.5d": `+duration),
		inCollector("ADurationInDaysThatAnotherRuleReads", "spec.gracePeriod", "1d", `spec.gracePeriod: Invalid value: "1d": `+duration),
		inDeployment("ATimeAsItStandsOnTheWall", "spec.rollout", object{"after": "2026-11-27 08:00"}, `spec.rollout.after: Invalid value: "2026-11-27 08:00": `+time),
		inDeployment("ATimeWithoutAZone", "spec.rollout", object{"after": "2026-11-27T08:00:00"}, `spec.rollout.after: Invalid value: "2026-11-27T08:00:00": `+time),
		inDeployment("ATimeOnTheThirtiethOfFebruary", "spec.rollout", object{"after": "2026-02-30T08:00:00Z"}, `spec.rollout.after: Invalid value: "2026-02-30T08:00:00Z": `+time),
		inDeployment("ATimeOnTheLeapDayOfAnotherYear", "spec.rollout", object{"after": "2027-02-29T08:00:00Z"}, `spec.rollout.after: Invalid value: "2027-02-29T08:00:00Z": `+time),
		inClass("AMemoryInGB", "spec.nodeCapacity", object{"capacity": object{"memory": "16GB"}}, `spec.nodeCapacity.capacity[memory]: Invalid value: "16GB": must be a quantity, such as 500m, 4 or 16Gi`),
		inPool("AMinimumAboveTheMaximum", "spec", object{"class": "a", "autoscaling": object{"min": int64(5), "max": int64(2)}}, "spec.autoscaling: Invalid value: min must not be above max"),

		// Labels, taints and annotations.
		inDeployment("ATaintWithASpace", "spec.template.spec.taints", list{object{"key": "a b", "effect": "NoSchedule"}}, `spec.template.spec.taints[0].key: Invalid value: "a b": `+key),
		inPool("ATaintOfADomainWithCapitals", "spec.taints", list{object{"key": "Example.org/a", "effect": "NoSchedule"}}, `spec.taints[0].key: Invalid value: "Example.org/a": `+key),
		inDeployment("ATaintWhoseValueHasASpace", "spec.template.spec.taints", list{object{"key": "a", "value": "x y", "effect": "NoSchedule"}},
			`spec.template.spec.taints[0].value: Invalid value: "x y": must be a text of letters, digits, -, _ and ., that begins and ends with a letter or a digit, or empty, such as blue`),
		inDeployment("ATaintAsKubectlWritesIt", "spec.template.spec.taints", list{"a=b:NoSchedule"}, "spec.template.spec.taints[0] in body must be of type object"),
		inDeployment("AnAnnotationOfNodesWithASpace", "spec.template.spec.metadata", object{"annotations": object{"a b": "c"}}, `the key "a b" must be a name of at most 63 letters, digits, -, _ and .`),
		inDeployment("AnAnnotationOfMachinesWithAMark", "spec.template.metadata.annotations", object{"a!": "b"}, `the key "a!" must be a name of at most 63 letters, digits, -, _ and .`),
		inPool("ALabelThatIsTooLong", "spec.labels", object{"team": strings.Repeat("a", 64)}, "the value of team must have at most 63 letters, digits, -, _ and ., and begin and end with a letter or a digit"),
		inDeployment("LabelsAsAList", "spec.template.spec.metadata", object{"labels": list{object{"a": "b"}}}, "spec.template.spec.metadata.labels in body must be of type object"),

		// Names of other objects.
		inDeployment("AClassOfAnotherNamespace", "spec.template.spec.classRef.name", "team-b/small", `spec.template.spec.classRef.name: Invalid value: "team-b/small": `+name),
		inMachine("AClassWithASpaceAtItsEnd", "spec.classRef.name", "small ", `spec.classRef.name: Invalid value: "small ": `+name),
		inDeployment("AClusterWithADashOfATextProgram", "spec.template.spec.clusterRef.name", "eu‐1", `spec.template.spec.clusterRef.name: Invalid value: "eu‐1": `+name),
		inDeployment("AClusterOfAnotherKind", "spec.template.spec.clusterRef", object{"kind": "Cluster", "name": "a"}, `spec.template.spec.clusterRef.kind: Unsupported value: "Cluster": supported values: "ProviderConfig", "ClusterProviderConfig"`),
		inClass("AConfigurationInCapitals", "spec.providerConfigRef.name", "Default", `spec.providerConfigRef.name: Invalid value: "Default": `+name),
		inClass("AProviderInCapitals", "spec.provider", "AWS", `spec.provider: Invalid value: "AWS": must be a name of lower-case letters, digits and -`),
		inClass("AProfileWithASpace", "spec.operatingSystem.profile", "Debian 12", `spec.operatingSystem.profile: Invalid value: "Debian 12": `+name+" debian-12-v1"),
		inClass("ASecretOfUserDataWithASpace", "spec.userData", object{"secretRef": object{"name": "my data"}}, `spec.userData.secretRef.name: Invalid value: "my data": `+name),
		inClass("AKeyOfUserDataWithASpace", "spec.userData", object{"secretRef": object{"name": "a", "key": "user data"}}, `spec.userData.secretRef.key: Invalid value: "user data": must be a key of a Secret: letters, digits, -, . and _, such as userdata`),
		inTarget("ASecretInCapitals", "spec.credentials.secretRef.name", "Kubeconfig", `spec.credentials.secretRef.name: Invalid value: "Kubeconfig": `+name),
		inTarget("AnEmptyKeyOfASecret", "spec.credentials.secretRef.key", "", `spec.credentials.secretRef.key: Invalid value: "": must be a key of a Secret`),
		inClusterClass("ANamespaceInCapitals", "spec.allowedNamespaces", list{"Team-A"}, `spec.allowedNamespaces[0]: Invalid value: "Team-A": must be a name of a namespace, in which each * stands for any number of characters, such as team-*`),
		inTarget("ALabelInsteadOfItsKey", "spec.allowedNodeLabels", list{"team=a"}, `spec.allowedNodeLabels[0]: Invalid value: "team=a": must be a key, in which each * stands for any number of characters, such as example.org/*`),

		// Addresses.
		inTarget("AnEndpointWithoutAScheme", "spec.apiServer", object{"endpoint": "api.example.org:6443"}, `spec.apiServer.endpoint: Invalid value: "api.example.org:6443": must be a URL that begins with https://, without a query, such as https://api.example.org`),
		inTarget("AnEndpointWithAPortThatThereIsNot", "spec.apiServer", object{"endpoint": "https://api.example.org:99999"}, `spec.apiServer.endpoint: Invalid value: "https://api.example.org:99999": must be a URL`),
		inTarget("AnEndpointWithASpaceAtItsEnd", "spec.apiServer", object{"endpoint": "https://api.example.org:6443 "}, `spec.apiServer.endpoint: Invalid value: "https://api.example.org:6443 ": must be a URL`),
		inTarget("ANetworkWithoutItsLength", "spec.certificates", object{"guestCIDRs": list{"10.0.0.0"}}, `spec.certificates.guestCIDRs[0]: Invalid value: "10.0.0.0": must be a range of IP addresses such as 10.20.0.0/16`),
		inClass("ANameServerByItsName", "spec.kubelet.clusterDNS", list{"kube-dns"}, `spec.kubelet.clusterDNS[0]: Invalid value: "kube-dns": must be an IP address, such as 192.0.2.53`),
		inClass("ADomainThatEndsWithADot", "spec.kubelet.clusterDomain", "cluster.local.", `spec.kubelet.clusterDomain: Invalid value: "cluster.local.": `+name),
		inClass("AProxyWithoutAScheme", "spec.operatingSystem.proxy", object{"http": "proxy:3128"}, `spec.operatingSystem.proxy.http: Invalid value: "proxy:3128": must be a URL that begins with https:// or http://`),
		inClass("ExceptionsOfAProxyInOneText", "spec.operatingSystem.proxy", object{"http": "http://proxy:3128", "noProxy": list{"10.0.0.0/8,localhost"}}, `spec.operatingSystem.proxy.noProxy[0]: Invalid value: "10.0.0.0/8,localhost": must be a host, a domain, an IP address or a range of them, such as 10.0.0.0/8`),
		inClass("ARegistryWithAScheme", "spec.operatingSystem.registryMirrors", list{object{"registry": "https://docker.io", "mirrors": list{object{"url": "https://m"}}}}, `must be a host of a registry with a port if it has one, without a scheme, or _default, such as docker.io`),
		inClass("ATimeServerAsAURL", "spec.operatingSystem.ntpServers", list{"ntp://a"}, `spec.operatingSystem.ntpServers[0]: Invalid value: "ntp://a": must be a host or an IP address, such as ntp.example.org`),
		inOpenStack("AnIdentityServiceWithoutAScheme", "spec.authURL", "keystone.example.org:5000", `spec.authURL: Invalid value: "keystone.example.org:5000": must be a URL that begins with https:// or http://, without a query, such as https://cloud.example.org:5000/v3`),
		inProxmox("AServerWithItsPage", "spec.server", "https://pve.example.org:8006/#v1", `must be a URL of a host that begins with https:// or http://, with a port from 1 to 65535 if it has one and without a path, such as https://cloud.example.org:8006`),
		inVCD("AServerWithAPortThatThereIsNot", "spec.server", "https://vcd.example.org:0", `spec.server: Invalid value: "https://vcd.example.org:0": must be a URL of a host that begins with https://, with a port from 1 to 65535`),
		inAlibaba("ARegionAsAPageShowsIt", "spec.region", "EU Central", `spec.region: Invalid value: "EU Central": must be lower-case letters, digits and -, such as eu-central-1`),

		// Certificates, files and images.
		inTarget("ACertificateThatIsNotEncoded", "spec.apiServer", object{"caBundle": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"}, base64),
		ofInventory("ACertificateThatIsCutOff", "spec.caBundle", "LS0tLS1CRUdJTiB", base64),
		inClass("ACertificateThatIsNoPEM", "spec.operatingSystem.caBundle", "MIIB", "spec.operatingSystem.caBundle: Invalid value: \"MIIB\": must be certificates in PEM, which begin with -----BEGIN CERTIFICATE-----"),
		inClass("AnImageWithoutItsRegistry", "spec.operatingSystem.sandboxImage", "pause:3.10", `spec.operatingSystem.sandboxImage: Invalid value: "pause:3.10": must be an image with its registry, such as registry.k8s.io/pause:3.10`),
		inClass("AnEmptyImage", "spec.operatingSystem.sandboxImage", "", `spec.operatingSystem.sandboxImage: Invalid value: "": must be an image with its registry`),
		inClass("PermissionsAsLsShowsThem", "spec.operatingSystem.files", list{object{"path": "/a", "content": "", "mode": "rw-r--r--"}}, `spec.operatingSystem.files[0].mode: Invalid value: "rw-r--r--": must be permissions of three octal digits, in quotes, such as 0644`),
		inClass("APathWithoutASlash", "spec.operatingSystem.files", list{object{"path": "etc/a", "content": ""}}, `spec.operatingSystem.files[0].path: Invalid value: "etc/a": must be an absolute path without spaces, quotes, \ and $, such as /etc/sysctl.d/90-workers.conf`),
		inClass("AUnitWithoutItsSuffix", "spec.operatingSystem.units", list{object{"name": "node-exporter", "content": "x"}}, `spec.operatingSystem.units[0].name: Invalid value: "node-exporter": must be a name of a unit of systemd with a suffix: .service`),
		inClass("AHashWithItsKind", "spec.operatingSystem.kubeletDigests", list{object{"version": "v1.35.4", "architecture": "amd64", "sha256": "sha256:" + strings.Repeat("a", 64)}}, `must be a SHA-256 of 64 digits and letters from a to f`),
		inClass("AUserOfALoginInCapitals", "spec.operatingSystem.ssh", object{"user": "Admin", "authorizedKeys": list{"ssh-ed25519 AAAA"}}, `spec.operatingSystem.ssh.user: Invalid value: "Admin": must be a name of a Linux user: at most 32 lower-case letters, digits, _ and -, with a letter or _ first, such as drover`),
		inClass("TwoKeysOfALoginInOne", "spec.operatingSystem.ssh", object{"authorizedKeys": list{"ssh-ed25519 AAAA\nssh-rsa BBBB"}}, "spec.operatingSystem.ssh.authorizedKeys[0]: Invalid value: \"ssh-ed25519 AAAA\\nssh-rsa BBBB\": must be one line, such as ssh-ed25519 AAAA user"),
	} {
		t.Run(m.name, func(t *testing.T) {
			obj := parse(t, m.object)
			setPath(obj, m.path, m.value)
			got := schematest.Load(t, m.schema).Validate(obj, nil).ToAggregate()
			if got == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(got.Error(), m.want) {
				t.Errorf("got  %v\nwant %s", got, m.want)
			}
			for _, unclear := range []string{"should match", "evaluating rule", "must be of type date-time", "must be of type byte"} {
				if strings.Contains(got.Error(), unclear) {
					t.Errorf("the answer has %q: %v", unclear, got)
				}
			}
		})
	}
}

// A mistake in one field of an object.
type mistake struct {
	name, schema, object, path string
	value                      any
	// want is in the error.
	want string
}

// TestFormsAcceptWhatUsersHave: a rule that takes the place of a pattern must not be narrower.
func TestFormsAcceptWhatUsersHave(t *testing.T) {
	wrapped := "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VS\nVElGSUNBVEUtLS0tLQo=\n"
	for name, tc := range map[string]mistake{
		"ABundleInLinesAsBase64PrintsIt":  {schema: targetCRD, object: target, path: "spec.apiServer", value: map[string]any{"caBundle": wrapped}},
		"ALargeBundle":                    {schema: targetCRD, object: target, path: "spec.apiServer", value: map[string]any{"caBundle": strings.Repeat("LS0t", 100_000)}},
		"AnEndpointBehindAPath":           {schema: targetCRD, object: target, path: "spec.apiServer", value: map[string]any{"endpoint": "https://rancher.example.org/k8s/clusters/c-m-1"}},
		"AnEndpointOfIPv6":                {schema: targetCRD, object: target, path: "spec.apiServer", value: map[string]any{"endpoint": "https://[2001:db8::1]:6443"}},
		"ANameServerOfIPv6":               {schema: classCRD, object: class, path: "spec.kubelet.clusterDNS", value: []any{"fd00::a", "10.96.0.10"}},
		"AQuantityAsANumber":              {schema: classCRD, object: class, path: "spec.nodeCapacity", value: map[string]any{"capacity": map[string]any{"cpu": int64(4), "memory": "16Gi", "example.org/gpu": "1"}}},
		"ATimeOnALeapDay":                 {schema: deploymentXRD, object: deployment, path: "spec.rollout", value: map[string]any{"after": "2028-02-29T23:59:59.5-03:30"}},
		"AnAnnotationOfADomainInCapitals": {schema: deploymentXRD, object: deployment, path: "spec.template.spec.metadata", value: map[string]any{"annotations": map[string]any{"Example.org/a": "any text: ü"}}},
		"ATaintWithoutAValue":             {schema: deploymentXRD, object: deployment, path: "spec.template.spec.taints", value: []any{map[string]any{"key": "node-role.kubernetes.io/gpu", "effect": "NoExecute"}}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, tc.object)
			setPath(obj, tc.path, tc.value)
			if errs := schematest.Load(t, tc.schema).Validate(obj, nil); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}
