package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	"github.com/drover-dev/drover/test/openstack/real"
	"github.com/drover-dev/drover/test/patience"
)

// storm returns a world at the OpenStack of "make openstack", whose Machines have ports and floating IPs of their own.
func storm(t *testing.T) (*world, *realOpenStackAccount) {
	t.Helper()
	if !real.IsThere() {
		t.Skip("make openstack runs it")
	}
	w := newWorld(t, registered["openstack"])
	return w, w.account.(*realOpenStackAccount)
}

// TestOpenStackHasFiftyServersAtOnce creates 50 Machines at once in a project whose quota they use up, and deletes them.
func TestOpenStackHasFiftyServersAtOnce(t *testing.T) {
	w, a := storm(t)
	const many = 50
	must(t, a.cloud.SetQuota(t.Context(), a.project, many))
	before, _ := a.cloud.Calls()
	began := time.Now()
	md := w.deployment("fifty", many)
	w.Create(t, md)
	failed := w.awaitAll(t, a, md, many)
	ran := time.Since(began)
	during, _ := a.cloud.Calls()
	if len(failed) > 0 {
		t.Errorf("Machines failed: %q", failed)
	}
	w.oneServerEach(t, many)
	if _, err := a.cloud.Create(t.Context(), a.project, "beyond", nil); err == nil {
		t.Errorf("the quota of %d servers is not used up", many)
	}
	began = time.Now()
	w.end(t, md)
	after, _ := a.cloud.Calls()
	t.Logf("%d ran after %s, and were gone %s after their deletion; calls:\n%s\nof the deletion:\n%s", many, ran.Round(time.Second), time.Since(began).Round(time.Second),
		fakes.Table(since(before, during)), fakes.Table(since(during, after)))
}

// since returns how many calls there were after before.
func since(before, after map[string]int) map[string]int {
	out := map[string]int{}
	for call, n := range after {
		if n -= before[call]; n > 0 {
			out[call] = n
		}
	}
	return out
}

// killedAt are the creations at which the provider is killed: Nova has accepted the server, and nobody has recorded that.
var killedAt = []int{5, 12, 19, 26}

// TestOpenStackProviderIsKilledDuringThirtyCreations: each Machine gets one server, none fails, and nothing is left. The
// servers without a recorded answer are found by their name and metadata.
func TestOpenStackProviderIsKilledDuringThirtyCreations(t *testing.T) {
	w, a := storm(t)
	const many = 30
	var mu sync.Mutex
	created := 0
	mend := a.cloud.Break(fakes.Fault{
		Call: "POST /compute/v2.1/servers", Lost: true, Then: a.kill,
		Match: func(project string, _ []byte) bool {
			if project != w.Namespace {
				return false
			}
			mu.Lock()
			defer mu.Unlock()
			created++
			return slices.Contains(killedAt, created)
		},
	})
	defer mend()
	md := w.deployment("thirty", many)
	w.Create(t, md)
	failed := w.awaitAll(t, a, md, many)
	if len(failed) > 0 {
		t.Errorf("Machines failed: %q", failed)
	}
	if n := a.Died(); n != len(killedAt) {
		t.Errorf("the provider died %d times, want %d", n, len(killedAt))
	}
	w.oneServerEach(t, many)
	mu.Lock()
	t.Logf("%d calls created %d servers, and the provider died %d times", created, many, a.Died())
	mu.Unlock()
	w.end(t, md)
}

// awaitAll waits until the Machines of a deployment run. It returns those that were Failed in between, and those that were
// made in place of another.
func (w *world) awaitAll(t *testing.T, a *realOpenStackAccount, md *machinev1alpha1.MachineDeployment, many int) []string {
	t.Helper()
	seen, failed := map[string]bool{}, map[string]bool{}
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := w.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		running := 0
		for _, m := range machines {
			seen[string(m.UID)] = true
			switch m.Status.Phase {
			case machinev1alpha1.MachineRunning:
				running++
			case machinev1alpha1.MachineFailed:
				failed[fmt.Sprintf("%s: %s %s", m.Name, m.Status.FailureReason, m.Status.FailureMessage)] = true
			}
		}
		if running < many {
			servers, err := a.VMs(ctx)
			return fmt.Sprintf("%d of %d Machines run, with %d servers, %v", running, many, len(servers), err)
		}
		return w.Unsettled(ctx, md.Name)
	}, w.describe)
	out := []string{}
	for f := range failed {
		out = append(out, f)
	}
	if len(seen) != many {
		out = append(out, fmt.Sprintf("%d Machines were made for %d", len(seen), many))
	}
	return out
}

// oneServerEach checks that each Machine has one server, and that there is no other.
func (w *world) oneServerEach(t *testing.T, many int) {
	t.Helper()
	machines, err := w.Machines(t.Context())
	must(t, err)
	for _, m := range machines {
		w.vm(t, &m)
	}
	servers, err := w.account.VMs(t.Context())
	if err != nil || len(servers) != many || len(machines) != many {
		t.Errorf("%d Machines have %d servers, want %d: %v", len(machines), len(servers), many, err)
	}
}
