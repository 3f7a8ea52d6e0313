package recovery

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// envVelero names the folder of Velero, its plugin and a store of backups, which "make velero"
// builds.
const envVelero = "DROVER_VELERO"

// bucket of the backups.
const bucket = "backups"

// velero backs up and restores as docs/recovery.md describes. Both control clusters use the same
// store.
type velero struct {
	// dir has the programs, and store is the address of the store.
	dir, store string
}

// newVelero starts the store. It returns nil if Velero is not built.
func newVelero(t *testing.T) *velero {
	t.Helper()
	dir := os.Getenv(envVelero)
	if dir == "" {
		return nil
	}
	v := &velero{dir: dir, store: freeAddress(t)}
	v.start(t, "gofakes3", "-backend", "memory", "-initialbucket", bucket, "-host", v.store)
	return v
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// command of Velero. It writes no files outside of the test's folder.
func (v *velero) command(ctx context.Context, t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(v.dir, name), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "AWS_ACCESS_KEY_ID=drover", "AWS_SECRET_ACCESS_KEY=drover", "VELERO_NAMESPACE=velero")
	return cmd
}

// start a process that runs until the test ends. If the test fails, its log is printed.
func (v *velero) start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := v.command(context.Background(), t, name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if said, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s %v: %s", name, args, said[max(0, len(said)-20_000):])
		}
	})
	return cmd
}

// install Velero in a control cluster. Its server runs as a process outside of the cluster.
func (v *velero) install(t *testing.T, p *kit.Plane) *exec.Cmd {
	t.Helper()
	crds := v.run(t, p, "install", "--crds-only", "--dry-run", "--output", "yaml")
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if err := os.WriteFile(file, []byte(crds), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", file},
		{"wait", "--for=condition=Established", patience.Flag(), "-f", file},
		{"create", "namespace", "velero"},
		// A restore reads the image of this Deployment.
		{"-n", "velero", "create", "deployment", "velero", "--image=velero/velero", "--replicas=0"},
	} {
		if out, err := p.Kubectl(t, args...); err != nil {
			t.Fatalf("kubectl %v: %v: %s", args, err, out)
		}
	}
	v.run(t, p, "backup-location", "create", "default", "--default", "--provider", "aws", "--bucket", bucket,
		"--config", "region=local,s3ForcePathStyle=true,checksumAlgorithm=,s3Url=http://"+v.store)
	order := documented(t, "--restore-resource-priorities=")
	if len(order) != 1 {
		t.Fatalf("docs/recovery.md has the orders %v", order)
	}
	server := v.start(t, "velero", "server", "--kubeconfig", p.Kubeconfig, "--plugin-dir", filepath.Join(v.dir, "plugins"), order[0],
		"--metrics-address", freeAddress(t), "--profiler-address", freeAddress(t), "--backup-sync-period", "2s")
	patience.Eventually(t, func(context.Context) string { return v.phase(t, p, "backupstoragelocation", "default", "Available") })
	return server
}

// phase compares the phase of a Velero object with the wanted one, and returns empty if they are
// equal.
func (v *velero) phase(t *testing.T, p *kit.Plane, kind, name, want string) string {
	out, err := p.Kubectl(t, "-n", "velero", "get", kind+".velero.io", name, "--output", "jsonpath={.status.phase}")
	if err == nil && out == want {
		return ""
	}
	return fmt.Sprintf("%s %s: %q, want %q, error %v", kind, name, out, want, err)
}

func (v *velero) run(t *testing.T, p *kit.Plane, args ...string) string {
	t.Helper()
	out, err := v.command(t.Context(), t, "velero", append(args, "--kubeconfig", p.Kubeconfig)...).CombinedOutput()
	if err != nil {
		t.Fatalf("velero %v: %v: %s", args, err, out)
	}
	return string(out)
}

// documented returns the lines of docs/recovery.md with commands that begin with a text.
func documented(t *testing.T, prefix string) (out []string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/recovery.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(doc)) {
		if command, ok := strings.CutPrefix(line, "    "); ok && strings.HasPrefix(command, prefix) {
			out = append(out, strings.TrimSpace(command))
		}
	}
	return out
}

// follow the commands of the docs that begin with a text, for another namespace than that of the
// docs.
func (v *velero) follow(t *testing.T, p *kit.Plane, prefix, namespace string) {
	t.Helper()
	commands := documented(t, prefix)
	if len(commands) == 0 {
		t.Fatalf("docs/recovery.md has no command %q", prefix)
	}
	for _, c := range commands {
		args := strings.Fields(c)[1:]
		for i := range args {
			if args[i] == "team" {
				args[i] = namespace
			}
		}
		t.Logf("velero %v", args)
		v.run(t, p, args...)
	}
}

// backUp a namespace of a control cluster that will be lost.
func (v *velero) backUp(t *testing.T, p *kit.Plane, namespace string) {
	t.Helper()
	server := v.install(t, p)
	v.follow(t, p, "velero backup create", namespace)
	if not := v.phase(t, p, "backup", namespace, "Completed"); not != "" {
		t.Fatalf("%s: %s", not, v.run(t, p, "backup", "describe", namespace, "--details"))
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// restore a namespace from a backup that another control cluster made.
func (v *velero) restore(t *testing.T, p *kit.Plane, namespace string) {
	t.Helper()
	v.install(t, p)
	patience.Eventually(t, func(context.Context) string { return v.phase(t, p, "backup", namespace, "Completed") })
	v.follow(t, p, "velero restore create", namespace)
	if not := v.phase(t, p, "restore", namespace, "Completed"); not != "" {
		t.Fatalf("%s: %s", not, v.run(t, p, "restore", "describe", namespace, "--details"))
	}
}
