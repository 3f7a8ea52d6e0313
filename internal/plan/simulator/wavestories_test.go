package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
)

// A waveStory notes what changes in a fleet, with the time since its begin.
type waveStory struct {
	*wavedFleet
	begin time.Time
	last  map[string]string
	lines []string
}

func newWaveStory(t *testing.T, soak time.Duration) *waveStory {
	s := &waveStory{wavedFleet: newWavedFleet(soak), last: map[string]string{}}
	s.settle(t)
	s.live(time.Hour, fresh)
	s.begin, s.events = s.now(), nil
	s.observe()
	s.lines = nil
	return s
}

func (s *waveStory) note(of, text string) {
	if s.last[of] != text {
		s.last[of] = text
		s.lines = append(s.lines, fmt.Sprintf("%6s %-12s %s", s.now().Sub(s.begin), of, text))
	}
}

func (s *waveStory) observe() {
	for i, w := range s.worlds {
		versions := map[string]bool{}
		for _, m := range w.Machines() {
			if m.DeletionTimestamp == nil {
				versions[m.Spec.Version] = true
			}
		}
		d := w.deployment()
		text := strings.Join(slices.Sorted(maps.Keys(versions)), " ")
		switch h := d.Status.Rollout; {
		case deployment.Rejected(d) != nil:
			text += ", rejected"
		case h != nil && h.Held != nil && (h.Held.Reason == machinev1alpha1.ReasonAwaitingWave || h.Held.Reason == machinev1alpha1.ReasonAwaitingTurn):
			text += ": " + h.Held.Message
		}
		s.note(waveNames[i], text)
	}
	if s.policy != nil {
		var states []string
		for _, w := range s.policy.Status.Waves {
			states = append(states, string(w.State))
		}
		s.note("policy", strings.Join(states, " "))
	}
	for _, e := range s.events {
		s.lines = append(s.lines, fmt.Sprintf("%6s event        %s: %s", s.now().Sub(s.begin), e.Reason, e.Message))
	}
	s.events = nil
}

// tell the story until something is reached.
func (s *waveStory) tell(t *testing.T, done func() bool) {
	t.Helper()
	for range 2000 {
		s.live(10*time.Second, fresh)
		if s.observe(); done() {
			return
		}
	}
	t.Fatalf("does not arrive:\n%s", strings.Join(s.lines, "\n"))
}

func (s *waveStory) during(t *testing.T, d time.Duration) {
	t.Helper()
	end := s.now().Add(d)
	s.tell(t, func() bool { return !s.now().Before(end) })
}

func (s *waveStory) is(t *testing.T, want string) {
	t.Helper()
	if s.broken != "" {
		t.Error(s.broken)
	}
	if got := strings.Join(s.lines, "\n"); got != strings.Trim(want, "\n") {
		t.Errorf("got\n%s", got)
	}
}

// TestWavesOverThreePools changes the version of three pools at the same time.
func TestWavesOverThreePools(t *testing.T) {
	s := newWaveStory(t, 30*time.Minute)
	for i := range s.worlds {
		s.roll(i, "v2")
	}
	s.tell(t, s.isSettled)
	s.is(t, `
   10s development  v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s staging      v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s production   v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s policy       InProgress InProgress InProgress
   20s development  v1 v2
   20s staging      v1: RolloutPolicy fleet: wave staging waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
   20s production   v1: RolloutPolicy fleet: wave production waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
 5m30s development  v2
  6m0s policy       Soaking InProgress InProgress
 6m10s staging      v1: RolloutPolicy fleet: wave staging waits for wave development, which is complete since 2026-01-01T01:16:00Z, and must be until 2026-01-01T01:46:00Z
 6m10s production   v1: RolloutPolicy fleet: wave production waits for wave development, which is complete since 2026-01-01T01:16:00Z, and must be until 2026-01-01T01:46:00Z
 36m0s policy       Complete InProgress InProgress
36m10s staging      v1 v2
36m10s production   v1: RolloutPolicy fleet: wave production waits for wave staging, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
41m20s staging      v2
41m50s policy       Complete Soaking InProgress
 42m0s production   v1: RolloutPolicy fleet: wave production waits for wave staging, which is complete since 2026-01-01T01:51:50Z, and must be until 2026-01-01T02:21:50Z
1h11m50s policy       Complete Complete InProgress
1h12m0s production   v1 v2
1h17m10s production   v2
1h17m40s policy       Complete Complete Soaking
`)
}

// TestARejectionHoldsAllLaterWaves aborts the rollout of staging while production is in the middle of one, and then rolls out
// another version.
func TestARejectionHoldsAllLaterWaves(t *testing.T) {
	s := newWaveStory(t, 10*time.Minute)
	s.roll(2, "v2")
	s.tell(t, func() bool { _, available := s.worlds[2].countOf(s.wanted[2]); return available == 1 })
	s.roll(1, "v2")
	s.worlds[1].Cloud.NoJoin = true
	s.during(t, 2*time.Minute)
	s.worlds[1].Update(func(d *machinev1alpha1.MachineDeployment) { request(d, "abort", "") })
	s.during(t, 30*time.Minute)
	s.worlds[1].Cloud.NoJoin = false
	s.roll(1, "v3")
	s.tell(t, s.isSettled)
	s.is(t, `
   10s production   v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s policy       Complete Complete InProgress
   20s production   v1: RolloutPolicy fleet: wave production begins at 2026-01-01T01:11:10Z, unless an earlier wave begins a rollout before
 1m20s production   v1 v2
  3m0s staging      v1: the rollout waits for provider-drover to ask the RolloutPolicies
  3m0s policy       Complete InProgress InProgress
 3m10s staging      v1: RolloutPolicy fleet: wave staging begins at 2026-01-01T01:14:00Z, unless an earlier wave begins a rollout before
 4m10s staging      v1 v2
  5m0s staging      v1, rejected
  5m0s policy       Complete Failed InProgress
  5m0s event        WaveFailed: Wave staging failed, and holds all later waves until it is complete: default/staging (Failed); to let it pass, run kubectl drover rollout pass
 5m10s production   v1 v2: RolloutPolicy fleet: wave production waits for wave staging, in which a rollout failed, until that is corrected; who may change the RolloutPolicy can let it pass
 35m0s staging      v1: the rollout waits for provider-drover to ask the RolloutPolicies
 35m0s policy       Complete InProgress InProgress
35m10s staging      v1: RolloutPolicy fleet: wave staging begins at 2026-01-01T01:46:00Z, unless an earlier wave begins a rollout before
35m10s production   v1 v2: RolloutPolicy fleet: wave production waits for wave staging, which is not complete since 2026-01-01T01:13:00Z; who may change the RolloutPolicy can let it pass
36m10s staging      v1 v3
41m20s staging      v3
41m50s policy       Complete Soaking InProgress
 42m0s production   v1 v2: RolloutPolicy fleet: wave production waits for wave staging, which is complete since 2026-01-01T01:51:50Z, and must be until 2026-01-01T02:01:50Z
51m50s policy       Complete Complete InProgress
 52m0s production   v2
52m20s policy       Complete Complete Soaking
`)
}

// TestAPolicyThatIsDeletedLetsGo deletes a policy while it holds.
func TestAPolicyThatIsDeletedLetsGo(t *testing.T) {
	s := newWaveStory(t, 10*time.Minute)
	s.worlds[0].Cloud.NoJoin = true
	for i := range s.worlds {
		s.roll(i, "v2")
	}
	s.during(t, 10*time.Minute)
	s.policy = nil
	for _, w := range s.worlds {
		w.HasPolicies = false
	}
	s.tell(t, func() bool { return s.worlds[1].Settled() && s.worlds[2].Settled() })
	s.is(t, `
   10s development  v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s staging      v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s production   v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s policy       InProgress InProgress InProgress
   20s development  v1 v2
   20s staging      v1: RolloutPolicy fleet: wave staging waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
   20s production   v1: RolloutPolicy fleet: wave production waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
10m20s staging      v1 v2
10m20s production   v1 v2
15m30s staging      v2
15m30s production   v2
`)
}

// TestAWaveThatNeverCompletesIsPassed lets the rollout of development make no progress. It fails at its deadline of progress, and
// who may change the policy lets the wave pass.
func TestAWaveThatNeverCompletesIsPassed(t *testing.T) {
	s := newWaveStory(t, 10*time.Minute)
	s.worlds[0].Cloud.NoJoin = true
	for i := range s.worlds {
		s.roll(i, "v2")
	}
	s.during(t, time.Hour)
	s.pass(0)
	s.tell(t, func() bool { return s.worlds[2].Settled() })
	s.is(t, `
   10s development  v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s staging      v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s production   v1: the rollout waits for provider-drover to ask the RolloutPolicies
   10s policy       InProgress InProgress InProgress
   20s development  v1 v2
   20s staging      v1: RolloutPolicy fleet: wave staging waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
   20s production   v1: RolloutPolicy fleet: wave production waits for wave development, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
10m10s policy       Failed InProgress InProgress
10m10s event        WaveFailed: Wave development failed, and holds all later waves until it is complete: default/development (Failed); to let it pass, run kubectl drover rollout pass
10m20s staging      v1: RolloutPolicy fleet: wave staging waits for wave development, in which a rollout failed, until that is corrected; who may change the RolloutPolicy can let it pass
10m20s production   v1: RolloutPolicy fleet: wave production waits for wave development, in which a rollout failed, until that is corrected; who may change the RolloutPolicy can let it pass
20m20s development  v1
20m30s development  v1 v2
40m30s development  v1
40m50s development  v1 v2
1h0m10s policy       Passed InProgress InProgress
1h0m20s staging      v1 v2
1h0m20s production   v1: RolloutPolicy fleet: wave production waits for wave staging, which is not complete since 2026-01-01T01:10:10Z; who may change the RolloutPolicy can let it pass
1h0m50s development  v1
1h1m30s development  v1 v2
1h5m30s staging      v2
1h6m0s policy       Passed Soaking InProgress
1h6m10s production   v1: RolloutPolicy fleet: wave production waits for wave staging, which is complete since 2026-01-01T02:16:00Z, and must be until 2026-01-01T02:26:00Z
1h16m0s policy       Passed Complete InProgress
1h16m10s production   v1 v2
1h21m20s production   v2
1h21m30s development  v1
1h21m50s policy       Passed Complete Soaking
`)
}
