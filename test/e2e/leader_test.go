package e2e

import (
	"context"
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
	"github.com/drover-dev/drover/test/patience"
)

// TestTwoInstancesOfTheProvider runs a second provider-drover. The leader is frozen in the middle
// of a rollout, as on a Node that hangs, and continues after the other instance has become the
// leader. It must stop then. Afterwards, the other instance is killed.
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
	holder := leaderBut(t, f, "")
	second := standby(t, first, filepath.Join(p.Dir, "logs", "provider-drover-standby.log"))
	guard := f.Guard(t, kit.Bounds{MaxMachines: 5 + 1 + 1, MinAvailable: 5})
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	updated(t, f, md.Name, 1)
	if now := leaderBut(t, f, ""); now != holder {
		t.Fatalf("%s leads before %s failed", now, holder)
	}

	must(t, syscall.Kill(first, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(first, syscall.SIGCONT) })
	other := leaderBut(t, f, holder)
	updated(t, f, md.Name, 3)
	must(t, syscall.Kill(first, syscall.SIGCONT))
	patience.Eventually(t, func(ctx context.Context) string {
		if pid, err := f.PID(ctx, "provider-drover"); err != nil || pid == first {
			return fmt.Sprintf("the instance that lost its lease is there: %d, %v", pid, err)
		}
		return ""
	})

	must(t, second.Process.Kill())
	leaderBut(t, f, other)
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 15)
	everyMachineHasItsNode(t, f, 5)
	census.Done(t, 10)
	f.DeleteDeployment(t, md.Name)
}

// elect enables leader election, the default of providers. A local control plane disables it.
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
	patience.Eventually(t, func(ctx context.Context) string {
		if pid, err := f.PID(ctx, "provider-drover"); err != nil || pid == before {
			return fmt.Sprintf("PID %d, before %d: %v", pid, before, err)
		}
		return ""
	})
	leaderBut(t, f, "")
}

func updated(t *testing.T, f kit.Fleet, name string, n int32) {
	t.Helper()
	md := f.Deployment(name, 0, 1, 0)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		if md.Status.UpdatedReplicas < n {
			return fmt.Sprintf("%d Machines updated, want %d", md.Status.UpdatedReplicas, n)
		}
		return ""
	}, f.Describe)
}

// leaderBut returns the holder of provider-drover's lease, once it differs from the previous
// holder.
func leaderBut(t *testing.T, f kit.Fleet, before string) string {
	t.Helper()
	now := ""
	patience.Eventually(t, func(ctx context.Context) string {
		lease := &coordinationv1.Lease{}
		err := f.Client.Get(ctx, client.ObjectKey{Namespace: "crossplane-system", Name: "crossplane-leader-election-provider-drover"}, lease)
		if now = ptr.Deref(lease.Spec.HolderIdentity, ""); err != nil || now == before || now == "" {
			return fmt.Sprintf("%q leads, before it was %q: %v", now, before, err)
		}
		return ""
	})
	return now
}

// standby starts another process with the arguments of a running one, without its ports. Its
// output is in the logs of the control plane, which are kept if a test fails.
func standby(t *testing.T, pid int, log string) *exec.Cmd {
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
	cmd := exec.CommandContext(t.Context(), exe, args...)
	out, err := os.Create(log)
	must(t, err)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cwd, of("environ"), out, out
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = out.Close()
	})
	return cmd
}
