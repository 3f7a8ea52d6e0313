package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
			// A VM that is cut off after the step and before its stamp runs it again.
			for range 2 {
				cmd := exec.CommandContext(t.Context(), "sh", script)
				cmd.Env = append(os.Environ(), "PAUSE=0", "COUNT="+count, "KUBELET_CONFIG="+config)
				if out, err := cmd.CombinedOutput(); (err != nil) != tc.fails {
					t.Fatalf("%v: %s", err, out)
				}
			}
			got, err := os.ReadFile(config)
			if err != nil || string(got) != tc.want {
				t.Errorf("%v: %s", err, got)
			}
		})
	}
}

func TestTheKubeletOfAnExternalCloudProvider(t *testing.T) {
	d := document(t, input(func(in *Input) { in.ExternalCloudProvider, in.ProviderIDCommand = true, "echo x://1" }))
	var steps []string
	for _, s := range d.Steps {
		steps = append(steps, s.Name)
	}
	if want := []string{"install-kubelet", "provider-id", "start-kubelet"}; !slices.Equal(steps, want) {
		t.Errorf("the kubelet is started after its configuration is complete: steps %q, want %q", steps, want)
	}
	if !strings.Contains(d.Steps[1].Script, "\necho x://1\n") {
		t.Errorf("the command is not in the script:\n%s", d.Steps[1].Script)
	}
	i := slices.IndexFunc(d.Files, func(f File) bool { return f.Path == pathKubeletFlags })
	if flags := d.Files[i].Content; !strings.Contains(flags, "--cloud-provider=external") {
		t.Errorf("flags %q", flags)
	}
}
