package terraformcli

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// Build builds a Go program of this repository, in the module in dir, with the flags of the
// Makefile: the build cache of that build is reused.
func Build(t *testing.T, dir, pkg, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(root(t), dir), "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, b)
	}
}

// root of the repository.
func root(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/drover-dev/drover").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// binary is the terraform of the PATH, or one that is built and kept, so that the test runs on a
// computer that has only Go.
func binary(t *testing.T) string {
	t.Helper()
	if p, err := exec.LookPath("terraform"); err == nil {
		return p
	}
	bin := filepath.Join(root(t), ".work", "bin", "terraform")
	if _, err := os.Stat(bin); err != nil {
		t.Log("no terraform in the PATH: building it, which takes minutes")
		// Another test may be building it at the same time.
		made := fmt.Sprintf("%s-%d", bin, os.Getpid())
		Build(t, filepath.Join("tools", "terraform"), "github.com/hashicorp/terraform", made)
		if err := os.Rename(made, bin); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

// Start returns a Terraform with a provider of this repository, and the folder for its
// configuration. Terraform finds the provider only in a mirror in the file system.
func Start(t *testing.T, address string) (tf *tfexec.Terraform, dir string) {
	t.Helper()
	dir = t.TempDir()
	mirror, program := filepath.Join(dir, "mirror"), "terraform-provider-"+path.Base(address)
	Build(t, ".", "./cmd/"+program, filepath.Join(mirror, address, "0.1.0", runtime.GOOS+"_"+runtime.GOARCH, program))

	config := filepath.Join(dir, "terraformrc")
	Write(t, config, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	tf, err := tfexec.NewTerraform(work, binary(t))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); !strings.HasPrefix(name, "TF_") {
			env[name] = value
		}
	}
	env["TF_CLI_CONFIG_FILE"], env["CHECKPOINT_DISABLE"] = config, "1"
	if err := tf.SetEnv(env); err != nil {
		t.Fatal(err)
	}
	return tf, work
}

// Write a file that only its owner may read.
func Write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
