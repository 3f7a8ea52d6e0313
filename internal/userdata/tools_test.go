package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/osprofile"
	"github.com/drover-dev/drover/test/kit/tools"
)

// tool returns the path of a program that judges rendered documents.
func tool(t *testing.T, name, debianPackage string) string {
	t.Helper()
	return tools.Path(t, name, debianPackage, "the rendered documents")
}

// judged are the documents that all tools judge.
func judged(t *testing.T) map[string]Document {
	t.Helper()
	out := map[string]Document{
		"no profile": document(t, input(func(in *Input) { in.ExternalCloudProvider, in.ProviderIDCommand = true, "echo x://1" })),
	}
	out["no profile, all settings"] = document(t, input(withSettings(withoutProfileSettings)))
	for _, name := range osprofile.Names() {
		for _, version := range []string{"v1.35.4", "v1.36.0"} {
			of := func(in *Input) { in.Version = version }
			out[name+" "+version] = document(t, input(withProfile(name), of))
			settings := withSettings()
			if osprofile.BuiltIn(name).Spec.Containerd[0].Download != nil {
				settings = withSettings(pinContainerd)
			}
			out[name+" "+version+", all settings"] = document(t, input(withProfile(name), of, settings))
		}
	}
	return out
}

func TestShellcheckFindsNothing(t *testing.T) {
	shellcheck := tool(t, "shellcheck", "shellcheck")
	checked := map[string]bool{}
	for name, d := range judged(t) {
		scripts := append([]Step{{Name: "bootstrap", Script: bootstrapScript}}, d.Steps...)
		for _, s := range scripts {
			if checked[s.Script] {
				continue // Most documents have the same steps.
			}
			checked[s.Script] = true
			cmd := exec.CommandContext(t.Context(), shellcheck, "--severity=style", "-")
			cmd.Stdin = strings.NewReader(s.Script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s, step %s: %v\n%s", name, s.Name, err, out)
			}
		}
	}
}

// TestSystemdFindsNothing has systemd read the units of each document. Executables that
// only a VM has are no fault.
func TestSystemdFindsNothing(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "systemd")
	for name, d := range judged(t) {
		d, err := d.assembled()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		args := []string{"verify", "--man=no", "--recursive-errors=no"}
		for _, u := range d.Units {
			for _, f := range u.files() {
				file := filepath.Join(dir, strings.TrimPrefix(f.Path, dirUnits))
				write(t, f.Content, file)
				if err := os.Chmod(file, 0o600); err != nil {
					t.Fatal(err)
				}
				if filepath.Dir(file) == dir {
					args = append(args, file)
				}
			}
		}
		cmd := exec.CommandContext(t.Context(), analyze, args...)
		out, _ := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, dir) && !strings.Contains(line, "is not executable: No such file") || strings.Contains(line, "Unknown") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestCloudInitFindsNothing(t *testing.T) {
	cloudInit := tool(t, "cloud-init", "cloud-init")
	for name, d := range judged(t) {
		file := filepath.Join(t.TempDir(), "user-data")
		write(t, string(encoded(t, d, machinev1alpha1.CloudInit)), file)
		out, err := exec.CommandContext(t.Context(), cloudInit, "schema", "--config-file", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Valid") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestIgnitionFindsNothing(t *testing.T) {
	for _, d := range judged(t) {
		doc, err := typical.Fill(string(encoded(t, d, machinev1alpha1.Ignition)), Form{})
		if err != nil {
			t.Fatal(err)
		}
		readIgnition(t, doc)
	}
}
