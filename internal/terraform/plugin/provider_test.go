package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-dev/drover/internal/terraform/plugin"
	"github.com/drover-dev/drover/internal/terraform/plugin/plugintest"
	"github.com/drover-dev/drover/test/patience"
)

func TestMain(m *testing.M) {
	plugintest.Main()
	os.Exit(m.Run())
}

const typ = "fake_vm"

// A world has the provider in a mirror, and a cloud.
type world struct {
	*testing.T
	pool     *plugin.Pool
	settings plugin.Settings
	dir      string
}

func newWorld(t *testing.T, protocol int) *world {
	t.Helper()
	mirror, digest := plugintest.Mirror(t, protocol)
	w := &world{T: t, pool: plugin.NewPool(plugin.Mirror(mirror), time.Now), dir: t.TempDir()}
	w.settings = plugin.Settings{
		Source:        plugin.Source{Address: fmt.Sprintf("%s%d", plugintest.Address, protocol), Version: plugintest.Version, SHA256: []string{digest}},
		Configuration: map[string]any{"dir": w.dir},
	}
	t.Cleanup(w.pool.Close)
	return w
}

func (w *world) provider() *plugin.Provider {
	w.Helper()
	p, release, err := w.pool.Get(w.Context(), w.settings)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(release)
	return p
}

func (w *world) create(arguments map[string]any) (plugin.State, error) {
	w.Helper()
	p := w.provider()
	plan, err := p.PlanCreate(w.Context(), typ, arguments)
	if err != nil {
		w.Fatal(err)
	}
	return p.ApplyCreate(w.Context(), typ, plan)
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// both runs a test by both versions of the protocol.
func both(t *testing.T, f func(w *world)) {
	for _, protocol := range []int{5, 6} {
		t.Run(fmt.Sprintf("Protocol%d", protocol), func(t *testing.T) { f(newWorld(t, protocol)) })
	}
}

func TestAResourceLivesAndEnds(t *testing.T) {
	both(t, func(w *world) {
		p := w.provider()
		state, err := w.create(map[string]any{"name": "a", "tags": map[string]any{"team": "red"}, "user_data": "#!/bin/sh\necho ${HOME}\n", "nic": []any{map[string]any{"network": "n"}}})
		w.ok(err)
		got, err := state.JSON()
		w.ok(err)
		want := map[string]any{
			"id": "id-a", "name": "a", "size": "small", "state": "running", "ip": "10.0.0.7", "tags": map[string]any{"team": "red"},
			"user_data": "#!/bin/sh\necho ${HOME}\n", "nic": []any{map[string]any{"network": "n", "mac": "52:54:00:00:00:01"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("state: -want +got:\n%s", diff)
		}
		if vms := plugintest.List(w, w.dir); len(vms) != 1 || vms[0].UserData != "#!/bin/sh\necho ${HOME}\n" || vms[0].PID == os.Getpid() {
			w.Errorf("the cloud has %+v, want one VM that another process created", vms)
		}

		saved, err := p.Save(typ, state)
		w.ok(err)
		again, err := p.Upgrade(w.Context(), typ, saved)
		w.ok(err)
		read, err := p.Read(w.Context(), typ, again)
		w.ok(err)
		if !read.Value.RawEquals(state.Value) {
			w.Errorf("read %#v, want %#v", read.Value, state.Value)
		}

		w.ok(p.Destroy(w.Context(), typ, read))
		gone, err := p.Read(w.Context(), typ, read)
		w.ok(err)
		if gone.Exists() || len(plugintest.List(w, w.dir)) != 0 {
			w.Errorf("after its deletion: %#v", gone.Value)
		}
	})
}

func TestALostResourceDoesNotExist(t *testing.T) {
	both(t, func(w *world) {
		state, err := w.create(map[string]any{"name": "a"})
		w.ok(err)
		plugintest.Lose(w, w.dir, "id-a")
		got, err := w.provider().Read(w.Context(), typ, state)
		w.ok(err)
		if got.Exists() {
			w.Errorf("%#v", got.Value)
		}
	})
}

func TestAResourceIsImported(t *testing.T) {
	both(t, func(w *world) {
		_, err := w.create(map[string]any{"name": "a"})
		w.ok(err)
		p := w.provider()
		state, err := p.Import(w.Context(), typ, "id-a")
		w.ok(err)
		state, err = p.Read(w.Context(), typ, state)
		w.ok(err)
		got, err := state.JSON()
		w.ok(err)
		if got["name"] != "a" || got["ip"] != "10.0.0.7" {
			w.Errorf("imported %v", got)
		}
	})
}

func TestAStateOfAnOlderVersionIsUpgraded(t *testing.T) {
	both(t, func(w *world) {
		old := plugin.SavedState{SchemaVersion: 0, Value: json.RawMessage(`{"id": "id-a", "name": "a", "flavor": "large"}`)}
		state, err := w.provider().Upgrade(w.Context(), typ, old)
		w.ok(err)
		got, err := state.JSON()
		w.ok(err)
		if got["size"] != "large" || got["id"] != "id-a" {
			w.Errorf("upgraded to %v", got)
		}
		newer := plugin.SavedState{SchemaVersion: 7, Value: old.Value}
		if _, err := w.provider().Upgrade(w.Context(), typ, newer); err == nil || !strings.Contains(err.Error(), "newer version") {
			w.Errorf("a state of a newer version: %v", err)
		}
	})
}

func TestArgumentsAreCheckedBeforeThereIsAResource(t *testing.T) {
	cases := map[string]struct {
		arguments map[string]any
		want      []string
	}{
		"AMissingArgument":             {map[string]any{}, []string{"arguments.name: required argument is missing"}},
		"AnUnknownArgument":            {map[string]any{"name": "a", "flavour": "x"}, []string{"arguments.flavour: unknown argument"}},
		"AnArgumentInCamelCase":        {map[string]any{"name": "a", "userData": "x"}, []string{`arguments.userData: unknown argument: did you mean "user_data"?`}},
		"AnArgumentThatIsComputed":     {map[string]any{"name": "a", "ip": "10.0.0.1"}, []string{"arguments.ip: must not be set"}},
		"AWrongType":                   {map[string]any{"name": "a", "tags": []any{"x"}}, []string{"arguments.tags: "}},
		"AWrongTypeDeepInside":         {map[string]any{"name": "a", "tags": map[string]any{"k": []any{}}}, []string{`arguments.tags`}},
		"AnArgumentMissingInABlock":    {map[string]any{"name": "a", "nic": []any{map[string]any{"network": "n"}, map[string]any{}}}, []string{"arguments.nic[1].network: required argument is missing"}},
		"ABlockThatIsNone":             {map[string]any{"name": "a", "nic": "x"}, []string{"arguments.nic: must be a list of objects"}},
		"AllThatIsWrong":               {map[string]any{"flavour": "x"}, []string{"arguments.flavour", "arguments.name"}},
		"WhatTheProviderItselfRefuses": {map[string]any{"name": "a", "size": "huge"}, []string{"arguments.size: ", `value must be one of: ["small" "large"]`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			both(t, func(w *world) {
				_, err := w.provider().PlanCreate(w.Context(), typ, tc.arguments)
				for _, want := range tc.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						w.Errorf("%v, want %q", err, want)
					}
				}
				if n := len(plugintest.List(w, w.dir)); n != 0 {
					w.Errorf("the cloud has %d VMs", n)
				}
			})
		})
	}
	w := newWorld(t, 6)
	if _, err := w.provider().PlanCreate(t.Context(), "fake_volume", nil); !errors.Is(err, plugin.ErrNoType) {
		t.Errorf("a type that the provider does not have: %v", err)
	}
}

func TestACreationMayFailInSeveralWays(t *testing.T) {
	t.Run("NothingIsCreated", func(t *testing.T) {
		both(t, func(w *world) {
			state, err := w.create(map[string]any{"name": plugintest.Refused})
			if d := (*plugin.Diagnostic)(nil); !errors.As(err, &d) || state.Exists() {
				w.Errorf("state %#v, error %v", state.Value, err)
			}
		})
	})
	t.Run("TheStateOfAHalfMadeResourceComesWithTheError", func(t *testing.T) {
		both(t, func(w *world) {
			state, err := w.create(map[string]any{"name": plugintest.HalfMade})
			if err == nil || !state.Exists() {
				w.Errorf("state %#v, error %v", state.Value, err)
			}
		})
	})
	t.Run("AProviderThatEndsIsNoAnswerAndIsStartedAgain", func(t *testing.T) {
		both(t, func(w *world) {
			_, err := w.create(map[string]any{"name": plugintest.Crash})
			if e := (*plugin.CallError)(nil); !errors.As(err, &e) {
				w.Errorf("error %v", err)
			}
			patience.Eventually(w, func(ctx context.Context) string {
				p, release, err := w.pool.Get(ctx, w.settings)
				w.ok(err)
				_, err = p.PlanCreate(ctx, typ, map[string]any{"name": "a"})
				release()
				if err != nil {
					return fmt.Sprintf("the provider is not started again: %v", err)
				}
				return ""
			})
		})
	})
}

func TestOneProcessServesAllOfAConfiguration(t *testing.T) {
	w := newWorld(t, 6)
	var all sync.WaitGroup
	began := time.Now()
	for i := range 20 {
		all.Go(func() {
			p, release, err := w.pool.Get(context.Background(), w.settings)
			if err != nil {
				t.Error(err)
				return
			}
			defer release()
			plan, err := p.PlanCreate(context.Background(), typ, map[string]any{"name": fmt.Sprintf("slow-%d", i)})
			if err == nil {
				_, err = p.ApplyCreate(context.Background(), typ, plan)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	pids := map[int]bool{}
	vms := plugintest.List(t, w.dir)
	for _, vm := range vms {
		pids[vm.PID] = true
	}
	if len(vms) != 20 || len(pids) != 1 || w.pool.Processes() != 1 {
		t.Errorf("%d VMs by %d processes, %d are there", len(vms), len(pids), w.pool.Processes())
	}
	if took := time.Since(began); took > patience.Scale(20*time.Second) {
		t.Errorf("20 creations of 2s took %s: one waits for the other", took)
	}
}

func TestAProgramWithoutAnAllowedDigestIsNotStarted(t *testing.T) {
	w := newWorld(t, 6)
	for name, change := range map[string]func(*plugin.Settings){
		"must be like hetznercloud/hcloud":       func(s *plugin.Settings) { s.Source.Address = "../../etc" },
		"must be one version":                    func(s *plugin.Settings) { s.Source.Version = "../1.0.0" },
		"has 0 programs":                         func(s *plugin.Settings) { s.Source.Version = "9.9.9" },
		"is not among the allowed ones":          func(s *plugin.Settings) { s.Source.SHA256 = []string{strings.Repeat("0", 64)} },
		"configuration.token: 401 Unauthorized":  func(s *plugin.Settings) { s.Configuration = map[string]any{"dir": w.dir, "token": "wrong"} },
		"configuration.region: unknown argument": func(s *plugin.Settings) { s.Configuration = map[string]any{"dir": w.dir, "region": "x"} },
		"configuration.dir: required argument":   func(s *plugin.Settings) { s.Configuration = nil },
	} {
		s := w.settings
		change(&s)
		if _, _, err := w.pool.Get(t.Context(), s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}
