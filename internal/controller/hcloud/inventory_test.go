package hcloud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

func TestAnInventoryListsTheServersOfAnInstallation(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		const n = perPage + 5 // More than a page.
		for i := range n {
			vm := server(fmt.Sprintf("a-%d", i))
			vm.Spec.ForProvider.PlacementGroupID = nil // It holds ten.
			w.Add(vm)
		}
		foreign := server("foreign")
		foreign.Spec.ForProvider.Labels["drover-installation"] = "other"
		w.Add(foreign)
		w.Until(soon, "all are there", func() bool { return len(w.cloud.Servers("ours")) == n+1 })
		want := map[string]bool{}
		for _, s := range w.cloud.Servers("ours") {
			want[fmt.Sprint(s.ID)] = s.Name != "foreign"
		}

		l := lister{newProject(projectKey{"http://hetzner/v1", goodToken}, fakes.InMemory(w.cloud))}
		vms, complete, err := l.List(t.Context(), "installation")
		if err != nil || !complete || len(vms) != n {
			t.Fatalf("%d VMs, complete: %t, error %v", len(vms), complete, err)
		}
		for _, vm := range vms {
			if !want[vm.ExternalName] || vm.ProviderID != "hcloud://"+vm.ExternalName || vm.Tags["drover-installation"] != "installation" || time.Since(vm.CreatedAt) > time.Hour {
				t.Errorf("listed: %+v", vm)
			}
		}
	})
}

func TestAnInventoryOfWhichAPageIsMissingIsAnError(t *testing.T) {
	inWorld(t, fakecloud.Options{}, func(t *testing.T, w *world) {
		w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: "GET /servers", Status: 500, Code: "server_error", Message: "sorry"})
		l := lister{newProject(projectKey{"http://hetzner/v1", goodToken}, fakes.InMemory(w.cloud))}
		if vms, complete, err := l.List(t.Context(), "installation"); err == nil || complete || len(vms) > 0 || !strings.Contains(err.Error(), "sorry") {
			t.Errorf("%d VMs, complete: %t, error %v", len(vms), complete, err)
		}
	})
}
