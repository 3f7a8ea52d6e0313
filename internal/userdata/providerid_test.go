package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheProviderIDGoesIntoTheKubeletsConfiguration(t *testing.T) {
	cases := map[string]struct {
		command, want string
		fails         bool
	}{
		"AsTheCommandPrintsIt": {
			command: `m() { echo "i-0123"; }
echo "aws:///eu-west-1a/$(m instance-id)"
`,
			want: "kind: KubeletConfiguration\nproviderID: \"aws:///eu-west-1a/i-0123\"\n",
		},
		"OnceTheCloudAnswers": {
			command: `n=$(cat "$COUNT"); echo $((n + 1)) >"$COUNT"; [ "$n" -ge 2 ] && echo "x://$n"`,
			want:    "kind: KubeletConfiguration\nproviderID: \"x://2\"\n",
		},
		"AndNotAtAllIfItNeverDoes": {
			command: "true", fails: true, want: "kind: KubeletConfiguration\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script, config, count := filepath.Join(dir, "provider-id.sh"), filepath.Join(dir, "config.yaml"), filepath.Join(dir, "count")
			for file, content := range map[string]string{script: providerIDWriter(tc.command), config: "kind: KubeletConfiguration\n", count: "0"} {
				if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "sh", script, config)
			cmd.Env = append(os.Environ(), "PAUSE=0", "COUNT="+count)
			if out, err := cmd.CombinedOutput(); (err != nil) != tc.fails {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(config)
			if err != nil || string(got) != tc.want {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

func TestTheKubeletOfAnExternalCloudProvider(t *testing.T) {
	b, err := CloudInit(Input{Hostname: "w1", Version: "v1.35.4", DownloadURL: "https://example.org", ExternalCloudProvider: true, ProviderIDCommand: "echo x://1"})
	if err != nil {
		t.Fatal(err)
	}
	// The kubelet is started after its configuration is complete.
	order := []string{"- daemon-reload", "- /opt/drover/provider-id.sh\n  - /var/lib/kubelet/config.yaml", "- --now", "--hostname-override=w1 --cloud-provider=external", "echo x://1"}
	rest := string(b)
	for _, want := range order {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%q is not in its place in\n%s", want, b)
		}
		rest = after
	}
}
