package openstack

import (
	"fmt"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

func (w *world) lister(t *testing.T) lister {
	t.Helper()
	p, err := newProject(projectKey{authURL: "http://openstack/identity/v3", credentials: credentials{ApplicationCredentialID: good, ApplicationCredentialSecret: "secret-of-" + good}}, fakes.InMemory(w.cloud), &faults{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.login(t.Context()); err != nil {
		t.Fatal(err)
	}
	return lister{p}
}

func TestAnInventoryListsTheServersOfAnInstallation(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		const n = 45 // More than two pages.
		want := map[string]bool{}
		for i := range n {
			want[w.cloud.Create("ours", fmt.Sprintf("a-%d", i), map[string]string{"drover-installation": "installation"})] = true
		}
		w.cloud.Create("ours", "foreign", map[string]string{"drover-installation": "other"})
		vms, complete, err := w.lister(t).List(t.Context(), "installation")
		if err != nil || !complete || len(vms) != n {
			t.Fatalf("%d VMs, complete: %t, error %v", len(vms), complete, err)
		}
		for _, vm := range vms {
			if !want[vm.ExternalName] || vm.ProviderID != "openstack:///"+vm.ExternalName || vm.Tags["drover-installation"] != "installation" || time.Since(vm.CreatedAt) > time.Hour {
				t.Errorf("listed: %+v", vm)
			}
		}
	})
}

func TestAnInventoryOfWhichAPageIsMissingIsAnError(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		for i := range 45 {
			w.cloud.Create("ours", fmt.Sprintf("a-%d", i), map[string]string{"drover-installation": "installation"})
		}
		l := w.lister(t)
		w.cloud.Break(fakecloud.Fault{Call: "GET /compute/v2.1/servers/detail", Status: 500, Code: "computeFault", Message: "sorry"})
		if vms, complete, err := l.List(t.Context(), "installation"); err == nil || complete || len(vms) > 0 {
			t.Errorf("%d VMs, complete: %t, error %v", len(vms), complete, err)
		}
	})
}
