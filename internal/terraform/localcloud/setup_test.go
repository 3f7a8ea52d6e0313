package localcloud_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	api "github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

const root = "../../.."

// build builds a Go program of this repository, in the module in dir, as the Makefile
// does, to find in the cache what that built.
func build(t *testing.T, dir, pkg, out string) {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", abs, "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, b)
	}
}

// terraformBinary is the terraform of the PATH, or one that is built and kept: a
// computer that has only Go can run the test.
func terraformBinary(t *testing.T) string {
	t.Helper()
	if p, err := exec.LookPath("terraform"); err == nil {
		return p
	}
	bin, err := filepath.Abs(filepath.Join(root, ".work", "bin", "terraform"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Log("no terraform in the PATH: building it, which takes minutes")
		build(t, filepath.Join("tools", "terraform"), "github.com/hashicorp/terraform", bin)
	}
	return bin
}

// startCloud runs the local cloud's daemon for the time of the test.
func startCloud(t *testing.T) *api.Client {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "local-cloud")
	build(t, filepath.Join("cluster", "cloud"), ".", bin)

	state := filepath.Join(dir, "state")
	cmd := exec.Command(bin, "--dir", state, "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	endpoint := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		at := regexp.MustCompile(`endpoint=(http://\S+)`)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			if m := at.FindStringSubmatch(s.Text()); m != nil {
				endpoint <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-drained
		_ = cmd.Wait()
	})
	select {
	case e := <-endpoint:
		token, err := os.ReadFile(filepath.Join(state, "token"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := api.NewClient(e, string(token))
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(localcloud.EnvEndpoint, e)
		t.Setenv(localcloud.EnvToken, string(token))
		return c
	case <-drained:
		t.Fatal("the local cloud ended before it was ready")
	case <-time.After(2 * time.Minute):
		t.Fatal("the local cloud is not ready after 2 min")
	}
	return nil
}

// startTerraform gives a Terraform with our provider, which it finds in a mirror
// in the file system and nowhere else.
func startTerraform(t *testing.T) (tf *tfexec.Terraform, dir string) {
	t.Helper()
	dir = t.TempDir()
	mirror := filepath.Join(dir, "mirror")
	plugin := filepath.Join(mirror, localcloud.Address, "0.1.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-localcloud")
	build(t, ".", "./cmd/terraform-provider-localcloud", plugin)

	config := filepath.Join(dir, "terraformrc")
	write(t, config, fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", mirror))
	t.Setenv("TF_CLI_CONFIG_FILE", config)
	t.Setenv("CHECKPOINT_DISABLE", "1")

	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	tf, err := tfexec.NewTerraform(work, terraformBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	return tf, work
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// vms of the cloud.
func vms(t *testing.T, c *api.Client) []api.VM {
	t.Helper()
	l, err := c.ListVMs(context.Background(), api.ListVMsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
