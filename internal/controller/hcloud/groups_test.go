package hcloud

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/fakes"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

// prefixed is a server in a placement group of the prefix workers.
func prefixed(name string) *v1alpha1.VirtualMachine {
	vm := server(name)
	vm.Spec.ForProvider.PlacementGroupID = nil
	vm.Spec.ForProvider.PlacementGroupPrefix = ptr.To("workers")
	return vm
}

// runningIn adds a server of the prefix and waits until it runs.
func (w *world) runningIn(name string) *v1alpha1.VirtualMachine { return w.runs(prefixed(name)) }

// deleted deletes servers and waits until they are gone.
func (w *world) deleted(vms ...*v1alpha1.VirtualMachine) {
	for _, vm := range vms {
		w.Delete(vm)
	}
	for _, vm := range vms {
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
	}
}

// groups are the placement groups of the prefix, by name, with the number of their servers.
func groups(c *fakecloud.Cloud) map[string]int {
	out := map[string]int{}
	for name, g := range c.Groups("ours") {
		if name != "workers" { // The group 7 of the fake.
			out[name] = len(g.Servers)
		}
	}
	return out
}

func (w *world) wantGroups(want map[string]int) {
	w.t.Helper()
	if d := cmp.Diff(want, groups(w.cloud)); d != "" {
		w.t.Errorf("placement groups with their servers (-want +got):\n%s", d)
	}
}

func (w *world) wantNoWarnings() {
	w.t.Helper()
	if warnings := w.Warnings(); len(warnings) > 0 {
		w.t.Errorf("%d warnings, the first %q", len(warnings), warnings[0])
	}
}

// groupCalls returns the number of calls about placement groups.
func groupCalls(c *fakecloud.Cloud) int {
	calls, _ := c.Calls()
	n := 0
	for call, times := range calls {
		if strings.Contains(call, "/placement_groups") {
			n += times
		}
	}
	return n
}

func TestAServerIsCreatedInAGroupThatIsDeletedWithIt(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		a, b := w.runningIn("a"), w.runningIn("b")
		w.wantGroups(map[string]int{"workers-1": 2})
		want := map[string]string{"drover-installation": "installation", "drover-placement-group-prefix": "workers"}
		g := w.cloud.Groups("ours")["workers-1"]
		if d := cmp.Diff(want, g.Labels); d != "" || g.Type != "spread" {
			t.Errorf("type %s, labels (-want +got):\n%s", g.Type, d)
		}
		if got := ptr.Deref(a.Status.AtProvider.PlacementGroupID, 0); got != g.ID {
			t.Errorf("status.atProvider.placementGroupId %d, want %d", got, g.ID)
		}
		if w.Get(a); a.Spec.ForProvider.PlacementGroupID != nil {
			t.Errorf("spec.forProvider.placementGroupId %d was set", *a.Spec.ForProvider.PlacementGroupID)
		}
		if calls, _ := w.cloud.Calls(); calls["POST /placement_groups"] != 1 || calls["GET /placement_groups"] != 1 {
			t.Errorf("calls:\n%s", fakes.Table(calls))
		}
		w.deleted(a)
		w.wantGroups(map[string]int{"workers-1": 1})
		w.deleted(b)
		w.wantGroups(map[string]int{})
		if _, there := w.cloud.Groups("ours")["workers"]; !there {
			t.Error("a group of another client was deleted")
		}
		w.wantNoWarnings()
	})
}

func TestFiftyServersOfAPrefix(t *testing.T) {
	const n = 50
	cases := map[string]struct {
		options   fakecloud.Options
		processes int
		// maxCreation and maxDeletion bound the calls about placement groups.
		maxCreation, maxDeletion int
	}{
		"OfOneProcess":               {processes: 1, maxCreation: 6, maxDeletion: 15},
		"OfTwoProcesses":             {processes: 2, maxCreation: 40, maxDeletion: 40},
		"IfHetznerDeletesUsedGroups": {options: fakecloud.Options{DeletesGroupsInUse: true}, processes: 2, maxCreation: 40, maxDeletion: 40},
		"IfGroupsKeepServers":        {options: fakecloud.Options{GroupsKeep: 5 * time.Second}, processes: 1, maxCreation: 6, maxDeletion: 150},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.options.Step, tc.options.Latency = 5*time.Second, 100*time.Millisecond
			inWorld(t, tc.options, func(t *testing.T, w *world) {
				worlds := []*world{w}
				for len(worlds) < tc.processes {
					worlds = append(worlds, processIn(t, w.cloud))
				}
				vms := make([]*v1alpha1.VirtualMachine, n)
				for i := range vms {
					vms[i] = prefixed(fmt.Sprintf("a-%d", i))
					worlds[i%tc.processes].Add(vms[i])
				}
				for i, vm := range vms {
					worlds[i%tc.processes].UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				}
				created := groupCalls(w.cloud)
				calls, sum := w.cloud.Calls()
				t.Logf("creation: %d calls, %d of them about placement groups; groups %v\n%s", sum, created, groups(w.cloud), fakes.Table(calls))
				inGroups := 0
				for name, servers := range groups(w.cloud) {
					if inGroups += servers; servers > groupServers {
						t.Errorf("%d servers in %s", servers, name)
					}
				}
				if inGroups != n || len(groups(w.cloud)) < 5 || len(groups(w.cloud)) > 5+tc.processes-1 {
					t.Errorf("%d servers in groups %v", inGroups, groups(w.cloud))
				}
				if created > tc.maxCreation {
					t.Errorf("%d calls about placement groups, want at most %d", created, tc.maxCreation)
				}
				for i, vm := range vms {
					worlds[i%tc.processes].Delete(vm)
				}
				for i, vm := range vms {
					worlds[i%tc.processes].Until(soon, "it is gone", func() bool { return worlds[i%tc.processes].Gone(vm) })
				}
				w.wantGroups(map[string]int{})
				deleted := groupCalls(w.cloud) - created
				_, all := w.cloud.Calls()
				t.Logf("deletion: %d calls, %d of them about placement groups", all-sum, deleted)
				if deleted > tc.maxDeletion {
					t.Errorf("%d calls about placement groups, want at most %d", deleted, tc.maxDeletion)
				}
				for _, w := range worlds {
					for _, warning := range w.Warnings() {
						if tc.options.GroupsKeep == 0 || !strings.Contains(warning, "resource_in_use") {
							t.Errorf("warning %q", warning)
						}
					}
				}
			})
		})
	}
}

// A server that is refused because of its group takes another one in the same creation, without an error.
func TestAServerThatItsGroupRefusesTakesAnother(t *testing.T) {
	refused := func(status int, code, message string) func(*world, schema.PlacementGroup) {
		return func(w *world, _ schema.PlacementGroup) {
			w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Status: status, Code: code, Message: message, Times: 1})
		}
	}
	fill := func(w *world, g schema.PlacementGroup) { w.cloud.FillGroup("ours", g.ID, groupServers-1) }
	both := func(first, second func(*world, schema.PlacementGroup)) func(*world, schema.PlacementGroup) {
		return func(w *world, g schema.PlacementGroup) { first(w, g); second(w, g) }
	}
	cases := map[string]struct {
		reason string
		before func(*world, schema.PlacementGroup)
		want   map[string]int
	}{
		"AFullGroup": {"Another client took the last place after the read of the groups.", fill,
			map[string]int{"workers-1": 10, "workers-2": 1}},
		"AFullGroupInTheWordsOf2024": {"Hetzner changed the code before, and not the words.",
			refused(500, "service_error", "placement group 211529 contains already 10 servers"),
			map[string]int{"workers-1": 1, "workers-2": 1}},
		"AFullGroupThatTheListDoesNotShow": {"Hetzner counts a server that the list of the groups lacks.",
			refused(422, "placement_group_member_limit_reached", "placement group with ID 369587 contains already 10 servers"),
			map[string]int{"workers-1": 1, "workers-2": 1}},
		"AFullGroupWithAnUnknownCode": {"The groups show the cause, whatever the code is.",
			both(fill, refused(422, "placement_error", "an error during the placement occurred")),
			map[string]int{"workers-1": 10, "workers-2": 1}},
		"ADeletedGroup": {"Another process deleted the group after the read of the groups.",
			func(w *world, g schema.PlacementGroup) { w.cloud.LoseGroup("ours", g.ID) },
			map[string]int{"workers-1": 1}},
		"ADeletedGroupWithAnUnknownCode": {"The groups show the cause, whatever the code is.",
			both(func(w *world, g schema.PlacementGroup) { w.cloud.LoseGroup("ours", g.ID) }, refused(422, "invalid_input", "invalid input in field 'placement_group'")),
			map[string]int{"workers-1": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				a := w.runningIn("a")
				tc.before(w, w.cloud.Groups("ours")["workers-1"])
				w.runningIn("b")
				if d := cmp.Diff(tc.want, groups(w.cloud)); d != "" {
					t.Errorf("%s\nplacement groups with their servers (-want +got):\n%s", tc.reason, d)
				}
				w.wantNoWarnings()
				w.deleted(a)
			})
		})
	}
}

// An error that is not about the group is reported as it is, and a group that stays empty is deleted with its server.
func TestAServerOfAPrefixThatCannotBeCreated(t *testing.T) {
	cases := map[string]struct {
		options fakecloud.Options
		before  func(*fakecloud.Cloud)
		want    string
		// groups are the groups of others.
		groups map[string]int
	}{
		"Capacity": {before: func(c *fakecloud.Cloud) { c.SellOut("cpx31", "nbg1") }, want: "error during placement (resource_unavailable)"},
		"Servers":  {options: fakecloud.Options{ServerLimit: 1}, before: func(c *fakecloud.Cloud) { c.Create("ours", "other", nil) }, want: "server limit exceeded (resource_limit_exceeded)"},
		"Groups": {options: fakecloud.Options{GroupLimit: 1},
			want: `forProvider.placementGroupPrefix: cannot create the placement group "workers-1": the project has reached its limit of placement groups, by default 50: placement group limit exceeded (resource_limit_exceeded)`},
		"AGroupOfAnotherClient": {before: func(c *fakecloud.Cloud) { c.CreateGroup("ours", "workers-1", nil) },
			want:   `forProvider.placementGroupPrefix: invalid value "workers": the project has a placement group "workers-1" that this installation of Drover did not create`,
			groups: map[string]int{"workers-1": 0}},
		"AGroupOfAnotherInstallation": {before: func(c *fakecloud.Cloud) {
			c.CreateGroup("ours", "workers-1", map[string]string{"drover-installation": "other", "drover-placement-group-prefix": "workers"})
		}, want: `a placement group "workers-1" that this installation of Drover did not create`, groups: map[string]int{"workers-1": 0}},
		"GroupsThatAreFullWhenTheyAreNew": {before: func(c *fakecloud.Cloud) {
			c.Break(fakecloud.Fault{Call: "POST /servers", Status: 422, Code: "placement_group_member_limit_reached", Message: "placement group with ID 17 contains already 10 servers"})
		}, want: "contains already 10 servers (placement_group_member_limit_reached)"},
		"AReadOnlyToken": {before: func(c *fakecloud.Cloud) { c.SetToken(goodToken, "ours", true) }, want: "token is only allowed to perform GET requests (token_readonly)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, tc.options, func(t *testing.T, w *world) {
				if tc.before != nil {
					tc.before(w.cloud)
				}
				vm := prefixed("a")
				w.Add(vm)
				c := w.UntilCondition(soon, vm, xpv2.TypeSynced, xpv2.ReasonReconcileError)
				if !strings.Contains(c.Message, tc.want) {
					t.Errorf("Synced: %s\nwant %s", c.Message, tc.want)
				}
				noSecret(t, c.Message)
				if s, there := w.cloud.Servers("ours")["a"]; there {
					t.Errorf("there is %+v", s)
				}
				before := groupCalls(w.cloud)
				time.Sleep(10 * time.Minute)
				if after := groupCalls(w.cloud); after-before > 50 {
					t.Errorf("%d calls about placement groups in ten minutes for one server that is refused", after-before)
				}
				w.deleted(vm)
				if d := cmp.Diff(tc.groups, groups(w.cloud), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("placement groups (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestALostAnswerLeavesNoGroup(t *testing.T) {
	for _, call := range []string{"POST /placement_groups", "GET /placement_groups", "POST /servers", "DELETE /placement_groups/{id}", "DELETE /servers/{id}"} {
		for kind, fault := range map[string]fakecloud.Fault{
			"TheAnswerIsLost": {Lost: true}, "TheCallIsLost": {Refused: true}, "TheBackendFails": {Status: 503, Code: "service_error", Message: "unavailable"},
		} {
			for name, restarts := range map[string]bool{"": false, "AndTheProviderRestarts": true} {
				t.Run(strings.NewReplacer(" ", "", "/", "").Replace(call)+kind+name, func(t *testing.T) {
					inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
						fault.Call, fault.Times = call, 1
						if restarts {
							fault.Times = 0 // Until the provider restarts.
						}
						w.cloud.Break(fault)
						vm := prefixed("a")
						w.Add(vm)
						restart := func() {
							if restarts {
								time.Sleep(10 * time.Second)
								w.Restart()
								w.cloud.Mend()
							}
						}
						restart()
						w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
						w.pin(vm)
						w.wantGroups(map[string]int{"workers-1": 1})
						if n := len(w.cloud.Servers("ours")); n != 1 {
							t.Errorf("%d servers", n)
						}
						if restarts {
							w.cloud.Break(fault)
						}
						w.Delete(vm)
						restart()
						w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
						w.wantGroups(map[string]int{})
					})
				})
			}
		}
	}
}

// A server that is deleted before it was created leaves no group that was created for it.
func TestAGroupWithoutItsServerIsDeleted(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		w.cloud.Break(fakecloud.Fault{Call: "POST /servers", Refused: true})
		vm := prefixed("a")
		w.Add(vm)
		w.Until(soon, "there is a group", func() bool { return len(groups(w.cloud)) == 1 && w.posts() > 0 })
		w.Restart()
		w.deleted(vm)
		w.wantGroups(map[string]int{})
	})
}

// A group that the deletion of a server left behind is used again, and deleted with the next server.
func TestAGroupThatWasLeftBehindIsUsed(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		left := groupOwner{installation: "installation", prefix: "workers"}
		w.cloud.CreateGroup("ours", "workers-1", left.labels())
		left.prefix = "others"
		w.cloud.CreateGroup("ours", "others-1", left.labels())
		// The servers of another installation in the project may be about to be created.
		another := groupOwner{installation: "another", prefix: "more"}
		w.cloud.CreateGroup("ours", "more-1", another.labels())
		vm := w.runningIn("a")
		w.wantGroups(map[string]int{"workers-1": 1, "others-1": 0, "more-1": 0})
		w.deleted(vm)
		w.wantGroups(map[string]int{"more-1": 0})
	})
}

// An adopted server and an orphan have no prefix in their spec. Their group is deleted with them nevertheless.
func TestTheGroupOfAnAdoptedServerIsDeleted(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.runningIn("a")
		w.Change(vm, func() {
			vm.Spec.ForProvider = v1alpha1.VirtualMachineParameters{}
		})
		w.deleted(vm)
		w.wantGroups(map[string]int{})
	})
}

func TestAServerKeepsItsGroupIfThePrefixChanges(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.runningIn("a")
		w.Change(vm, func() { vm.Spec.ForProvider.PlacementGroupPrefix = ptr.To("others") })
		time.Sleep(time.Hour)
		w.wantGroups(map[string]int{"workers-1": 1})
		w.deleted(vm)
		w.wantGroups(map[string]int{})
	})
}

func TestAServerWithoutAPrefixCostsNoCallAboutGroups(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := server("a")
		vm.Spec.ForProvider.PlacementGroupID = nil
		w.Add(vm)
		w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		w.deleted(vm)
		if n := groupCalls(w.cloud); n > 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// Servers come and go in two processes, which create and delete the same groups.
func TestServersOfAPrefixComeAndGo(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second, Latency: 200 * time.Millisecond}, func(t *testing.T, w *world) {
				random := rand.New(rand.NewPCG(seed, 1))
				worlds := []*world{w, processIn(t, w.cloud)}
				alive := map[int]*v1alpha1.VirtualMachine{}
				for i := range 60 {
					// Few servers at a time, so that groups become empty often.
					for len(alive) > 2 || len(alive) > 0 && random.IntN(2) == 0 {
						keys := []int{}
						for k := range alive {
							keys = append(keys, k)
						}
						slices.Sort(keys)
						k := keys[random.IntN(len(keys))]
						worlds[k%2].Delete(alive[k])
						delete(alive, k)
					}
					alive[i] = prefixed(fmt.Sprintf("a-%d", i))
					worlds[i%2].Add(alive[i])
					time.Sleep(time.Duration(random.IntN(4000)) * time.Millisecond)
				}
				for i, vm := range alive {
					worlds[i%2].UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
					if s := w.cloud.Servers("ours")[vm.Name]; s.PlacementGroup == nil {
						t.Errorf("%s is in no placement group", vm.Name)
					}
				}
				for i, vm := range alive {
					worlds[i%2].deleted(vm)
				}
				time.Sleep(soon)
				w.wantGroups(map[string]int{})
				for _, w := range worlds {
					w.wantNoWarnings()
				}
			})
		})
	}
}

func TestAnInventoryListsEmptyPlacementGroups(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		w.runningIn("a")
		empty := groupOwner{installation: "installation", prefix: "others"}
		id := w.cloud.CreateGroup("ours", "others-1", empty.labels())
		w.cloud.CreateGroup("ours", "foreign", map[string]string{machinev1alpha1.TagInstallation: "installation"})
		l := lister{newProject(projectKey{"http://hetzner/v1", goodToken}, fakes.InMemory(w.cloud))}
		found, complete, err := l.ListResources(t.Context(), "installation")
		if err != nil || !complete || len(found) != 2 {
			t.Fatalf("%v, complete: %t, error %v", found, complete, err)
		}
		for _, r := range found {
			isEmpty := r.ID == fmt.Sprint(id)
			if r.Type != "PlacementGroup" || r.CreatedAt.IsZero() || r.Tags[machinev1alpha1.TagInstallation] != "installation" || (r.AttachedTo == "") != isEmpty {
				t.Errorf("listed: %+v", r)
			}
		}
	})
}
