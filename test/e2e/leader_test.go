package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/test/kit"
)

// TestTwoInstancesOfTheProvider runs a second provider-drover. The one that leads is frozen in
// the middle of a rollout, as by a Node that hangs, and wakes up when the other leads: it must
// not go on. Then the other one is killed.
func TestTwoInstancesOfTheProvider(t *testing.T) {
	t.Parallel()
	p, err := kit.Up(t.Context(), kit.Options{})
	t.Cleanup(p.Down)
	must(t, err)
	f := p.NewFleet(t)
	elect(t, f)
	md := f.Deployment("led", 5, 1, 0)
	census := f.Census(t)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	first, err := f.PID(t.Context(), "provider-drover")
	must(t, err)
	holder := leader(t, f)
	second := standby(t, first)
	guard := f.Guard(t, kit.Bounds{MaxMachines: 5 + 1 + 1, MinAvailable: 5})
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	updated(t, f, md.Name, 1)
	if now := leader(t, f); now != holder {
		t.Fatalf("%s leads before %s failed", now, holder)
	}

	must(t, syscall.Kill(first, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(first, syscall.SIGCONT) })
	kit.Eventually(t, kit.Patience, func(context.Context) string {
		if now := leader(t, f); now == holder || now == "" {
			return fmt.Sprintf("%q leads, which is frozen", now)
		}
		return ""
	})
	updated(t, f, md.Name, 3)
	must(t, syscall.Kill(first, syscall.SIGCONT))
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		if pid, err := f.PID(ctx, "provider-drover"); err != nil || pid == first {
			return fmt.Sprintf("the instance that lost its lease is there: %d, %v", pid, err)
		}
		return ""
	})

	other := leader(t, f)
	must(t, second.Process.Kill())
	kit.Eventually(t, kit.Patience, func(context.Context) string {
		if now := leader(t, f); now == other || now == "" {
			return fmt.Sprintf("%q leads, which was killed", now)
		}
		return ""
	})
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 15)
	everyMachineHasItsNode(t, f, 5)
	census.Done(t, 10)
	f.DeleteDeployment(t, md.Name)
}

// elect a leader, as providers do by default. A local control plane switches it off.
func elect(t *testing.T, f kit.Fleet) {
	t.Helper()
	before, err := f.PID(t.Context(), "provider-drover")
	must(t, err)
	const args = "/spec/deploymentTemplate/spec/template/spec/containers/0/args/-"
	out, err := f.Kubectl(t, "patch", "deploymentruntimeconfig.pkg.crossplane.io", "provider-drover", "--type=json", "-p", fmt.Sprintf(
		`[{"op":"add","path":%q,"value":"--leader-election"},{"op":"add","path":%q,"value":"--leader-election-namespace=crossplane-system"}]`, args, args))
	if err != nil {
		t.Fatal(out)
	}
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		if pid, err := f.PID(ctx, "provider-drover"); err != nil || pid == before || leader(t, f) == "" {
			return fmt.Sprintf("PID %d, before %d, led by %q: %v", pid, before, leader(t, f), err)
		}
		return ""
	})
}

func updated(t *testing.T, f kit.Fleet, name string, n int32) {
	t.Helper()
	md := f.Deployment(name, 0, 1, 0)
	kit.Eventually(t, kit.Patience, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		if md.Status.UpdatedReplicas < n {
			return fmt.Sprintf("%d Machines updated, want %d", md.Status.UpdatedReplicas, n)
		}
		return ""
	}, f.Describe)
}

// leader is who holds the lease of provider-drover.
func leader(t *testing.T, f kit.Fleet) string {
	t.Helper()
	l := &coordinationv1.LeaseList{}
	must(t, f.Client.List(t.Context(), l))
	for _, lease := range l.Items {
		if lease.Name == "crossplane-leader-election-provider-drover" {
			return ptr.Deref(lease.Spec.HolderIdentity, "")
		}
	}
	return ""
}

// standby starts another process as a running one was started, without its ports.
func standby(t *testing.T, pid int) *exec.Cmd {
	t.Helper()
	of := func(name string) []string {
		b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), name))
		must(t, err)
		return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	}
	exe, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(pid), "exe"))
	must(t, err)
	cwd, err := os.Readlink(filepath.Join("/proc", fmt.Sprint(pid), "cwd"))
	must(t, err)
	args := append(of("cmdline")[1:], "--metrics-bind-address=", "--health-probe-bind-address=", "--pprof-bind-address=")
	cmd := exec.CommandContext(t.Context(), exe, args...) //nolint:gosec // It runs already.
	out := &bytes.Buffer{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cwd, of("environ"), out, out
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err != nil && t.Failed() {
			t.Log(errors.Join(err, errors.New(out.String())))
		}
	})
	return cmd
}
