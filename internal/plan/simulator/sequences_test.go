package simulator

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A sequence is one of Cluster API v1.12's tests of its rollout planner, in
// machinedeployment_rollout_{rollingupdate,ondelete}_test.go: a state, a change, and the result.
// machines is the number of Machines that Cluster API creates.
type sequence struct {
	name string
	// strategy, and replicas at the beginning.
	strategy string
	replicas int
	// updated Machines of the second template that exist at the beginning, before the change.
	updated int
	// change of the MachineDeployment.
	change   string
	machines int
}

const (
	byRolling  = "strategy RollingUpdate"
	byUpdating = "strategy InPlaceUpdate"
	byUser     = "strategy OnDelete"
)

// sequences of Cluster API, in its order.
var sequences = []sequence{
	{"01 roll 3 by 1", byRolling, 3, 0, "surge 1 unavailable 0 version v2", 3},
	{"02 roll 3, 1 unavailable", byRolling, 3, 0, "surge 0 unavailable 1 version v2", 3},
	{"03 roll 6 by 3, 1 unavailable", byRolling, 6, 0, "surge 3 unavailable 1 version v2", 6},
	{"04 roll 6 by 1, 3 unavailable", byRolling, 6, 0, "surge 1 unavailable 3 version v2", 6},
	{"05 roll 6 by 10", byRolling, 6, 0, "surge 10 unavailable 0 version v2", 6},
	{"06 roll 6, 10 unavailable", byRolling, 6, 0, "surge 0 unavailable 10 version v2", 6},
	{"07 roll 6 by 3, 1 unavailable, scale up to 12 in the middle", byRolling, 6, 3, "surge 3 unavailable 1 replicas 12", 9},
	{"08 roll 12 by 3, 1 unavailable, scale down to 6 in the middle", byRolling, 12, 3, "surge 3 unavailable 1 replicas 6", 3},
	{"09 roll 6 by 3, 1 unavailable, change the template in the middle", byRolling, 6, 3, "surge 3 unavailable 1 version v3", 6},
	{"10 update 3 in place by 1", byUpdating, 3, 0, "surge 1 unavailable 0 version v2", 1},
	{"11 update 3 in place, 1 unavailable", byUpdating, 3, 0, "surge 0 unavailable 1 version v2", 0},
	{"12 update 6 in place by 3, 1 unavailable", byUpdating, 6, 0, "surge 3 unavailable 1 version v2", 0},
	{"13 update 6 in place by 1, 3 unavailable", byUpdating, 6, 0, "surge 1 unavailable 3 version v2", 0},
	{"14 update 6 in place by 10", byUpdating, 6, 0, "surge 10 unavailable 0 version v2", 1},
	{"15 update 6 in place, 10 unavailable", byUpdating, 6, 0, "surge 0 unavailable 10 version v2", 0},
	{"16 update 6 in place by 3, 1 unavailable, scale up to 12 in the middle", byUpdating, 6, 3, "surge 3 unavailable 1 replicas 12", 6},
	{"17 update 12 in place by 3, 1 unavailable, scale down to 6 in the middle", byUpdating, 12, 3, "surge 3 unavailable 1 replicas 6", 0},
	{"18 update 6 in place by 3, 1 unavailable, change the template in the middle", byUpdating, 6, 3, "surge 3 unavailable 1 version v3", 0},
	{"19 a user deletes 3, one by one", byUser, 3, 0, "version v2", 3},
	{"20 a user deletes 6, two by two", byUser, 6, 0, "version v2", 6},
	{"21 a user deletes 6, scale up to 9 in the middle", byUser, 6, 3, "replicas 9", 6},
	{"22 a user deletes 12, scale down to 6 in the middle", byUser, 12, 3, "replicas 6", 3},
	{"23 a user deletes 6, change the template in the middle", byUser, 6, 3, "version v3", 6},
}

// TestNoMoreMachinesAreMadeThanByClusterAPI replays its sequences, in order and in a few orders of
// reconciles that are random in each run.
func TestNoMoreMachinesAreMadeThanByClusterAPI(t *testing.T) {
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			worst := 0
			misses := map[int]int{}
			for i := range orders {
				order := int64(0)
				if i > 0 {
					order = seed + int64(i)
				}
				c := s.begin(t)
				before := c.Made
				c.Update(func(d *machinev1alpha1.MachineDeployment) {
					if err := setFields(&d.Spec, strings.Fields(s.change)); err != nil {
						t.Fatal(err)
					}
					d.Spec.Paused = false
				})
				s.play(t, c, order, arrived)
				extra := c.Made - before - s.machines
				misses[extra]++
				worst = max(worst, extra)
			}
			if worst > 0 {
				t.Errorf("%d are made by Cluster API, and by how many orders so many more: %v", s.machines, misses)
			}
		})
	}
}

// begin a sequence: halfway through a rollout if the sequence begins there.
func (s sequence) begin(t *testing.T) *Cluster {
	spec := poolOf(s.replicas, 0, max(1, s.updated))
	if err := setFields(&spec, strings.Fields(s.strategy)); err != nil {
		t.Fatal(err)
	}
	c := New(spec)
	s.play(t, c, 0, arrived)
	if s.updated == 0 {
		return c
	}
	c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Version = "v2" })
	middle := func(c *Cluster) bool {
		old, updated := 0, 0
		for _, m := range c.Machines() {
			switch {
			case m.Spec.Version == "v2" && c.Available(m):
				updated++
			case m.Spec.Version == "v1" && c.Available(m):
				old++
			}
		}
		return updated == s.updated && old == s.replicas-s.updated && len(c.Machines()) == s.replicas
	}
	deleted := 0
	s.playUntil(t, c, 0, func() {
		st := c.Deployment().Status
		switch {
		case s.strategy == byUser && deleted < s.updated && st.AvailableReplicas == st.Replicas && int(st.Replicas) == s.replicas && len(c.Sets()) == 2:
			c.DeleteByUser(old(c))
			deleted++
		case s.strategy != byUser && s.isHalfway(c):
			c.Update(func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true })
		}
	}, middle)
	return c
}

// isHalfway reports whether the given number of Machines is being replaced or updated.
func (s sequence) isHalfway(c *Cluster) bool {
	n := 0
	for _, m := range c.Machines() {
		if m.DeletionTimestamp != nil || m.Spec.Version == "v2" || m.Spec.InPlaceUpdate != nil && m.Spec.InPlaceUpdate.Selected {
			n++
		}
	}
	return n >= s.updated
}

// old Machine of a cluster, "" if there is none.
func old(c *Cluster) string {
	for _, m := range c.Machines() {
		if m.DeletionTimestamp == nil && m.Spec.Version != c.Deployment().Spec.Template.Spec.Version {
			return m.Name
		}
	}
	return ""
}

// play to the end, with a user who deletes old Machines where that is the strategy.
func (s sequence) play(t *testing.T, c *Cluster, order int64, end func(*Cluster) bool) {
	most := 1
	if strings.Contains(s.name, "two by two") {
		most = 2
	}
	s.playUntil(t, c, order, func() {
		st, d := c.Deployment().Status, c.Deployment()
		if s.strategy == byUser && st.ObservedGeneration == d.Generation && int(d.Spec.Replicas-st.AvailableReplicas) < most &&
			len(c.Machines()) <= int(d.Spec.Replicas) {
			if name := old(c); name != "" {
				c.DeleteByUser(name)
			}
		}
	}, end)
}

// playUntil the end, in an order: 0 is one after another, and any other number is random. As in
// Cluster API, caches are never stale, and a Machine is available as soon as it is created.
func (s sequence) playUntil(t *testing.T, c *Cluster, order int64, user func(), end func(*Cluster) bool) {
	t.Helper()
	r := rand.New(rand.NewSource(order))
	for range 3000 {
		tasks := []func(){c.ReconcileDeployment, user, c.CollectGarbage, func() { s.machinesGoOn(c) }}
		for _, set := range c.Sets() {
			tasks = append(tasks, func() { c.ReconcileSet(set.Name) }, func() { c.ReconcileGroup(set.Name) })
		}
		if order != 0 {
			r.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
			tasks = tasks[:1+r.Intn(len(tasks))]
		}
		for _, task := range tasks {
			c.CatchUp()
			task()
		}
		c.Now = c.Now.Add(10 * time.Second)
		if c.CatchUp(); end(c) {
			return
		}
	}
	t.Fatalf("does not come to its end: %s", fmt.Sprint(c))
}

func (s sequence) machinesGoOn(c *Cluster) {
	for _, m := range c.Machines() {
		if m.DeletionTimestamp != nil {
			c.Finish(m.Name)
			continue
		}
		if m.Spec.InPlaceUpdate != nil || m.Status.Update != nil {
			c.Agent(m.Name, false)
		}
		for range 3 {
			if m.Status.Phase.IsOnItsWay() {
				c.Boot(m.Name)
			}
		}
	}
}

// orders in which each sequence is replayed: its own, and random ones.
const orders = 16
