package gitops

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// cacheOfSchemas returns a cache for the CLI, which would otherwise download the schemas of
// Crossplane.
func cacheOfSchemas(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	image := filepath.Join(dir, "xpkg.crossplane.io", "crossplane", "crossplane@stable")
	crds, err := filepath.Glob(filepath.Join(binary("crossplane-manifests"), "crds", "*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("no CRDs of Crossplane: %v", err)
	}
	var all []byte
	for _, file := range crds {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(append(all, "---\n"...), b...)
	}
	if err := os.MkdirAll(image, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(image, "package.yaml"), all, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestValidateKnowsTheExamplesAndFindsAMistake(t *testing.T) {
	t.Parallel()
	cache := cacheOfSchemas(t)
	args := append(command(t, "resource validate"), "--cache-dir="+cache)
	out, err := crossplane(t, "", args...)
	if err != nil || !strings.Contains(out, ": 0 missing schemas, 6 success cases, 0 failure cases") {
		t.Errorf("%v\n%s", err, out)
	}

	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	b, err := os.ReadFile(filepath.Join(kit.Root(), "examples", "local", "machinedeployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(b), "v1.35.4", "1.35.4", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, a := range args {
		if a == "examples/local" {
			args[i] = wrong
		}
	}
	if out, err := crossplane(t, "", args...); err == nil || !strings.Contains(out, "must be a kubelet version like v1.35.4") {
		t.Errorf("a wrong version is valid: %v\n%s", err, out)
	}
}
