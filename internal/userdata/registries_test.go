package userdata

import (
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// lookUp a key of decoded TOML.
func lookUp(t *testing.T, text string, keys ...string) any {
	t.Helper()
	var v any
	m := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	v = m
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[k]
	}
	return v
}

func TestTheSandboxImageIsInTheShapeOfContainerdsMajorVersion(t *testing.T) {
	const image = "registry.example.org:5000/pause:3.10"
	cases := map[string]struct {
		major   int32
		sandbox []string
		cgroup  []string
		mirrors []string
	}{
		"Containerd1": {1, []string{"plugins", "io.containerd.grpc.v1.cri", "sandbox_image"},
			[]string{"plugins", "io.containerd.grpc.v1.cri", "containerd", "runtimes", "runc", "options", "SystemdCgroup"},
			[]string{"plugins", "io.containerd.grpc.v1.cri", "registry", "config_path"}},
		"Containerd2": {2, []string{"plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"},
			[]string{"plugins", "io.containerd.cri.v1.runtime", "containerd", "runtimes", "runc", "options", "SystemdCgroup"},
			[]string{"plugins", "io.containerd.cri.v1.images", "registry", "config_path"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := containerdConfig(tc.major, image)
			if got := lookUp(t, config, tc.sandbox...); got != image {
				t.Errorf("sandbox image %v", got)
			}
			// The rest is the same as without a sandbox image.
			for _, text := range []string{config, containerdConfig(tc.major, "")} {
				if lookUp(t, text, tc.cgroup...) != true || lookUp(t, text, tc.mirrors...) != dirRegistries {
					t.Errorf("the table of the image takes the place of others:\n%s", text)
				}
			}
			if strings.Contains(containerdConfig(tc.major, ""), "sandbox") {
				t.Error("a class without an image has one")
			}
		})
	}
}

func TestMirrorsAreInTheirOrderWithTheirOptions(t *testing.T) {
	text := hosts([]machinev1alpha1.RegistryEndpoint{{URL: "https://b.example.org/v2/docker/", OverridePath: true}, {URL: "http://a.example.org:5000", InsecureSkipVerify: true}})
	if strings.Index(text, "b.example.org") > strings.Index(text, "a.example.org") {
		t.Errorf("the second mirror comes first:\n%s", text)
	}
	if lookUp(t, text, "host", "https://b.example.org/v2/docker", "override_path") != true || lookUp(t, text, "host", "http://a.example.org:5000", "skip_verify") != true {
		t.Errorf("options are missing:\n%s", text)
	}
	if got := lookUp(t, text, "host", "http://a.example.org:5000", "override_path"); got != nil {
		t.Errorf("override_path %v", got)
	}
}
