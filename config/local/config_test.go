package local

import (
	"context"
	"errors"
	"fmt"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-dev/drover/internal/terraform/localcloud"
)

func provider(t *testing.T) *ujconfig.Provider {
	t.Helper()
	pc, err := Provider(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return pc
}

func TestKinds(t *testing.T) {
	type kind struct{ Group, Version, Kind string }
	got := map[string]kind{}
	for name, r := range provider(t).Resources {
		got[name] = kind{r.ShortGroup, r.Version, r.Kind}
	}
	want := map[string]kind{VirtualMachine: {"", "v1alpha1", "VirtualMachine"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEveryResourceHasABehaviour(t *testing.T) {
	for name := range provider(t).Resources {
		if b := Behaviours[name]; b.Ready == nil || b.CreationUnknown == nil {
			t.Errorf("%s has none", name)
		}
	}
}

func TestExternalNames(t *testing.T) {
	cases := map[string]struct {
		resource string
		state    map[string]any
		want     string
		err      bool
	}{
		"TheVMsNameIsTheCloudsID": {VirtualMachine, map[string]any{"id": "vm-1", "name": "a"}, "vm-1", false},
		"AVMWithoutIDHasNoName":   {VirtualMachine, map[string]any{"name": "a"}, "", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := provider(t).Resources[tc.resource].ExternalName
			got, err := n.GetExternalNameFn(tc.state)
			if got != tc.want || (err != nil) != tc.err {
				t.Fatalf("name %q, error %v; want %q, error %t", got, err, tc.want, tc.err)
			}
			if id, err := n.GetIDFn(context.Background(), tc.want, nil, nil); id != tc.want || err != nil {
				t.Errorf("id %q, error %v; want %q", id, err, tc.want)
			}
			if !n.DisableNameInitializer {
				t.Error("the object's name is taken for the cloud's")
			}
		})
	}
}

func TestReady(t *testing.T) {
	cases := map[string]struct {
		state map[string]any
		want  xpv2.Condition
	}{
		"PendingIsBeingCreated":       {map[string]any{"state": "Pending"}, xpv2.Creating().WithMessage("state: Pending")},
		"RunningIsReady":              {map[string]any{"state": "Running", "error": nil}, xpv2.Available()},
		"TerminatingIsBeingDeleted":   {map[string]any{"state": "Terminating"}, xpv2.Deleting()},
		"AnUnknownStateIsNotReady":    {map[string]any{"state": "Paused"}, xpv2.Creating().WithMessage("state: Paused")},
		"NoStateIsNotReady":           {nil, xpv2.Creating().WithMessage("state: ")},
		"FailedSaysWhyByCodeAndCause": {map[string]any{"state": "Failed", "error": map[string]any{"code": "CapacityExhausted", "message": "none left"}}, xpv2.Unavailable().WithMessage("CapacityExhausted: none left")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, ready(tc.state), cmpopts.IgnoreFields(xpv2.Condition{}, "LastTransitionTime")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestCreationUnknown(t *testing.T) {
	cases := map[string]struct {
		text string
		want bool
	}{
		"ALostAnswer":          {"resource creation call returned error diags: Cannot create virtual machine: " + localcloud.CodeCreationUnknown + ": EOF", true},
		"AnErrorOfTheCloud":    {"resource creation call returned error diags: Cannot create virtual machine: QuotaExceeded: none left", false},
		"AMessageWithTheWords": {"InvalidRequest: name: " + localcloud.CodeCreationUnknown, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := creationUnknown(fmt.Errorf("create failed: %w", errors.New(tc.text))); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
