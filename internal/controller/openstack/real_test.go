package openstack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/openstack/real"
	"github.com/drover-dev/drover/test/patience"
)

// TestTheServersOfARealOpenStackAreFoundAndListed: more servers than a page of Nova has.
func TestTheServersOfARealOpenStackAreFoundAndListed(t *testing.T) {
	if !real.IsThere() {
		t.Skip("make openstack runs it")
	}
	ctx := t.Context()
	cloud, err := real.Open(ctx)
	mustReal(t, err)
	defer cloud.Close()
	account, err := cloud.NewProject(ctx, "found-"+rand.Text())
	mustReal(t, err)
	key := projectKey{authURL: cloud.URL + "/identity/v3", region: "RegionOne", credentials: credentials{ApplicationCredentialID: account.Member.ID, ApplicationCredentialSecret: account.Member.Secret}}
	p, err := newProject(key, http.DefaultTransport, &faults{})
	mustReal(t, err)
	mustReal(t, p.login(ctx))

	// Names are not unique, and one is a part of another.
	tags := func(machine string) map[string]string {
		return map[string]string{machinev1alpha1.TagInstallation: "i", machinev1alpha1.TagMachineUID: machine}
	}
	const many = 24
	first, err := cloud.Create(ctx, account, "worker.1", tags("first"))
	mustReal(t, err)
	for i := range many - 1 {
		_, err := cloud.Create(ctx, account, []string{"worker.1", "worker.12", "worker-1"}[i%3], tags(fmt.Sprint("other-", i)))
		mustReal(t, err)
	}
	for _, tc := range []struct{ name, machine, want string }{{"worker.1", "first", first}, {"worker.12", "first", ""}, {"worker.1", "nobody", ""}, {"worker", "first", ""}} {
		if id, err := p.findServer(ctx, tc.name, tags(tc.machine)); id != tc.want || err != nil {
			t.Errorf("%s of %s is %q, want %q: %v", tc.name, tc.machine, id, tc.want, err)
		}
	}
	vms, complete, err := lister{p}.List(ctx, "i")
	if err != nil || !complete || len(vms) != many {
		t.Errorf("%d servers are listed, want %d: %v", len(vms), many, err)
	}

	patience.Eventually(t, func(ctx context.Context) string {
		s, err := p.servers(ctx, servers.ListOpts{Name: "^worker\\.1$"})
		i := slices.IndexFunc(s, func(s servers.Server) bool { return s.ID == first })
		if err != nil || i < 0 || s[i].Status != active {
			return fmt.Sprintf("%s is not active: %v", first, err)
		}
		return ""
	})
	c, err := p.compute()
	mustReal(t, err)
	mustReal(t, servers.Reboot(ctx, c, first, servers.RebootOpts{Type: servers.SoftReboot}).ExtractErr())
	mustReal(t, servers.Reboot(ctx, c, first, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	got, err := cloud.Reboots(ctx, first)
	mustReal(t, err)
	for i, want := range []struct{ kind, status string }{{"SOFT", "REBOOT"}, {"HARD", "HARD_REBOOT"}} {
		if len(got) != 2 || got[i].Kind != want.kind || !slices.Equal(got[i].Statuses, []string{want.status, active}) {
			t.Errorf("reboots %+v, want a %s one by %s to %s", got, want.kind, want.status, active)
		}
	}
	t.Logf("%+v", got)
	for _, vm := range vms {
		mustReal(t, cloud.Delete(ctx, vm.ExternalName))
	}
	patience.Eventually(t, func(ctx context.Context) string {
		left, _, err := lister{p}.List(ctx, "i")
		if err != nil || len(left) > 0 {
			return fmt.Sprintf("%d are left: %v", len(left), err)
		}
		return ""
	})
}

func mustReal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
