package forecast_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan/simulator"
)

// spec of the MachineDeployment before each change: four Machines, one more or less at a time.
func spec() machinev1alpha1.MachineDeploymentSpec {
	labels := map[string]machinev1alpha1.LabelValue{"pool": "a"}
	s := machinev1alpha1.MachineDeploymentSpec{
		Replicas: 4,
		Selector: machinev1alpha1.Selector{MatchLabels: labels},
		Template: machinev1alpha1.MachineTemplate{
			Metadata: machinev1alpha1.TemplateMetadata{Labels: labels},
			Spec:     machinev1alpha1.MachineSpec{ClassRef: machinev1alpha1.ClassReference{Name: "small"}, Version: "v1"},
		},
		ProgressDeadlineSeconds: 600, RevisionHistoryLimit: 10,
	}
	s.Strategy.Type = machinev1alpha1.RollingUpdate
	s.Strategy.RollingUpdate = bounds(1, 1)
	s.Strategy.InPlaceUpdate.MaxSurge, s.Strategy.InPlaceUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromInt32(1))
	s.Strategy.InPlaceUpdate.Orchestration = machinev1alpha1.OrchestrationAuto
	return s
}

func bounds(surge, unavailable int32) machinev1alpha1.RollingUpdateBounds {
	return machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt32(surge)), MaxUnavailable: ptr.To(intstr.FromInt32(unavailable))}
}

// seen is what happened in the simulator.
type seen struct {
	// deleted Machines, in the order in which their deletions were requested. Those of one wave were
	// requested at once.
	deleted          [][]string
	created, updated []string
	most, least      int32
	took             time.Duration
}

// run the change in the simulator, until nothing moves.
func run(w *simulator.World, change func(*machinev1alpha1.MachineDeployment)) seen {
	var s seen
	s.least = int32(len(w.Machines()))
	known, gone, versions := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, m := range w.Machines() {
		known[m.Name], versions[m.Name] = true, m.Spec.Version
	}
	began, last, before := w.Now, w.Now, s.least
	w.OnTick = func() {
		available, wave := int32(0), []string{}
		for _, m := range w.Machines() {
			switch {
			case !known[m.Name]:
				known[m.Name] = true
				s.created, last = append(s.created, m.Name), w.Now
			case m.DeletionTimestamp != nil && !gone[m.Name]:
				gone[m.Name] = true
				wave, last = append(wave, m.Name), w.Now
			case versions[m.Name] != "" && versions[m.Name] != m.Spec.Version:
				versions[m.Name] = m.Spec.Version
				s.updated, last = append(s.updated, m.Name), w.Now
			}
			if w.Available(m) {
				available++
			}
		}
		if available != before {
			before, last = available, w.Now
		}
		if len(wave) > 0 {
			s.deleted = append(s.deleted, wave)
		}
		s.most, s.least = max(s.most, int32(len(w.Machines()))), min(s.least, available)
	}
	w.Update(change)
	w.RunUntil(time.Hour, w.Settled)
	s.took = w.Now.Sub(began)
	// A change that is held never settles: how long it took is when the last Machine moved.
	if !w.Settled() {
		s.took = last.Sub(began)
	}
	w.OnTick = nil
	return s
}

// TestWhatIsForeseenHappens plans ten changes, applies each to the planners in their simulator, and
// compares.
func TestWhatIsForeseenHappens(t *testing.T) {
	template := func(change func(*machinev1alpha1.MachineTemplate)) func(*machinev1alpha1.MachineDeployment) {
		return func(d *machinev1alpha1.MachineDeployment) { change(&d.Spec.Template) }
	}
	cases := map[string]struct {
		reason string
		// given changes the spec before the world begins, and then is another change before this one.
		given  func(*machinev1alpha1.MachineDeploymentSpec)
		then   func(*machinev1alpha1.MachineDeployment)
		change func(*machinev1alpha1.MachineDeployment)
		// numbers of Machines that are replaced, created, deleted, updated and waiting.
		replaced, created, deleted, updated, waiting int
		block                                        string
	}{
		"NewVersion": {
			reason: "a new version replaces all", change: template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			replaced: 4, created: 4,
		},
		"ReplicasUp":   {reason: "more replicas are created", change: func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 6 }, created: 2},
		"ReplicasDown": {reason: "fewer replicas delete the newest", change: func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 1 }, deleted: 3},
		"ClassChange": {
			reason: "another class replaces all", change: template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.ClassRef.Name = "large" }),
			replaced: 4, created: 4,
		},
		"InPlaceUpdate": {
			reason:  "with the strategy InPlaceUpdate a version is an update of each Machine",
			given:   func(s *machinev1alpha1.MachineDeploymentSpec) { s.Strategy.Type = machinev1alpha1.InPlaceUpdate },
			change:  template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			updated: 4,
		},
		"InPlaceUpdateWithSurge": {
			reason: "an update in place that may have none unavailable makes one new Machine in place of the last old one",
			given: func(s *machinev1alpha1.MachineDeploymentSpec) {
				s.Strategy.Type = machinev1alpha1.InPlaceUpdate
				s.Strategy.InPlaceUpdate.MaxSurge, s.Strategy.InPlaceUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0))
			},
			change:  template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			updated: 3, created: 1, replaced: 1,
		},
		"NoneUnavailableWithSurge": {
			reason:   "maxUnavailable 0 keeps all available",
			given:    func(s *machinev1alpha1.MachineDeploymentSpec) { s.Strategy.RollingUpdate = bounds(2, 0) },
			change:   template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			replaced: 4, created: 4,
		},
		"OnDelete": {
			reason:  "with the strategy OnDelete each waits for its deletion",
			given:   func(s *machinev1alpha1.MachineDeploymentSpec) { s.Strategy.Type = machinev1alpha1.OnDelete },
			change:  template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			waiting: 4, block: "OnDelete",
		},
		"Paused": {
			reason: "a pause holds the rollout, and not the scale-up",
			then:   func(d *machinev1alpha1.MachineDeployment) { d.Spec.Paused = true },
			change: func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.Version, d.Spec.Replicas = "v2", 5
			},
			created: 1, waiting: 4, block: machinev1alpha1.ReasonMachineDeploymentPaused,
		},
		"LabelOfTheTemplate": {
			reason: "a label of the template is part of the revision",
			change: template(func(m *machinev1alpha1.MachineTemplate) {
				m.Metadata.Labels = map[string]machinev1alpha1.LabelValue{"pool": "a", "tier": "web"}
			}),
			replaced: 4, created: 4,
		},
		"DrainTimeout": {
			reason: "the timeout of a drain reaches Machines in place",
			change: template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Drain.Timeout.Duration = time.Minute }),
		},
		"Recreate": {
			reason:   "the strategy Recreate deletes all before it creates one",
			given:    func(s *machinev1alpha1.MachineDeploymentSpec) { s.Strategy.Type = machinev1alpha1.Recreate },
			change:   template(func(m *machinev1alpha1.MachineTemplate) { m.Spec.Version = "v2" }),
			replaced: 4, created: 4,
		},
		"VersionAndFewerReplicas": {
			reason: "a rollout to fewer replicas replaces as many as remain",
			change: func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.Version, d.Spec.Replicas = "v2", 2
			},
			replaced: 2, created: 2, deleted: 2,
		},
		"VersionAndMoreReplicas": {
			reason: "a rollout to more replicas creates the others too",
			change: func(d *machinev1alpha1.MachineDeployment) {
				d.Spec.Template.Spec.Version, d.Spec.Replicas = "v2", 6
			},
			replaced: 4, created: 6,
		},
		"Frozen": {
			reason: "a freeze holds the scale-up and the rollout",
			change: func(d *machinev1alpha1.MachineDeployment) {
				d.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
				d.Spec.Template.Spec.Version, d.Spec.Replicas = "v2", 5
			},
			waiting: 4, block: machinev1alpha1.ReasonManualFreeze,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := spec()
			if tc.given != nil {
				tc.given(&s)
			}
			w := simulator.NewWorld(s, simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second, Update: 40 * time.Second})
			if !w.RunUntil(time.Hour, w.Settled) {
				t.Fatal("the world did not settle")
			}
			if tc.then != nil {
				w.Update(tc.then)
				w.Run(time.Minute)
			}
			f := foresee(w, tc.change)
			for what, n := range map[string][2]int{
				"replaced": {len(f.Replaced), tc.replaced}, "created": {int(f.Created), tc.created}, "deleted": {len(f.Deleted), tc.deleted},
				"updated": {len(f.Updated), tc.updated}, "waiting": {len(f.Waiting), tc.waiting},
			} {
				if n[0] != n[1] {
					t.Errorf("%s: %d %s foreseen, want %d: %+v", tc.reason, n[0], what, n[1], f)
				}
			}
			if tc.block != "" && !slices.ContainsFunc(f.Blocks, func(b forecast.Block) bool { return b.Reason == tc.block }) {
				t.Errorf("%s: blocks %+v lack %s", tc.reason, f.Blocks, tc.block)
			}
			compare(t, tc.reason, f, run(w, tc.change))
		})
	}
}

// foresee a change of the world as it is.
func foresee(w *simulator.World, change func(*machinev1alpha1.MachineDeployment)) forecast.Forecast {
	return forecast.Of(w.Now, inputOf(w, change))
}

func inputOf(w *simulator.World, change func(*machinev1alpha1.MachineDeployment)) forecast.Input {
	in := forecast.Input{Before: w.Deployment(), After: w.Deployment(), TargetRead: true}
	change(in.After)
	for _, s := range w.Sets() {
		in.Sets = append(in.Sets, *s)
	}
	for _, m := range w.Machines() {
		in.Machines = append(in.Machines, *m)
	}
	return in
}

// compare compares a forecast with the simulated change.
func compare(t *testing.T, reason string, f forecast.Forecast, s seen) {
	t.Helper()
	if going := slices.Concat(f.Deleted, f.Replaced); !isInWaves(going, s.deleted) {
		t.Errorf("%s: the deletion of %v was foreseen, in this order, and %v were deleted", reason, going, s.deleted)
	}
	if int(f.Created) != len(s.created) {
		t.Errorf("%s: %d creations were foreseen, and there were %v", reason, f.Created, s.created)
	}
	if slices.Sort(s.updated); !slices.Equal(slices.Sorted(slices.Values(f.Updated)), s.updated) {
		t.Errorf("%s: updates of %v were foreseen, and there were %v", reason, f.Updated, s.updated)
	}
	if s.most > f.Most || s.least < f.Least {
		t.Errorf("%s: foreseen at most %d and at least %d Machines, and there were %d and %d", reason, f.Most, f.Least, s.most, s.least)
	}
	if s.took < f.AtLeast.Duration {
		t.Errorf("%s: it took %s, and %s at least were foreseen (%s)", reason, s.took, f.AtLeast.Duration, f.Basis)
	}
}

// isInWaves reports whether all that was foreseen happened, in its order, and nothing else. The order
// within a wave is open.
func isInWaves(foreseen []string, waves [][]string) bool {
	for _, wave := range waves {
		if len(wave) > len(foreseen) {
			return false
		}
		next := foreseen[:len(wave)]
		foreseen = foreseen[len(wave):]
		if !slices.Equal(slices.Sorted(slices.Values(next)), slices.Sorted(slices.Values(wave))) {
			return false
		}
	}
	return len(foreseen) == 0
}

// TestAMissingClusterBlocksTheChange plans a change to a cluster whose configuration does not exist.
func TestAMissingClusterBlocksTheChange(t *testing.T) {
	w := simulator.NewWorld(spec(), simulator.Cloud{ID: 30 * time.Second, Boot: time.Minute, Drain: 20 * time.Second})
	if !w.RunUntil(time.Hour, w.Settled) {
		t.Fatal("the world did not settle")
	}
	in := inputOf(w, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Replicas = 6
		d.Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "none"}
	})
	in.Config = &view.Config{Kind: "ClusterProviderConfig", Name: "none", Missing: true}
	f := forecast.Of(w.Now, in)
	if f.Created != 0 || len(f.Replaced) > 0 || len(f.Blocks) != 1 || f.Blocks[0].Reason != machinev1alpha1.ReasonClusterNotFound || !f.Blocks[0].All {
		t.Errorf("%+v", f)
	}
}
