package gitops

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func TestRenderComposesAMachineSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "schemas"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range commands(t, "kubectl") {
		line, file, ok := strings.Cut(c, " >")
		if !ok {
			continue
		}
		out, err := plane(t).Kubectl(t, strings.Fields(line)...)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), []byte(out), 0o600)
		}
		if err != nil {
			t.Fatalf("kubectl %s: %v", line, err)
		}
	}
	var required []byte
	for _, file := range []string{"examples/local/machineclass.yaml", "examples/local/clusterproviderconfig.yaml", "apis/machine/compositions/machine-local.yaml"} {
		b, err := os.ReadFile(filepath.Join(kit.Root(), file))
		if err != nil {
			t.Fatal(err)
		}
		required = append(append(required, "---\n"...), b...)
	}
	if err := os.WriteFile(filepath.Join(dir, "required.yaml"), required, 0o600); err != nil {
		t.Fatal(err)
	}

	args := command(t, "composition render")
	for i := range args {
		for _, name := range []string{"required.yaml", "schemas/"} {
			args[i] = strings.ReplaceAll(args[i], "="+name, "="+filepath.Join(dir, name))
		}
	}
	// The CLI renders without Docker, and calls the function at a free port.
	args = append(args, "--crossplane-binary="+binary("crossplane"), "-a", "render.crossplane.io/runtime-development-target="+serveFunction(t))
	out, err := crossplane(t, "", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"kind: MachineSet\n", "version: v1.35.4\n", "desiredReplicas: 3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the result lacks %q:\n%s", want, out)
		}
	}
}

// serveFunction starts function-drover, and returns its address.
func serveFunction(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), binary("function-drover"), "--insecure", "--address", address, "--metrics-address", "")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	patience.Eventually(t, func(ctx context.Context) string {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err.Error()
		}
		_ = c.Close()
		return ""
	})
	return address
}
