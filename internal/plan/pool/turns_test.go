package pool

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// TestATimeToRollReachesFailureDomainsOneByOne has spec.rollout.after in ten minutes: no failure domain gets it before, because
// each of them would roll at that time.
func TestATimeToRollReachesFailureDomainsOneByOne(t *testing.T) {
	w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) {
		p.Spec.Strategy.FailureDomains = machinev1alpha1.FailureDomainsOneByOne
	}))
	w.settle()
	at := metav1.NewTime(now.Add(10 * time.Minute))
	complete := func() {
		for i := range w.Deployments {
			w.Deployments[i].Status.Revisions = []machinev1alpha1.Revision{deployment.CompleteRevision(w.Deployments[i].MachineDeployment, 1)}
		}
	}
	// A MachineDeployment begins its rollout before it reports its spec as observed.
	begin := func() {
		for i, d := range w.Deployments {
			if r := d.Status.Revisions; len(r) == 1 && !r[0].After.Equal(d.Spec.Rollout.After) {
				r[0] = deployment.CompleteRevision(d.MachineDeployment, 2)
				r[0].Outcome = machinev1alpha1.RevisionInProgress
				w.Deployments[i].Status.Revisions = r
			}
		}
	}
	given := func() (n int) {
		for _, d := range w.Deployments {
			if d.Spec.Rollout.After != nil {
				n++
			}
		}
		return n
	}
	complete()
	w.step()
	w.Pool.Spec.Rollout.After = &at
	w.Pool.Generation++
	for range 5 {
		w.step()
		complete()
	}
	if n := given(); n != 0 || w.last.CallAgain > 10*time.Minute {
		t.Errorf("%d failure domains have the time before it comes, and the pool is called again after %s", n, w.last.CallAgain)
	}
	defer func(was time.Time) { now = was }(now)
	now = now.Add(11 * time.Minute)
	for want := range 3 {
		for range 4 {
			w.step()
			begin()
			if n := given(); n > want+1 {
				t.Fatalf("%d failure domains have the time, want %d at most", n, want+1)
			}
		}
		complete()
	}
	if n := given(); n != 3 {
		t.Errorf("%d failure domains have the time in the end", n)
	}
}

// TestTheTurnsOfFailureDomains has three failure domains of v1.35.4, and the pool has v1.34.8 now.
func TestTheTurnsOfFailureDomains(t *testing.T) {
	rolledOut := func(d *machinev1alpha1.MachineDeployment, outcome machinev1alpha1.RevisionOutcome) {
		r := deployment.CompleteRevision(d, 1)
		r.Outcome = outcome
		d.Status.Revisions = []machinev1alpha1.Revision{r}
	}
	targets := map[string]string{}
	toNew := func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.Template.Spec.Version, d.Annotations[machinev1alpha1.AnnotationPoolTemplate] = "v1.34.8", targets[d.Name]
	}
	full := func(d *machinev1alpha1.MachineDeployment) {
		d.Status.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: domainName(d), Code: "CapacityExhausted"}}
	}
	type change = func(a, b, c *machinev1alpha1.MachineDeployment)
	for name, tc := range map[string]struct {
		change change
		// want has "turn", "paused" or the failure domain that is waited for, and "-" for one that is done.
		want string
	}{
		"the first one begins": {func(a, b, c *machinev1alpha1.MachineDeployment) {}, "turn a a"},
		"the others wait until it is complete": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionInProgress)
		}, "turn a a"},
		"not by a revision of the template before": {func(a, b, c *machinev1alpha1.MachineDeployment) { toNew(a) }, "turn a a"},
		"also if its template is rejected": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionRejected)
		}, "turn a a"},
		"the next one begins when it is complete": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionComplete)
		}, "- turn b"},
		"also if its set is younger than the time to roll": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionComplete)
			a.Status.Revisions[0].After = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		}, "- turn b"},
		"although it misses a Machine since then": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionComplete)
			a.Status.AvailableReplicas--
		}, "- turn b"},
		"one without capacity is passed over": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionInProgress)
			full(a)
		}, "paused:b turn b"},
		"unless it misses a Machine": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionInProgress)
			full(a)
			a.Status.AvailableReplicas--
		}, "turn a a"},
		"one without capacity does not begin":       {func(a, b, c *machinev1alpha1.MachineDeployment) { full(a) }, "b turn b"},
		"if none has capacity, the first one tries": {func(a, b, c *machinev1alpha1.MachineDeployment) { full(a); full(b); full(c) }, "turn a a"},
		"one in the middle of another rollout gets the template first": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			c.Spec.Template.Spec.Version, c.Annotations[machinev1alpha1.AnnotationPoolTemplate] = "v1.33.0", "another"
			rolledOut(c, machinev1alpha1.RevisionInProgress)
		}, "c c turn"},
		"and it is paused while another one rolls": {func(a, b, c *machinev1alpha1.MachineDeployment) {
			toNew(a)
			rolledOut(a, machinev1alpha1.RevisionInProgress)
			rolledOut(c, machinev1alpha1.RevisionInProgress)
		}, "turn a paused:a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) {
				p.Spec.Size, p.Spec.Version = ptr.To(int32(6)), "v1.35.4"
				p.Spec.Strategy.FailureDomains = machinev1alpha1.FailureDomainsOneByOne
			}))
			// The API server has a default for the cluster, which is in the specs that the pool observes.
			w.Offer.ClusterRef = machinev1alpha1.ClusterReference{}
			w.settle()
			for i := range w.Deployments {
				w.Deployments[i].Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "default"}
				rolledOut(w.Deployments[i].MachineDeployment, machinev1alpha1.RevisionComplete)
			}
			w.Pool.Status = Plan(now, w.Observed).Status
			w.Pool.Spec.Version = "v1.34.8"
			w.Pool.Generation++
			for _, m := range fleetOf(now, w.Observed).members {
				targets[m.name] = m.target
			}
			tc.change(w.Deployments[0].MachineDeployment, w.Deployments[1].MachineDeployment, w.Deployments[2].MachineDeployment)
			before := []string{}
			for _, d := range w.Deployments {
				before = append(before, d.Spec.Template.Spec.Version)
			}
			d := Plan(now, w.Observed)
			var got []string
			for i, s := range d.Status.FailureDomains {
				text := s.WaitsFor
				if s.Suspended {
					text = "paused:" + text
				}
				if text == "" {
					text = "-"
					if is := w.Deployments[i].MachineDeployment; is.Spec.Template.Spec.Version != "v1.34.8" || is.Status.Revisions[0].Outcome != machinev1alpha1.RevisionComplete || !deployment.IsRolledOut(is) {
						text = "turn"
					}
				}
				got = append(got, text)
				// The decision is carried out when it is read back.
				if v := d.Deployments[i].Spec.Template.Spec.Version; v != before[i] {
					t.Errorf("%s has %s before that is recorded", s.Name, v)
				}
			}
			if is := strings.Join(got, " "); is != tc.want {
				t.Errorf("turns %q, want %q", is, tc.want)
			}
			if d.Ready {
				t.Error("the pool is Ready")
			}
			w.Pool.Status = d.Status
			for i, c := range Plan(now, w.Observed).Deployments {
				if turn := got[i] == "turn"; turn && c.Spec.Template.Spec.Version != "v1.34.8" || c.Spec.Paused != strings.HasPrefix(got[i], "paused") {
					t.Errorf("%s is %s, has %s, and paused is %t", c.Name, got[i], c.Spec.Template.Spec.Version, c.Spec.Paused)
				}
			}
		})
	}
}

// TestAFailureDomainThatIsLeftHasItsTurn has three failure domains. The first one is in the middle of a rollout when the pool
// leaves it.
func TestAFailureDomainThatIsLeftHasItsTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		suspended bool
		outcome   machinev1alpha1.RevisionOutcome
		want      string
	}{
		"the others wait until its rollout is complete or its Machines are gone": {false, machinev1alpha1.RevisionInProgress, "b:a c:a a:"},
		"also if it was paused":                  {true, machinev1alpha1.RevisionInProgress, "b:a c:a a:"},
		"they do not if its rollout is complete": {false, machinev1alpha1.RevisionComplete, "b: c:b a:"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pool(func(p *machinev1alpha1.NodePool) {
				p.Spec.Size, p.Spec.Version = ptr.To(int32(6)), "v1.35.4"
				p.Spec.Strategy.FailureDomains = machinev1alpha1.FailureDomainsOneByOne
			}))
			w.settle()
			for i, d := range w.Deployments {
				r := deployment.CompleteRevision(d.MachineDeployment, 1)
				if i == 0 {
					r.Outcome = tc.outcome
				}
				w.Deployments[i].Status.Revisions = []machinev1alpha1.Revision{r}
			}
			w.Deployments[0].Spec.Paused, w.Pool.Status.FailureDomains[0].Suspended = tc.suspended, tc.suspended
			w.Pool.Spec.Version, w.Pool.Spec.FailureDomains = "v1.34.8", []machinev1alpha1.FailureDomain{"b", "c"}
			w.Pool.Generation++
			d := Plan(now, w.Observed)
			var got []string
			for _, s := range d.Status.FailureDomains {
				got = append(got, s.Name+":"+s.WaitsFor)
				if s.Suspended {
					t.Errorf("%s is suspended", s.Name)
				}
			}
			if is := strings.Join(got, " "); is != tc.want {
				t.Errorf("turns %q, want %q", is, tc.want)
			}
			w.Pool.Status = d.Status
			for _, c := range Plan(now, w.Observed).Deployments {
				if c.Spec.Paused {
					t.Errorf("%s is paused: its Machines would stay", c.Name)
				}
			}
		})
	}
}
