package userdata

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
)

// FuzzSettings renders user data from a profile, its parameters and the settings of a class that no API server
// validated. An error names the field. A document has the same join as without them, the contents of the user
// byte by byte, and the token in none of these.
func FuzzSettings(f *testing.F) {
	f.Add("mirrorHost", "a.example.org", "[a-z.]+", "/etc/motd", "hello\n", "a.service", "#!/bin/sh\n", "docker.io", "https://mirror.example.org", "10.0.0.0/8", "ntp.example.org", "k8s.io/pause:3", operatorKey, "v1.35.4")
	f.Add("motd", "`reboot` $HOME \"\\", "", "/etc/providers.json", providers, "", "#!/bin/sh\n", "_default", "http://[::1]:80/%2f/", "*.example.org", "10.0.0.1", "", authority, "v1.35.4")
	f.Add("a", "`reboot`\n$HOME \"", "", "/etc/kubernetes/a", "$(token)", "kubelet.service", "true", "_default", "http://a:b@c", "a,b", "a b", "pause", "-----BEGIN", "v1.36.0")
	f.Add("", "%24(token)", "(", "/etc/../a", "%24%28token%29\x00", "a.b", "#!/bin/sh\n$(ca.crt|base64)", "..", "https://a\"]\n[x]", "*", "\n", "a/b@sha256:", "ssh-rsa", "1")
	f.Add("b1", "true", ".*", "/etc/chrony/chrony.conf", "", "containerd.service", "#!", "a:1", "https://a/ b", "::1", "::1", "a/b", "", "v1.35.4-rc.1+b")
	f.Add("z", "", "", "/a/b", "x", "a@b.timer", "#!/x", "localhost:5000", "http://[::1]:80/%2f", "", "", "", "", "v1.35.4")
	f.Add("c", "", "", "/etc/motd", "", "", "#!/bin/sh\n", "docker.io", "https://mirror.example.org/$(token)", "", "", "", "", "")
	f.Add("d", "", "", "/etc/motd", "", "", "#!/bin/sh\n", "", "https://mirror.example.org/%24(token)", "", "", "", "", "v1.35.4")
	f.Fuzz(func(t *testing.T, parameter, value, pattern, file, content, unit, script, registry, url, noProxy, ntp, image, key, version string) {
		for _, s := range []*string{&parameter, &value, &pattern, &file, &content, &unit, &script, &registry, &url, &noProxy, &ntp, &image, &key, &version} {
			*s = strings.ToValidUTF8(*s, "?") // Text that is no UTF-8 does not come from an API server.
		}
		plain := input(func(in *Input) { in.Version = "v1.35.4" })
		in := plain
		in.Profile = osprofile.Defaulted(&machinev1alpha1.OperatingSystemProfile{Spec: machinev1alpha1.OperatingSystemProfileSpec{
			Containerd: []machinev1alpha1.ContainerdRelease{{Major: 2, Download: &machinev1alpha1.ContainerdDownload{Version: "2.3.2"}}},
			Parameters: map[string]machinev1alpha1.ProfileParameter{parameter: {Pattern: pattern, Default: ptr.To(value)}},
			Files:      []machinev1alpha1.MachineFile{{Path: file + ".profile", Content: content}},
			Steps:      []machinev1alpha1.MachineStep{{Name: "own", Script: script}},
			Trust:      &machinev1alpha1.ProfileTrust{Directory: "/etc/pki", Command: "update-trust"},
			TimeServices: []machinev1alpha1.TimeService{{
				Unit: "chrony.service", Format: machinev1alpha1.Chrony, Path: "/etc/chrony/chrony.conf",
			}},
		}})
		in.Parameters = map[string]string{parameter: value}
		in.Settings = machinev1alpha1.OperatingSystemSettings{
			Files:           []machinev1alpha1.MachineFile{{Path: file, Content: content}},
			StepsBeforeJoin: []machinev1alpha1.MachineStep{{Name: "before", Script: script}},
			StepsAfterJoin:  []machinev1alpha1.MachineStep{{Name: "after", Script: script}},
			SandboxImage:    image,
		}
		s := &in.Settings
		// An empty input is not set: otherwise all inputs would have to be valid at once.
		if unit != "" {
			s.Units = []machinev1alpha1.MachineUnit{{Name: unit, Content: "[Service]\nExecStart=" + content + "\n[Install]\nWantedBy=a.target\n", Enabled: true}}
		}
		if registry != "" {
			s.RegistryMirrors = []machinev1alpha1.RegistryMirror{{Registry: registry, Mirrors: []machinev1alpha1.RegistryEndpoint{{URL: url}}}}
		}
		if noProxy != "" {
			s.Proxy = &machinev1alpha1.Proxy{HTTPS: url, NoProxy: []string{noProxy}}
		}
		if ntp != "" {
			s.NTPServers = []string{ntp}
		}
		switch {
		case strings.HasPrefix(key, "-----"):
			s.CABundle = key
		case key != "":
			s.SSH = &machinev1alpha1.SSHAccess{AuthorizedKeys: []string{key}}
		}
		if version != "" {
			in.DownloadURL = url
			s.KubeletDigests = []machinev1alpha1.Digest{{Version: version, Architecture: "amd64", SHA256: sum}}
		}
		if json.Valid([]byte(content)) { // The API server takes no other.
			s.ImageCredentialProviders = &machinev1alpha1.ImageCredentialProviders{Config: runtime.RawExtension{Raw: []byte(content)}}
		}
		d, err := New(in)
		if err != nil {
			mustNameFields(t, err)
			return
		}
		const token = "123456.1234567890123456"
		for _, format := range []machinev1alpha1.ProvisioningFormat{machinev1alpha1.CloudInit, machinev1alpha1.Ignition} {
			template, err := d.Encode(format)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := Filling{Token: token, Server: "https://10.0.0.1", CA: []byte("ca"), UID: "u", ConfigUID: "c"}.Fill(string(template), Form{})
			if err != nil {
				t.Fatal(err)
			}
			checkSettings(t, in, token, readUnique(t, format, doc))
		}
	})
}

// readUnique is read, of user data that writes no file twice.
func readUnique(t *testing.T, format machinev1alpha1.ProvisioningFormat, doc []byte) written {
	t.Helper()
	if format == machinev1alpha1.CloudInit {
		c, seen := cloudConfig{}, map[string]bool{}
		if err := yaml.Unmarshal(doc, &c); err != nil {
			t.Fatal(err)
		}
		for _, f := range c.WriteFiles {
			if seen[f.Path] {
				t.Errorf("%s is written twice", f.Path)
			}
			seen[f.Path] = true
		}
		for f := range seen {
			for dir := path.Dir(f); dir != "/"; dir = path.Dir(dir) {
				if seen[dir] {
					t.Errorf("%s is a file and the folder of %s", dir, f)
				}
			}
		}
	}
	return read(t, format, doc)
}

func checkSettings(t *testing.T, in Input, token string, got written) {
	t.Helper()
	s := in.Settings
	if f := s.Files[0]; got.files[f.Path] != f.Content {
		t.Errorf("%s is %q, want %q", f.Path, got.files[f.Path], f.Content)
	}
	for file, content := range got.files {
		if file != pathBootstrapConfig && strings.Contains(content, token) {
			t.Errorf("the token is in %s", file)
		}
		if strings.HasPrefix(file, dirSteps) && (strings.HasSuffix(file, "-before") || strings.HasSuffix(file, "-after")) && content != s.StepsAfterJoin[0].Script {
			t.Errorf("the step %s is %q, want %q", file, content, s.StepsAfterJoin[0].Script)
		}
	}
	if !strings.Contains(got.files[pathBootstrapConfig], token) || got.files[pathCA] != "ca" || !strings.Contains(got.files[path.Join(dirUnits, kubeletUnitName)], "--bootstrap-kubeconfig="+pathBootstrapConfig) {
		t.Error("the files of the join are not those of Drover")
	}
	if flags := got.files[pathKubeletFlags]; strings.Count(flags, "\n") != 1 || strings.Count(flags, `"`) != 2 {
		t.Errorf("the flags are more than one line: %q", flags)
	}
	if list := got.files[pathDownloads]; list != "" {
		for line := range strings.Lines(list) {
			if len(strings.Fields(line)) != 4 {
				t.Errorf("a download is %q", line)
			}
		}
	}
	for name, value := range in.Parameters {
		if have := variablesOf(t, got.files[pathEnvironment])[VariableOf(name)]; have != value {
			t.Errorf("the parameter %s is %q, want %q", name, have, value)
		}
	}
	if s.Proxy != nil {
		if have := variablesOf(t, got.files[pathProxy]); have["https_proxy"] != s.Proxy.HTTPS || !strings.HasSuffix(","+have["no_proxy"], ","+s.Proxy.NoProxy[0]) && !strings.Contains(","+have["no_proxy"]+",", ","+s.Proxy.NoProxy[0]+",") {
			t.Errorf("the proxy is %q", have)
		}
	}
	for _, m := range s.RegistryMirrors {
		if have := lookUp(t, got.files[path.Join(dirRegistries, m.Registry, "hosts.toml")], "host", strings.TrimRight(m.Mirrors[0].URL, "/"), "capabilities"); have == nil {
			t.Errorf("the mirror %q is not in %q", m.Mirrors[0].URL, got.files[path.Join(dirRegistries, m.Registry, "hosts.toml")])
		}
	}
	if have := lookUp(t, got.files[pathContainerdConfig], "plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"); s.SandboxImage != "" && have != s.SandboxImage {
		t.Errorf("the sandbox image is %v", have)
	}
}

// variablesOf an environment file, as systemd and a shell read it: a value is between quotes,
// and may have several lines.
func variablesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for text != "" {
		name, rest, ok := strings.Cut(text, `="`)
		if !ok || strings.ContainsAny(name, "\n\"\\$ ") {
			t.Fatalf("no variable begins at %q", text)
		}
		value, i := strings.Builder{}, 0
		for ; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '$' || rest[i] == '`' {
				t.Fatalf("%s has a %q that a shell replaces", name, rest[i])
			}
			value.WriteByte(rest[i])
		}
		out[name] = value.String()
		if text, ok = strings.CutPrefix(rest[min(i, len(rest)):], "\"\n"); !ok {
			t.Fatalf("%s does not end", name)
		}
	}
	return out
}
