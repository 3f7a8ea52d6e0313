package userdata

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
)

const (
	// authority is a certificate that is the same in each run, for golden files.
	authority = `-----BEGIN CERTIFICATE-----
MIIBlzCCAT2gAwIBAgIUCeZP1VBKoQM0Q7NPR0UY2fF4O7kwCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVYXV0aG9yaXR5LmV4YW1wbGUub3JnMCAXDTI2MTEyMzA5MDUw
MVoYDzIxMjYxMDMwMDkwNTAxWjAgMR4wHAYDVQQDDBVhdXRob3JpdHkuZXhhbXBs
ZS5vcmcwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARwIa+OP1CiS41xcCwwu52c
bQJv4Fl64wsly+RmzW8mCLyDJzEdMyQamxTVZoXpJ/Mi1ZkPWOJ2BDQqjNcCn2Sm
o1MwUTAdBgNVHQ4EFgQU5gqfoTWEPIiQXUJNsUgbQ350xZUwHwYDVR0jBBgwFoAU
5gqfoTWEPIiQXUJNsUgbQ350xZUwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQD
AgNIADBFAiAhaYqgxWWWvr0dpfyHl4Tmgvt4YIcRx41FL2aqRqy5DQIhALh00cZ6
7Yr2h2jVo6ybfrzj0PVFc2sX4ApktsTo2Pzs
-----END CERTIFICATE-----
`
	operatorKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIiNISwldL+62pxgOAPmnN7kAMlnWUyBZcHjiFg2AZ7r operator@example.org"
	sum         = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	providers   = `{"providers": [{"name": "ecr-credential-provider", "matchImages": ["*.dkr.ecr.*.amazonaws.com"], "defaultCacheDuration": "12h0m0s", "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "args": ["get-credentials"]}]}`
)

// allSettings that a class may have with a profile. Digests are those of the versions that
// tests render.
func allSettings() machinev1alpha1.OperatingSystemSettings {
	return machinev1alpha1.OperatingSystemSettings{
		KubeletDigests: []machinev1alpha1.Digest{
			{Version: "v1.35.4", Architecture: "amd64", SHA256: sum},
			{Version: "v1.35.4", Architecture: "arm64", SHA256: strings.Repeat("a", 64)},
			{Version: "v1.36.0", Architecture: "amd64", SHA256: strings.Repeat("b", 64)},
		},
		RegistryMirrors: []machinev1alpha1.RegistryMirror{
			{Registry: "docker.io", Mirrors: []machinev1alpha1.RegistryEndpoint{
				{URL: "https://mirror.example.org/docker/", OverridePath: true}, {URL: "https://second.example.org"},
			}},
			{Registry: "registry.example.org:5000", Mirrors: []machinev1alpha1.RegistryEndpoint{{URL: "https://10.0.0.1", InsecureSkipVerify: true}}},
			{Registry: "_default", Mirrors: []machinev1alpha1.RegistryEndpoint{{URL: "http://mirror.example.org:5000"}}},
		},
		ImageCredentialProviders: &machinev1alpha1.ImageCredentialProviders{
			Config: runtime.RawExtension{Raw: []byte(providers)},
			Downloads: []machinev1alpha1.CredentialProviderDownload{
				{Name: "ecr-credential-provider", Architecture: "amd64", URL: "https://mirror.example.org/ecr-credential-provider-amd64", SHA256: sum},
				{Name: "ecr-credential-provider", Architecture: "arm64", URL: "https://mirror.example.org/ecr-credential-provider-arm64", SHA256: sum},
			},
		},
		SandboxImage: "registry.example.org:5000/pause:3.10",
		Proxy: &machinev1alpha1.Proxy{
			HTTP: "http://proxy.example.org:3128", HTTPS: "http://proxy.example.org:3129", NoProxy: []string{"10.0.0.0/8", "api.example.org"},
		},
		CABundle:   authority,
		SSH:        &machinev1alpha1.SSHAccess{User: "operator", AuthorizedKeys: []string{operatorKey}},
		NTPServers: []string{"ntp.example.org", "10.0.0.123"},
		Files:      []machinev1alpha1.MachineFile{{Path: "/etc/motd", Content: "welcome to `this` $HOST\n", Mode: "0640"}},
		Units: []machinev1alpha1.MachineUnit{
			{Name: "tuning.service", Content: "[Service]\nType=oneshot\nExecStart=/bin/true\n\n[Install]\nWantedBy=multi-user.target\n", Enabled: true},
			{Name: "containerd.service", DropIns: []machinev1alpha1.UnitDropIn{{Name: "60-limits.conf", Content: "[Service]\nLimitNOFILE=1048576\n"}}},
		},
		StepsBeforeJoin: []machinev1alpha1.MachineStep{{Name: "mount", Script: "#!/bin/sh\nset -eu\nmkdir -p /srv/data\n"}},
		StepsAfterJoin:  []machinev1alpha1.MachineStep{{Name: "announce", Script: "#!/bin/sh\nset -eu\necho \"joined with $KUBELET_VERSION\"\n"}},
	}
}

// withSettings of a class, changed.
func withSettings(change ...func(*machinev1alpha1.OperatingSystemSettings)) func(*Input) {
	s := allSettings()
	for _, c := range change {
		c(&s)
	}
	return func(in *Input) { in.Settings = s }
}

// withoutProfileSettings are those that a VM without a profile cannot have.
func withoutProfileSettings(s *machinev1alpha1.OperatingSystemSettings) {
	s.RegistryMirrors, s.SandboxImage, s.CABundle, s.NTPServers = nil, "", "", nil
}

func TestDocumentsWithAllSettingsAreThoseOfTheGoldenFiles(t *testing.T) {
	cases := map[string]struct {
		in     Input
		format machinev1alpha1.ProvisioningFormat
	}{
		"settings-debian-12-v1": {input(withProfile("debian-12-v1"), withSettings()), machinev1alpha1.CloudInit},
		"settings-rocky-9-v1":   {input(withProfile("rocky-9-v1"), withSettings(pinContainerd)), machinev1alpha1.CloudInit},
		"settings-flatcar-v1":   {input(withProfile("flatcar-v1"), withSettings()), machinev1alpha1.Ignition},
		"settings":              {input(withSettings(withoutProfileSettings)), machinev1alpha1.CloudInit},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			compareGolden(t, name+endings[tc.format], encoded(t, document(t, tc.in), tc.format))
		})
	}
}

// pinContainerd that a profile downloads.
func pinContainerd(s *machinev1alpha1.OperatingSystemSettings) {
	s.ContainerdDownloadURL = "https://mirror.example.org/containerd/"
	s.ContainerdDigests = []machinev1alpha1.Digest{{Version: "2.3.2", Architecture: "amd64", SHA256: sum}}
}

// TestAClassWithoutSettingsHasTheDocumentOfItsProfile holds what existing classes get.
func TestAClassWithoutSettingsHasTheDocumentOfItsProfile(t *testing.T) {
	d := document(t, input(withProfile("debian-12-v1")))
	for _, f := range d.Files {
		if f.Path == pathDownloads || f.Path == pathProxy || strings.HasPrefix(f.Path, dirRegistries) || strings.Contains(f.Path, "chrony") {
			t.Errorf("it has %s", f.Path)
		}
	}
	for _, s := range d.Steps {
		if slices.Contains([]string{"trust", "time", "download", "await-join"}, s.Name) {
			t.Errorf("it has the step %s", s.Name)
		}
	}
}

func TestStepsOfSettingsRunInTheirOrder(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     Input
		want   []string
	}{
		"WithAProfile": {
			"Packages may come from a mirror whose certificate the class brings, and curl is theirs.",
			input(withProfile("debian-12-v1"), withSettings()),
			[]string{"prepare", "trust", "packages", "trust-packages", "time", "download", "start-containerd", "mount", "start-kubelet", "await-join", "announce"},
		},
		"WithADownloadOfContainerd": {
			"It is unpacked when its digest is verified.",
			input(withProfile("rocky-9-v1"), withSettings(pinContainerd)),
			[]string{"prepare", "trust", "system", "packages", "trust-packages", "time", "download", "install-containerd", "start-containerd", "mount", "start-kubelet", "await-join", "announce"},
		},
		"WithoutAProfile": {
			"The containerd of the image learns of the proxy before a pod is pulled.",
			input(withSettings(withoutProfileSettings)),
			[]string{"download", "restart-containerd", "mount", "start-kubelet", "await-join", "announce"},
		},
		"WithoutDigests": {
			"The kubelet is verified by the checksum beside it.",
			input(withSettings(withoutProfileSettings, func(s *machinev1alpha1.OperatingSystemSettings) {
				s.KubeletDigests, s.ImageCredentialProviders, s.Proxy, s.StepsAfterJoin = nil, nil, nil, nil
			})),
			[]string{"mount", "install-kubelet", "start-kubelet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range document(t, tc.in).Steps {
				got = append(got, s.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestABadSettingIsNamed(t *testing.T) {
	type settings = machinev1alpha1.OperatingSystemSettings
	const at = "class.spec.operatingSystem."
	file := func(path string) func(*settings) { return func(s *settings) { s.Files[0].Path = path } }
	proxy := func(u string) func(*settings) { return func(s *settings) { s.Proxy.HTTPS = u } }
	config := func(json string) func(*settings) {
		return func(s *settings) { s.ImageCredentialProviders.Config.Raw = []byte(json) }
	}
	cases := map[string]struct {
		change func(*settings)
		want   string
	}{
		"NoDigestOfTheVersion": {func(s *settings) { s.KubeletDigests = s.KubeletDigests[2:] }, at + "kubeletDigests: Required value: there is no digest of version v1.35.4, but of v1.36.0"},
		"NoDigestOfTheArchitecture": {func(s *settings) { s.KubeletDigests = s.KubeletDigests[:1] },
			at + "kubeletDigests: Required value: there is no digest of version v1.35.4 for arm64, the architecture of class.spec.nodeCapacity, but for amd64"},
		"AShortDigest":           {func(s *settings) { s.KubeletDigests[1].SHA256 = "abc" }, at + `kubeletDigests[1].sha256: Invalid value: "abc": must be 64 hexadecimal digits`},
		"AnUnknownArchitecture":  {func(s *settings) { s.KubeletDigests[1].Architecture = "sparc" }, at + `kubeletDigests[1].architecture: Unsupported value: "sparc"`},
		"ContainerdOfTheSystem":  {func(s *settings) { s.ContainerdDownloadURL = "ftp://a" }, at + `containerdDownloadURL: Invalid value: "ftp://a"`},
		"ARegistryWithAScheme":   {func(s *settings) { s.RegistryMirrors[0].Registry = "https://docker.io" }, at + `registryMirrors[0].registry: Invalid value: "https://docker.io"`},
		"ARegistryOutside":       {func(s *settings) { s.RegistryMirrors[0].Registry = ".." }, at + `registryMirrors[0].registry: Invalid value: ".."`},
		"ARegistryTwice":         {func(s *settings) { s.RegistryMirrors[1].Registry = "docker.io" }, at + "registryMirrors[1].registry: Forbidden"},
		"AMirrorWithAPassword":   {func(s *settings) { s.RegistryMirrors[0].Mirrors[1].URL = "https://a:geheim@b" }, at + "registryMirrors[0].mirrors[1].url: Invalid value: must have no user and no password"},
		"AMirrorWithAQuote":      {func(s *settings) { s.RegistryMirrors[0].Mirrors[1].URL = "https://a\"]\n" }, at + "registryMirrors[0].mirrors[1].url: Invalid value"},
		"AMirrorWithTheToken":    {func(s *settings) { s.RegistryMirrors[0].Mirrors[1].URL = "https://a/$(token)" }, at + "registryMirrors[0].mirrors[1].url: Invalid value: must not have $(token)"},
		"NoMirror":               {func(s *settings) { s.RegistryMirrors[0].Mirrors = nil }, at + "registryMirrors[0].mirrors: Required value"},
		"AnUnknownProviderField": {config(`{"provider": []}`), at + `imageCredentialProviders.config: Invalid value: must be fields of a kubelet.config.k8s.io/v1 CredentialProviderConfig: unknown field "provider"`},
		"NoProvider":             {config(`{}`), at + "imageCredentialProviders.config.providers: Required value"},
		"AProviderOfAFolder":     {config(strings.Replace(providers, "ecr-", "../ecr-", 1)), at + "imageCredentialProviders.config.providers[0].name: Invalid value"},
		"NoCacheDuration":        {config(strings.Replace(providers, `"defaultCacheDuration": "12h0m0s", `, "", 1)), at + "imageCredentialProviders.config.providers[0].defaultCacheDuration: Required value"},
		"NoImages":               {config(strings.Replace(providers, `["*.dkr.ecr.*.amazonaws.com"]`, "[]", 1)), at + "imageCredentialProviders.config.providers[0].matchImages: Required value"},
		"AProviderVersion":       {config(strings.Replace(providers, "k8s.io/v1", "k8s.io/v9", 1)), at + `imageCredentialProviders.config.providers[0].apiVersion: Unsupported value: "credentialprovider.kubelet.k8s.io/v9"`},
		"AConfigOfAnotherKind":   {config(`{"apiVersion": "v1", "kind": "Secret", "providers": []}`), at + `imageCredentialProviders.config.apiVersion: Unsupported value: "v1 Secret"`},
		"AProviderDownload":      {func(s *settings) { s.ImageCredentialProviders.Downloads[1].Name = "gcr" }, at + `imageCredentialProviders.downloads[1].name: Unsupported value: "gcr": supported values: "ecr-credential-provider"`},
		"AProviderAsTheKubelet": {func(s *settings) {
			s.ImageCredentialProviders.BinDir, s.ImageCredentialProviders.Downloads[0].Name = "/usr/local/bin", "kubelet"
			s.ImageCredentialProviders.Config.Raw = []byte(strings.Replace(providers, "ecr-credential-provider", "kubelet", 1))
		}, at + "imageCredentialProviders.downloads[0].name: Forbidden: /usr/local/bin/kubelet is the kubelet"},
		"ABinDirOfDrover":        {func(s *settings) { s.ImageCredentialProviders.BinDir = "/opt/drover/bin/steps" }, at + "imageCredentialProviders.downloads[0].name: Forbidden"},
		"ABinDirWithAFlag":       {func(s *settings) { s.ImageCredentialProviders.BinDir = "/a --v=9" }, at + "imageCredentialProviders.binDir: Invalid value"},
		"ASandboxWithoutHost":    {func(s *settings) { s.SandboxImage = "pause" }, at + `sandboxImage: Invalid value: "pause": must be an image with its registry`},
		"AProxyWithAPassword":    {proxy("http://user:geheim@proxy:3128"), at + "proxy.https: Invalid value: must have no user and no password: a class has no secrets, and each user of the VM can read its user data"},
		"AProxyWithoutAScheme":   {proxy("proxy:3128"), at + `proxy.https: Invalid value: "proxy:3128": must be a URL`},
		"AProxyWithASpecifier":   {proxy("http://proxy/%n"), at + `proxy.https: Invalid value: "http://proxy/%n"`},
		"ANoProxyWithAComma":     {func(s *settings) { s.Proxy.NoProxy = []string{"a,b"} }, at + `proxy.noProxy[0]: Invalid value: "a,b"`},
		"NoProxyAtAll":           {func(s *settings) { s.Proxy.HTTP, s.Proxy.HTTPS = "", "" }, at + "proxy: Required value: must have http, https or both"},
		"ABundleOfNothing":       {func(s *settings) { s.CABundle = "hello" }, at + "caBundle: Invalid value: must be certificates as PEM: there is none"},
		"ABundleOfGarbage":       {func(s *settings) { s.CABundle = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" }, at + "caBundle: Invalid value: must be certificates as PEM: block 1: "},
		"ABundleThatIsCutOff":    {func(s *settings) { s.CABundle = certificate(t) + "-----BEGIN CERTIFICATE-----\nAA" }, at + "caBundle: Invalid value: must be certificates as PEM: block 2 is cut off"},
		"ABundleWithAKey":        {func(s *settings) { s.CABundle += "-----BEGIN EC PRIVATE KEY-----\n" }, at + "caBundle: Invalid value: must have no private key"},
		"ABundleOfARequest":      {func(s *settings) { s.CABundle = strings.ReplaceAll(certificate(t), "CERTIFICATE", "PUBLIC KEY") }, at + `caBundle: Invalid value: must be certificates as PEM: block 1 is a "PUBLIC KEY"`},
		"AKeyOfNothing":          {func(s *settings) { s.SSH.AuthorizedKeys = []string{"hello"} }, at + "ssh.authorizedKeys[0]: Invalid value: must be one line of an authorized_keys file"},
		"TwoKeysInOne":           {func(s *settings) { s.SSH.AuthorizedKeys = []string{operatorKey + "\n" + operatorKey} }, at + "ssh.authorizedKeys[0]: Invalid value: must be one line"},
		"NoKey":                  {func(s *settings) { s.SSH.AuthorizedKeys = nil }, at + "ssh.authorizedKeys: Required value"},
		"AUserThatIsNone":        {func(s *settings) { s.SSH.User = "a b" }, at + `ssh.user: Invalid value: "a b"`},
		"AServerWithABlank":      {func(s *settings) { s.NTPServers[1] = "a\nb" }, at + "ntpServers[1]: Invalid value"},
		"AFileOfTheJoin":         {file("/etc/kubernetes/bootstrap-kubelet.conf"), at + "files[0].path: Forbidden: /etc/kubernetes/bootstrap-kubelet.conf is one of the files by which a machine joins"},
		"AFileOfTheProxy":        {file("/etc/drover/proxy.env"), at + "files[0].path: Forbidden"},
		"TheKubelet":             {file("/usr/local/bin/kubelet"), at + "files[0].path: Forbidden: /usr/local/bin/kubelet is the kubelet"},
		"AFileOfTheProfile":      {file("/etc/apt/apt.conf.d/60-drover"), at + "files[0].path: Forbidden: /etc/apt/apt.conf.d/60-drover is written by Drover, by the profile"},
		"ContainerdsConfig":      {file("/etc/containerd/config.toml"), at + "files[0].path: Forbidden"},
		"AFileOfAMirror":         {file("/etc/containerd/certs.d/docker.io/hosts.toml"), at + "files[0].path: Forbidden"},
		"AFileInsteadOfAFolder":  {file("/etc/containerd"), at + "files[0].path: Forbidden: /etc/containerd cannot be a file beside /etc/containerd/"},
		"AFileBelowAFile":        {file("/etc/sysctl.d/90-drover.conf/a"), at + "files[0].path: Forbidden"},
		"AFileWithAKey":          {func(s *settings) { s.Files[0].Content = "-----BEGIN PRIVATE KEY-----\n" }, at + "files[0].content: Invalid value: must have no private key"},
		"AFileWithAToken":        {func(s *settings) { s.Files[0].Content = "$(token)" }, at + "files[0].content: Invalid value: must not have $(token)"},
		"TheUnitOfTheKubelet":    {func(s *settings) { s.Units[0].Name = "kubelet.service" }, at + "units[0].name: Forbidden: Drover writes the unit kubelet.service"},
		"AUnitThatNothingStarts": {func(s *settings) { s.Units[0].Content = "[Service]\nExecStart=/bin/true\n" }, at + "units[0].content: Invalid value: must have a section [Install]"},
		"AUnitThatIsNone":        {func(s *settings) { s.Units[0].Content = "[Service\n" }, at + "units[0].content: Invalid value: must be a unit of systemd"},
		"ADropInThatIsNone":      {func(s *settings) { s.Units[1].DropIns[0].Content = "[Service\nA=b\n" }, at + "units[1].dropIns[0].content: Invalid value: must be a unit of systemd"},
		"ADropInThatIsThere":     {func(s *settings) { s.Units[1].DropIns[0].Name = proxyDropIn }, at + "units[1].name: Forbidden"},
		"AStepWithoutAnInterpreter": {func(s *settings) { s.StepsBeforeJoin[0].Script = "true" },
			at + "stepsBeforeJoin[0].script: Invalid value: its first line must name an interpreter"},
		"AStepWithAKey": {func(s *settings) { s.StepsAfterJoin[0].Script += "# -----BEGIN RSA PRIVATE KEY-----\n" }, at + "stepsAfterJoin[0].script: Invalid value: must have no private key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := input(withProfile("debian-12-v1"), withSettings(tc.change))
			in.Architecture = "amd64"
			if name == "NoDigestOfTheArchitecture" {
				in.Architecture = "arm64"
			}
			_, err := New(in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("want %q, got %v", tc.want, err)
			}
			if strings.Contains(err.Error(), "geheim") {
				t.Errorf("the error has the password: %v", err)
			}
		})
	}
}

// TestASettingThatCannotBeServedIsRefused needs no bad value.
func TestASettingThatCannotBeServedIsRefused(t *testing.T) {
	type settings = machinev1alpha1.OperatingSystemSettings
	const at = "class.spec.operatingSystem."
	plain := profile(func(*machinev1alpha1.OperatingSystemProfileSpec) {})
	cases := map[string]struct {
		profile func(*Input)
		keep    func(all, s *settings)
		want    string
	}{
		"SandboxImageWithoutAProfile":       {nil, func(all, s *settings) { s.SandboxImage = all.SandboxImage }, at + "sandboxImage: Forbidden: needs class.spec.operatingSystem.profile: without one Drover does not write containerd's configuration"},
		"MirrorsWithoutAProfile":            {nil, func(all, s *settings) { s.RegistryMirrors = all.RegistryMirrors }, at + "registryMirrors: Forbidden: needs class.spec.operatingSystem.profile"},
		"CertificatesWithoutAProfile":       {nil, func(all, s *settings) { s.CABundle = all.CABundle }, at + "caBundle: Forbidden: needs class.spec.operatingSystem.profile"},
		"TimeWithoutAProfile":               {nil, func(all, s *settings) { s.NTPServers = all.NTPServers }, at + "ntpServers: Forbidden: needs class.spec.operatingSystem.profile"},
		"ContainerdWithoutAProfile":         {nil, func(_, s *settings) { pinContainerd(s) }, at + "containerdDigests: Forbidden: needs a profile that downloads containerd"},
		"ContainerdURLWithoutAProfile":      {nil, func(_, s *settings) { pinContainerd(s) }, at + "containerdDownloadURL: Forbidden: needs a profile that downloads containerd"},
		"ContainerdThatIsInTheImage":        {withProfile("flatcar-v1"), func(_, s *settings) { pinContainerd(s) }, at + "containerdDownloadURL: Forbidden: needs a profile that downloads containerd"},
		"CertificatesOfAProfileWithoutWord": {plain, func(all, s *settings) { s.CABundle = all.CABundle }, at + "caBundle: Forbidden: the profile does not state in profile.spec.trust"},
		"TimeOfAProfileWithoutWord":         {plain, func(all, s *settings) { s.NTPServers = all.NTPServers }, at + "ntpServers: Forbidden: the profile does not state in profile.spec.timeServices"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all, s := allSettings(), settings{}
			tc.keep(&all, &s)
			in := input(func(in *Input) { in.Settings = s })
			if tc.profile != nil {
				tc.profile(&in)
			}
			if _, err := New(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got %v", tc.want, err)
			}
		})
	}
}

// TestEachBuiltInProfileServesAllSettings also holds that no setting collides with a file of
// a profile.
func TestEachBuiltInProfileServesAllSettings(t *testing.T) {
	for _, name := range osprofile.Names() {
		d := document(t, input(withProfile(name), withSettings()))
		for _, format := range osprofile.BuiltIn(name).Spec.Formats {
			template := encoded(t, d, format)
			if format == machinev1alpha1.Ignition {
				doc, err := typical.Fill(string(template), Form{})
				if err != nil {
					t.Fatal(err)
				}
				readIgnition(t, doc)
			}
		}
	}
}

// certificate of an authority.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
