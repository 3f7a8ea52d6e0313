package localcloud_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	api "github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/terraform/localcloud"
	"github.com/drover-dev/drover/test/kit/terraformcli"
	"github.com/drover-dev/drover/test/patience"
)

// startCloud runs the local cloud's daemon for the time of the test.
func startCloud(t *testing.T) *api.Client {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "local-cloud")
	terraformcli.Build(t, filepath.Join("cluster", "cloud"), ".", bin)

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
	case <-patience.Over():
		t.Fatal("the local cloud is never ready")
	}
	return nil
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
