package v1alpha1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

// TestBadOperatingSystemSettingsAreRefused by the API server, before a MachineDeployment names
// the class.
func TestBadOperatingSystemSettingsAreRefused(t *testing.T) {
	one := func(fields map[string]any) []any { return []any{fields} }
	digest := strings.Repeat("a", 64)
	cases := map[string]struct {
		field string
		value any
		want  []string
	}{
		"AProxyWithAPassword": {"proxy", map[string]any{"https": "http://user:geheim@proxy:3128"},
			[]string{"spec.operatingSystem.proxy.https", "must have no user and no password: a class has no secrets"}},
		"AProxyWithoutAURL": {"proxy", map[string]any{"noProxy": []any{"a"}}, []string{"spec.operatingSystem.proxy", "must have http, https or both"}},
		"AProxyThatIsNoURL": {"proxy", map[string]any{"http": "proxy:3128"}, []string{"spec.operatingSystem.proxy.http", "must be a URL that begins with https:// or http://"}},
		"AMirrorWithAPassword": {"registryMirrors", one(map[string]any{"registry": "docker.io", "mirrors": one(map[string]any{"url": "https://a:geheim@b"})}),
			[]string{"spec.operatingSystem.registryMirrors[0].mirrors[0].url", "must have no user and no password", "imageCredentialProviders"}},
		"ARegistryWithAPath": {"registryMirrors", one(map[string]any{"registry": "docker.io/library", "mirrors": one(map[string]any{"url": "https://a"})}),
			[]string{"spec.operatingSystem.registryMirrors[0].registry", "docker.io/library"}},
		"ARegistryWithoutMirrors": {"registryMirrors", one(map[string]any{"registry": "docker.io", "mirrors": []any{}}), []string{"spec.operatingSystem.registryMirrors[0].mirrors", "at least 1 items"}},
		"AKubeletURLWithAPassword": {"kubeletDownloadURL", "https://user:geheim@mirror.example.org",
			[]string{"spec.operatingSystem.kubeletDownloadURL", "must have no user and no password: a class has no secrets"}},
		"APrivateKey":      {"caBundle", "-----BEGIN PRIVATE KEY-----\n", []string{"spec.operatingSystem.caBundle", "must have no private key: a class has no secrets"}},
		"ADigestOfNothing": {"kubeletDigests", one(map[string]any{"version": "v1.35.4", "architecture": "amd64", "sha256": "abc"}), []string{"spec.operatingSystem.kubeletDigests[0].sha256", "abc"}},
		"ADigestForSparc": {"kubeletDigests", one(map[string]any{"version": "v1.35.4", "architecture": "sparc", "sha256": digest}),
			[]string{"spec.operatingSystem.kubeletDigests[0].architecture", "sparc", "amd64"}},
		"ADigestWithoutVersion": {"containerdDigests", one(map[string]any{"architecture": "amd64", "sha256": digest}), []string{"spec.operatingSystem.containerdDigests[0].version", "Required value"}},
		"ASandboxWithoutHost":   {"sandboxImage", "pause:3.10", []string{"spec.operatingSystem.sandboxImage", "pause:3.10"}},
		"NoKeys":                {"ssh", map[string]any{"user": "core"}, []string{"spec.operatingSystem.ssh.authorizedKeys", "Required value"}},
		"AServerWithABlank":     {"ntpServers", []any{"a b"}, []string{"spec.operatingSystem.ntpServers[0]", "a b"}},
		"AFileWithADollar":      {"files", one(map[string]any{"path": "/etc/$HOME"}), []string{"spec.operatingSystem.files[0].path"}},
		"AUnitWithoutASuffix":   {"units", one(map[string]any{"name": "a"}), []string{"spec.operatingSystem.units[0].name"}},
		"AScriptOfNothing":      {"stepsBeforeJoin", one(map[string]any{"name": "a", "script": "true"}), []string{"spec.operatingSystem.stepsBeforeJoin[0].script"}},
		"AFolderWithAFlag":      {"imageCredentialProviders", map[string]any{"config": map[string]any{}, "binDir": "/a --v=9"}, []string{"spec.operatingSystem.imageCredentialProviders.binDir"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, class)
			setPath(obj, "spec.operatingSystem."+tc.field, tc.value)
			got := schematest.Load(t, classCRD).Validate(obj, nil).ToAggregate()
			if got == nil {
				t.Fatal("accepted")
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, got)
				}
			}
		})
	}
}

func TestOperatingSystemSettingsAreAcceptedAndDefaulted(t *testing.T) {
	obj := parse(t, class+`
  operatingSystem:
    profile: debian-12-v1
    registryMirrors:
      - registry: docker.io
        mirrors: [{url: "https://mirror.example.org:5000/docker", overridePath: true}]
      - registry: _default
        mirrors: [{url: "https://mirror.example.org"}]
    imageCredentialProviders:
      config: {providers: [{name: ecr, anything: [1]}]}
    sandboxImage: registry.example.org:5000/pause/pause-amd64:3.10
    proxy: {http: "http://proxy.example.org:3128", noProxy: [10.0.0.0/8, "*.example.org", "fd00::/8", "[::1]"]}
    ssh: {authorizedKeys: ["ssh-ed25519 AAAA operator"]}
    ntpServers: [ntp.example.org, 10.0.0.1, "fd00::1"]
    kubeletDigests:
      - {version: v1.35.4, architecture: amd64, sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
`)
	if errs := schematest.Load(t, classCRD).Validate(obj, nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if got := getPath(obj, "spec.operatingSystem.imageCredentialProviders.binDir"); got != v1alpha1.DefaultCredentialProviderDir {
		t.Errorf("binDir is %v", got)
	}
	if got := getPath(obj, "spec.operatingSystem.imageCredentialProviders.config.providers"); got == nil {
		t.Error("the config was pruned")
	}
}

// withoutEffect has a value for each field that has no effect beside user data of the class's
// own, except kubelet.configuration, which rules of a schema do not see.
var withoutEffect = map[string]string{
	"operatingSystem.profile":                  `debian-12-v1`,
	"operatingSystem.parameters":               `{a: b}`,
	"operatingSystem.kubeletDownloadURL":       `"https://mirror.example.org"`,
	"operatingSystem.kubeletDigests":           `[{version: v1.35.4, architecture: amd64, sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`,
	"operatingSystem.containerdDownloadURL":    `"https://mirror.example.org"`,
	"operatingSystem.containerdDigests":        `[{version: 2.3.2, architecture: amd64, sha256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`,
	"operatingSystem.registryMirrors":          `[{registry: docker.io, mirrors: [{url: "https://mirror.example.org"}]}]`,
	"operatingSystem.imageCredentialProviders": `{config: {}}`,
	"operatingSystem.sandboxImage":             `registry.k8s.io/pause:3.10`,
	"operatingSystem.proxy":                    `{http: "http://proxy.example.org"}`,
	"operatingSystem.caBundle":                 `"-----BEGIN CERTIFICATE-----"`,
	"operatingSystem.ssh":                      `{authorizedKeys: [ssh-ed25519 AAAA]}`,
	"operatingSystem.ntpServers":               `[ntp.example.org]`,
	"operatingSystem.files":                    `[{path: /etc/motd}]`,
	"operatingSystem.units":                    `[{name: a.service}]`,
	"operatingSystem.stepsBeforeJoin":          `[{name: a, script: "#!/bin/sh"}]`,
	"operatingSystem.stepsAfterJoin":           `[{name: a, script: "#!/bin/sh"}]`,
	"kubelet.clusterDNS":                       `[10.0.0.10]`,
	"kubelet.clusterDomain":                    `cluster.example.org`,
	"kubelet.maxPods":                          `20`,
}

// allowedWithUserData are the fields that may be set beside it, and the one that the planner
// refuses.
var allowedWithUserData = []string{"operatingSystem.provisioning", "kubelet.configuration"}

// TestSettingsWithoutEffectOnOwnUserDataAreRefusedByTheAPIServer, each by its name. A field that
// is added to the API must be in the rule.
func TestSettingsWithoutEffectOnOwnUserDataAreRefusedByTheAPIServer(t *testing.T) {
	own := class + "\n  userData: {secretRef: {name: mine}}\n"
	schema := schematest.Load(t, classCRD)
	if errs := schema.Validate(parse(t, own+"  operatingSystem: {provisioning: Ignition}\n"), nil); len(errs) > 0 {
		t.Errorf("only the format is set: %v", errs)
	}
	var fields []string
	for part, typ := range map[string]reflect.Type{"operatingSystem": reflect.TypeFor[v1alpha1.OperatingSystem](), "kubelet": reflect.TypeFor[v1alpha1.Kubelet]()} {
		for _, f := range reflect.VisibleFields(typ) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				fields = append(fields, part+"."+name)
			}
		}
	}
	for _, name := range fields {
		if slices.Contains(allowedWithUserData, name) {
			continue
		}
		value, ok := withoutEffect[name]
		if !ok {
			t.Errorf("%s: does it have an effect on user data of the class's own?", name)
			continue
		}
		part, f, _ := strings.Cut(name, ".")
		set := "\n  " + part + ": {" + f + ": " + value + "}\n"
		if errs := schema.Validate(parse(t, class+set), nil); len(errs) > 0 {
			t.Errorf("%s without userData: %v", name, errs)
		}
		got := schema.Validate(parse(t, own+set), nil).ToAggregate()
		if want := "has no effect with userData"; got == nil || len(got.Errors()) != 1 || !strings.HasPrefix(got.Error(), "spec."+name+": ") || !strings.Contains(got.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, got, want)
		}
	}
}
