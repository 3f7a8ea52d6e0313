package waves_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/waves"
)

var noon = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *metav1.Time { return new(metav1.NewTime(noon.Add(d))) }

// policy of the waves dev, which soaks for an hour and has a deadline of two, and prod.
func policy(changes ...func(*machinev1alpha1.RolloutPolicy)) *machinev1alpha1.RolloutPolicy {
	p := &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet", Generation: 3}}
	p.Spec.Delay.Duration = time.Minute
	p.Spec.Waves = []machinev1alpha1.RolloutWave{
		{
			Name: "dev", MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": "dev"},
			Soak: &metav1.Duration{Duration: time.Hour}, Deadline: metav1.Duration{Duration: 2 * time.Hour},
		},
		{Name: "prod", Deadline: metav1.Duration{Duration: 2 * time.Hour}},
	}
	for _, c := range changes {
		c(p)
	}
	return p
}

// was lets the wave dev have had a state since a time before noon.
func was(s machinev1alpha1.WaveState, before time.Duration) func(*machinev1alpha1.RolloutPolicy) {
	return func(p *machinev1alpha1.RolloutPolicy) {
		w := machinev1alpha1.WaveStatus{Name: "dev", State: s, Since: at(-before), Members: 1}
		if s != machinev1alpha1.WaveComplete && s != machinev1alpha1.WaveSoaking {
			w.ID = idAt(-before)
		}
		p.Status.Waves = []machinev1alpha1.WaveStatus{w}
	}
}

func idAt(d time.Duration) string { return fmt.Sprintf("dev@%d", noon.Add(d).Unix()) }

func passed(id string) func(*machinev1alpha1.RolloutPolicy) {
	return func(p *machinev1alpha1.RolloutPolicy) {
		p.Annotations = map[string]string{machinev1alpha1.AnnotationPassWave: id}
	}
}

func continues(p *machinev1alpha1.RolloutPolicy) {
	p.Spec.Waves[0].AfterDeadline = machinev1alpha1.AfterDeadlineContinue
}

// dev is a member of the wave dev.
func dev(s machinev1alpha1.MemberState) waves.Member {
	return waves.Member{Namespace: "team-a", Name: "dev-" + strings.ToLower(string(s)), UID: types.UID("dev-" + s), Labels: map[string]string{"stage": "dev"}, State: s, Completed: noon.Add(-10 * time.Minute)}
}

var prod = waves.Member{Namespace: "team-b", Name: "prod", UID: "prod", State: machinev1alpha1.MemberRollingOut}

// TestTheStateOfAWave is about the wave dev at noon.
func TestTheStateOfAWave(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		policy  *machinev1alpha1.RolloutPolicy
		members []waves.Member
		// want has the state, the members with those that are complete, since and until, and the members that it waits for.
		want string
	}{
		"NoMember":                {"nothing can be waited for", policy(), nil, "Empty 0/0 - - "},
		"ANewMember":              {"it has no rollout", policy(), []waves.Member{dev(machinev1alpha1.MemberNew)}, "Empty 0/0 - - "},
		"CompleteForTheFirstLook": {"the time of its last rollout counts", policy(), []waves.Member{dev(machinev1alpha1.MemberComplete)}, "Soaking 1/1 11:50 12:50 "},
		"CompleteAtAnUnknownTime": {"it must soak from now on", policy(), []waves.Member{{Labels: map[string]string{"stage": "dev"}, State: machinev1alpha1.MemberComplete}}, "Soaking 1/1 12:00 13:00 "},
		"CompleteInTheFuture": {"the clock of somebody else is no proof", policy(), []waves.Member{func() waves.Member {
			m := dev(machinev1alpha1.MemberComplete)
			m.Completed = noon.Add(time.Hour)
			return m
		}()}, "Soaking 1/1 12:00 13:00 "},
		"CompleteAgain": {"the time of soak begins", policy(was(machinev1alpha1.WaveInProgress, 3*time.Hour)), []waves.Member{dev(machinev1alpha1.MemberComplete)}, "Soaking 1/1 12:00 13:00 "},
		"CompleteForLong": {"it has soaked", policy(was(machinev1alpha1.WaveSoaking, time.Hour)), []waves.Member{func() waves.Member {
			m := dev(machinev1alpha1.MemberComplete)
			m.Completed = noon.Add(-3 * time.Hour)
			return m
		}()}, "Complete 1/1 11:00 - "},
		"ARolloutBetweenTwoLooks":   {"its end counts", policy(was(machinev1alpha1.WaveComplete, 5*time.Hour)), []waves.Member{dev(machinev1alpha1.MemberComplete)}, "Soaking 1/1 11:50 12:50 "},
		"InProgress":                {"it begins now", policy(was(machinev1alpha1.WaveComplete, 5*time.Hour)), []waves.Member{dev(machinev1alpha1.MemberComplete), dev(machinev1alpha1.MemberRollingOut)}, "InProgress 1/2 12:00 14:00 dev-rollingout"},
		"StillInProgress":           {"the time stays", policy(was(machinev1alpha1.WaveInProgress, time.Hour)), []waves.Member{dev(machinev1alpha1.MemberRollingOut)}, "InProgress 0/1 11:00 13:00 dev-rollingout"},
		"AMemberThatMissesMachines": {"it is not complete", policy(), []waves.Member{dev(machinev1alpha1.MemberUnavailable)}, "InProgress 0/1 12:00 14:00 dev-unavailable"},
		"APausedMember":             {"it is not complete", policy(), []waves.Member{dev(machinev1alpha1.MemberPaused)}, "InProgress 0/1 12:00 14:00 dev-paused"},
		"AtTheDeadline":             {"it is reported", policy(was(machinev1alpha1.WaveInProgress, 2*time.Hour)), []waves.Member{dev(machinev1alpha1.MemberRollingOut)}, "Overdue 0/1 10:00 - dev-rollingout"},
		"AFailedMember":             {"failed ones are named first", policy(was(machinev1alpha1.WaveInProgress, time.Hour)), []waves.Member{dev(machinev1alpha1.MemberRollingOut), dev(machinev1alpha1.MemberFailed)}, "Failed 0/2 11:00 - dev-failed,dev-rollingout"},
		"AFailureBeyondTheDeadline": {"it is a failure nevertheless", policy(was(machinev1alpha1.WaveOverdue, 9*time.Hour), continues), []waves.Member{dev(machinev1alpha1.MemberFailed)}, "Failed 0/1 03:00 - dev-failed"},
		"Passed":                    {"who may change the policy decided so", policy(was(machinev1alpha1.WaveFailed, time.Hour), passed(idAt(-time.Hour))), []waves.Member{dev(machinev1alpha1.MemberFailed)}, "Passed 0/1 11:00 - dev-failed"},
		"PassedAtAnEarlierTime":     {"that was about another rollout", policy(was(machinev1alpha1.WaveFailed, time.Hour), passed(idAt(-2*time.Hour))), []waves.Member{dev(machinev1alpha1.MemberFailed)}, "Failed 0/1 11:00 - dev-failed"},
		"FirstLookAtARollout":       {"its begin is not known", policy(), []waves.Member{dev(machinev1alpha1.MemberRollingOut)}, "InProgress 0/1 12:00 14:00 dev-rollingout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := waves.Status(noon.Add(300*time.Millisecond), tc.policy, append(tc.members, prod))
			w := s.Waves[0]
			clock := func(t *metav1.Time) string {
				if t == nil {
					return "-"
				}
				return t.UTC().Format("15:04")
			}
			var waits []string
			for _, m := range w.WaitsFor {
				waits = append(waits, m.Name)
			}
			if got := fmt.Sprintf("%s %d/%d %s %s %s", w.State, w.Complete, w.Members, clock(w.Since), clock(w.Until), strings.Join(waits, ",")); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			if w.Since != nil && w.Since.Nanosecond() != 0 {
				t.Errorf("a status has whole seconds: %s", w.Since)
			}
			isComplete := w.Members == w.Complete
			if (w.ID == "") != isComplete {
				t.Errorf("the ID is %q", w.ID)
			}
			if int(s.Members) != len(tc.members)+1 || s.ObservedGeneration != 3 {
				t.Errorf("%d members of generation %d", s.Members, s.ObservedGeneration)
			}
			tc.policy.Status = s
			if again := waves.Status(noon.Add(900*time.Millisecond), tc.policy, append(tc.members, prod)); fmt.Sprint(again) != fmt.Sprint(s) {
				t.Errorf("the status changes at rest: %+v, %+v", s, again)
			}
		})
	}
}

// TestAWaveNamesTenMembers has fifty that are in progress.
func TestAWaveNamesTenMembers(t *testing.T) {
	var members []waves.Member
	for i := range 50 {
		m := dev(machinev1alpha1.MemberRollingOut)
		m.Name = fmt.Sprintf("m%02d", 49-i)
		members = append(members, m)
	}
	w := waves.Status(noon, policy(), members).Waves[0]
	if len(w.WaitsFor) != 10 || w.WaitsFor[0].Name != "m00" || w.WaitsFor[9].Name != "m09" || w.Members != 50 {
		t.Errorf("got %+v", w)
	}
}

// TestWhichWaveSelectsAMachineDeployment has waves by labels, namespaces and clusters.
func TestWhichWaveSelectsAMachineDeployment(t *testing.T) {
	p := &machinev1alpha1.RolloutPolicy{}
	p.Spec.Waves = []machinev1alpha1.RolloutWave{
		{Name: "labels", MatchLabels: map[string]machinev1alpha1.LabelValue{"stage": "dev", "tier": "web"}},
		{Name: "namespaces", Namespaces: []clusterv1alpha1.NamespacePattern{"team-*", "ops"}},
		{Name: "clusters", Clusters: []string{"one", "two"}},
		{Name: "both", Namespaces: []clusterv1alpha1.NamespacePattern{"x"}, Clusters: []string{"three"}},
	}
	cluster := func(kind, name string) machinev1alpha1.ClusterReference {
		return machinev1alpha1.ClusterReference{Kind: kind, Name: name}
	}
	for name, tc := range map[string]struct {
		m    waves.Member
		want int
	}{
		"AllLabels":              {waves.Member{Labels: map[string]string{"stage": "dev", "tier": "web", "more": "x"}}, 0},
		"SomeLabels":             {waves.Member{Labels: map[string]string{"stage": "dev"}}, -1},
		"APatternOfNamespaces":   {waves.Member{Namespace: "team-a"}, 1},
		"ANamespace":             {waves.Member{Namespace: "ops"}, 1},
		"TheFirstOfTwo":          {waves.Member{Namespace: "ops", Cluster: cluster("ClusterProviderConfig", "one")}, 1},
		"ACluster":               {waves.Member{Namespace: "y", Cluster: cluster("ClusterProviderConfig", "two")}, 2},
		"AConfigOfItsOwn":        {waves.Member{Namespace: "y", Cluster: cluster("ProviderConfig", "two")}, -1},
		"BothSelections":         {waves.Member{Namespace: "x", Cluster: cluster("ClusterProviderConfig", "three")}, 3},
		"OneOfBothSelections":    {waves.Member{Namespace: "y", Cluster: cluster("ClusterProviderConfig", "three")}, -1},
		"TheOtherOfBoth":         {waves.Member{Namespace: "x", Cluster: cluster("ClusterProviderConfig", "four")}, -1},
		"NothingThatIsSelected":  {waves.Member{Namespace: "y"}, -1},
		"AnotherValueOfTheLabel": {waves.Member{Labels: map[string]string{"stage": "prod", "tier": "web"}}, -1},
	} {
		if got := waves.WaveOf(p, tc.m); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
	if i := waves.WaveOf(policy(), prod); i != 1 {
		t.Errorf("a wave without selections selects all: got %d", i)
	}
}

// TestTheAnswerToARollout is about a rollout of the wave prod at noon.
func TestTheAnswerToARollout(t *testing.T) {
	asked := func(before time.Duration) machinev1alpha1.RolloutTurnStatus {
		return machinev1alpha1.RolloutTurnStatus{Template: "b", RequestedTime: at(-before), Held: &machinev1alpha1.RolloutHold{}}
	}
	admitted := machinev1alpha1.RolloutTurnStatus{Template: "b", RequestedTime: at(-time.Hour), AdmittedTime: at(-30 * time.Minute)}
	old := func(p *machinev1alpha1.RolloutPolicy) { was(machinev1alpha1.WaveComplete, 5*time.Hour)(p) }
	complete := dev(machinev1alpha1.MemberComplete)
	complete.Completed = noon.Add(-5 * time.Hour)
	for name, tc := range map[string]struct {
		reason   string
		policies []*machinev1alpha1.RolloutPolicy
		members  []waves.Member
		was      machinev1alpha1.RolloutTurnStatus
		// want is a part of the message of the hold, "" if the rollout is admitted, and until is the end of the hold.
		want  string
		until *metav1.Time
	}{
		"NoPolicy":                     {"nothing holds it", nil, nil, machinev1alpha1.RolloutTurnStatus{}, "", nil},
		"APolicyOfOthers":              {"nothing holds it", []*machinev1alpha1.RolloutPolicy{policy(func(p *machinev1alpha1.RolloutPolicy) { p.Spec.Waves = p.Spec.Waves[:1] })}, nil, machinev1alpha1.RolloutTurnStatus{}, "", nil},
		"TheFirstLook":                 {"changes of other waves at the same time must be seen", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{complete}, machinev1alpha1.RolloutTurnStatus{}, "wave prod begins at 2026-01-10T12:01:00Z", at(time.Minute)},
		"AnotherTemplate":              {"an answer counts for one template", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{complete}, machinev1alpha1.RolloutTurnStatus{Template: "a", RequestedTime: at(-time.Hour), AdmittedTime: at(-time.Hour)}, "wave prod begins at", at(time.Minute)},
		"AfterTheDelay":                {"the wave before is complete", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{complete}, asked(time.Minute), "", nil},
		"AWaveInProgress":              {"it is not complete", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{complete, dev(machinev1alpha1.MemberRollingOut)}, asked(time.Hour), "RolloutPolicy fleet: wave prod waits for wave dev, which is not complete since 2026-01-10T12:00:00Z; who may change", nil},
		"AWaveThatSoaks":               {"it must soak", []*machinev1alpha1.RolloutPolicy{policy()}, []waves.Member{dev(machinev1alpha1.MemberComplete)}, asked(time.Hour), "which is complete since 2026-01-10T11:50:00Z, and must be until 2026-01-10T12:50:00Z", at(50 * time.Minute)},
		"AWaveThatBeginsAgain":         {"what has begun continues", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{dev(machinev1alpha1.MemberRollingOut)}, admitted, "", nil},
		"AWaveThatSoaksAgain":          {"what has begun continues", []*machinev1alpha1.RolloutPolicy{policy()}, []waves.Member{dev(machinev1alpha1.MemberComplete)}, admitted, "", nil},
		"AWaveThatFails":               {"it holds what has begun", []*machinev1alpha1.RolloutPolicy{policy(old)}, []waves.Member{complete, dev(machinev1alpha1.MemberFailed)}, admitted, "waits for wave dev, in which a rollout failed, until that is corrected; who may change the RolloutPolicy can let it pass", nil},
		"AFailedWaveThatIsPassed":      {"who may change the policy decided so", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveFailed, time.Hour), passed(idAt(-time.Hour)))}, []waves.Member{dev(machinev1alpha1.MemberFailed)}, asked(time.Hour), "", nil},
		"AnOverdueWave":                {"it is only reported", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveInProgress, 3*time.Hour))}, []waves.Member{dev(machinev1alpha1.MemberPaused)}, asked(time.Hour), "which is not complete since 2026-01-10T09:00:00Z, and is overdue; who may", nil},
		"AnOverdueWaveThatLetsGo":      {"its policy says so", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveInProgress, 3*time.Hour), continues)}, []waves.Member{dev(machinev1alpha1.MemberPaused)}, asked(time.Hour), "", nil},
		"AWaveThatLetsGoAtItsDeadline": {"the message has the time", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveInProgress, time.Hour), continues)}, []waves.Member{dev(machinev1alpha1.MemberPaused)}, asked(time.Hour), "which is not complete since 2026-01-10T11:00:00Z, but until 2026-01-10T13:00:00Z at most; who may", nil},
		"AFailedWaveBeyondItsDeadline": {"a failure is no wait", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveInProgress, 3*time.Hour), continues)}, []waves.Member{dev(machinev1alpha1.MemberFailed)}, asked(time.Hour), "in which a rollout failed", nil},
		"AnEmptyWave":                  {"there is nothing to wait for", []*machinev1alpha1.RolloutPolicy{policy()}, nil, asked(time.Hour), "", nil},
		"TwoPolicies": {"all must let it begin, and the first by name is named", []*machinev1alpha1.RolloutPolicy{policy(func(p *machinev1alpha1.RolloutPolicy) { p.Name = "z" }), policy(func(p *machinev1alpha1.RolloutPolicy) {
			p.Name, p.Spec.Waves[0].MatchLabels = "a", map[string]machinev1alpha1.LabelValue{"no": "one"}
		})}, []waves.Member{dev(machinev1alpha1.MemberComplete)}, asked(time.Hour), "RolloutPolicy z: wave prod waits for wave dev", at(50 * time.Minute)},
		"TheSecondPolicyIsOfTheFirstWave":   {"the first one holds nevertheless", []*machinev1alpha1.RolloutPolicy{policy(), policy(func(p *machinev1alpha1.RolloutPolicy) { p.Name, p.Spec.Waves = "b", p.Spec.Waves[1:] })}, []waves.Member{dev(machinev1alpha1.MemberComplete)}, asked(time.Hour), "RolloutPolicy fleet: ", at(50 * time.Minute)},
		"APolicyWithoutADelayOfTheSchema":   {"its default counts", []*machinev1alpha1.RolloutPolicy{policy(old, func(p *machinev1alpha1.RolloutPolicy) { p.Spec.Delay.Duration = 0 })}, []waves.Member{complete}, asked(59 * time.Second), "begins at 2026-01-10T12:00:01Z", at(time.Second)},
		"AWaveWithoutADeadlineOfTheSchema":  {"its default counts", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveInProgress, 23*time.Hour), continues, func(p *machinev1alpha1.RolloutPolicy) { p.Spec.Waves[0].Deadline.Duration = 0 })}, []waves.Member{dev(machinev1alpha1.MemberPaused)}, asked(time.Hour), "until 2026-01-10T13:00:00Z at most", nil},
		"AWaveThatFailedBeforeItIsComplete": {"after the correction it must be complete and soak", []*machinev1alpha1.RolloutPolicy{policy(was(machinev1alpha1.WaveFailed, time.Hour))}, []waves.Member{dev(machinev1alpha1.MemberRollingOut)}, asked(time.Hour), "which is not complete since 2026-01-10T11:00:00Z", nil},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &machinev1alpha1.RolloutTurn{Spec: machinev1alpha1.RolloutTurnSpec{Template: "b"}, Status: tc.was}
			o := waves.Observed{Policies: tc.policies, Members: append(tc.members, prod), Turns: map[types.UID]*machinev1alpha1.RolloutTurn{"prod": turn}}
			d := waves.Plan(noon, o)
			s, changed := d.Answers["prod"]
			if !changed {
				s = tc.was
			}
			if s.Template != "b" || s.RequestedTime == nil || (s.AdmittedTime == nil) == (s.Held == nil) {
				t.Fatalf("%s: %+v", tc.reason, s)
			}
			switch {
			case tc.want == "" && s.Held != nil:
				t.Fatalf("%s: it is held: %s", tc.reason, s.Held.Message)
			case tc.want == "":
				if d.Begins != (changed && len(tc.policies) > 0 && waves.WaveOf(tc.policies[0], prod) > 0) {
					t.Errorf("begins is %t", d.Begins)
				}
				return
			case s.Held == nil:
				t.Fatalf("%s: it is not held", tc.reason)
			}
			if !strings.Contains(s.Held.Message, tc.want) || s.Held.Reason != machinev1alpha1.ReasonAwaitingWave || !s.Held.Until.Equal(tc.until) {
				t.Errorf("%s: %+v", tc.reason, s.Held)
			}
			if strings.Contains(s.Held.Message, "team-a") || strings.Contains(s.Held.Message, "dev-") {
				t.Errorf("the answer names an object of another team: %s", s.Held.Message)
			}
			if tc.until != nil && (d.Next.IsZero() || d.Next.After(tc.until.Time)) {
				t.Errorf("it looks again at %s", d.Next)
			}
			for _, p := range tc.policies {
				if s, changed := d.Policies[p.Name]; changed {
					p.Status = s
				}
			}
			turn.Status = s
			if again := waves.Plan(noon, o); len(again.Answers)+len(again.Policies) > 0 || again.Begins {
				t.Errorf("it changes at rest: %+v", again)
			}
		})
	}
}

// TestARolloutOfTheFirstWaveBeginsAtOnce needs no members of the API server.
func TestARolloutOfTheFirstWaveBeginsAtOnce(t *testing.T) {
	m := dev(machinev1alpha1.MemberRollingOut)
	d := waves.Plan(noon, waves.Observed{
		Policies: []*machinev1alpha1.RolloutPolicy{policy()}, Members: []waves.Member{m},
		Turns: map[types.UID]*machinev1alpha1.RolloutTurn{m.UID: {Spec: machinev1alpha1.RolloutTurnSpec{Template: "b"}}},
	})
	if s := d.Answers[m.UID]; s.Held != nil || s.AdmittedTime == nil || d.Begins {
		t.Errorf("got %+v, begins %t", s, d.Begins)
	}
	if !d.Next.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("it looks again at %s, not at the deadline", d.Next)
	}
}

// TestTheFirstPolicyByNameIsNamed has two that hold a rollout, in another order.
func TestTheFirstPolicyByNameIsNamed(t *testing.T) {
	named := func(name string) *machinev1alpha1.RolloutPolicy {
		return policy(func(p *machinev1alpha1.RolloutPolicy) { p.Name = name })
	}
	d := waves.Plan(noon.Add(300*time.Millisecond), waves.Observed{
		Policies: []*machinev1alpha1.RolloutPolicy{named("b"), named("a"), named("c")}, Members: []waves.Member{dev(machinev1alpha1.MemberPaused), prod},
		Turns: map[types.UID]*machinev1alpha1.RolloutTurn{"prod": {Spec: machinev1alpha1.RolloutTurnSpec{Template: "b"}}},
	})
	if s := d.Answers["prod"]; s.Held == nil || !strings.HasPrefix(s.Held.Message, "RolloutPolicy a: ") || !s.RequestedTime.Time.Equal(noon) {
		t.Errorf("got %+v", s)
	}
}

// TestEventsOfTwoWaves has one that stays overdue while the other one fails.
func TestEventsOfTwoWaves(t *testing.T) {
	state := func(dev, prod machinev1alpha1.WaveState) machinev1alpha1.RolloutPolicyStatus {
		return machinev1alpha1.RolloutPolicyStatus{Waves: []machinev1alpha1.WaveStatus{{Name: "dev", State: dev, Since: at(0)}, {Name: "prod", State: prod, Since: at(0)}}}
	}
	const overdue, failed = machinev1alpha1.WaveOverdue, machinev1alpha1.WaveFailed
	for name, tc := range map[string]struct {
		was, is machinev1alpha1.RolloutPolicyStatus
		want    string
	}{
		"the second one fails":         {state(overdue, overdue), state(overdue, failed), "[WaveFailed]"},
		"the first one fails":          {state(overdue, failed), state(failed, failed), "[WaveFailed]"},
		"nothing changes":              {state(overdue, failed), state(overdue, failed), "[]"},
		"both are new":                 {machinev1alpha1.RolloutPolicyStatus{}, state(overdue, failed), "[WaveOverdue WaveFailed]"},
		"they change places in states": {state(overdue, failed), state(failed, overdue), "[WaveFailed WaveOverdue]"},
	} {
		got := []string{}
		for _, e := range waves.Events(tc.was, tc.is) {
			got = append(got, e.Reason)
		}
		if fmt.Sprint(got) != tc.want {
			t.Errorf("%s: got %v, want %s", name, got, tc.want)
		}
	}
}

// TestEventsOfAPolicy are about waves that fail or are overdue, once.
func TestEventsOfAPolicy(t *testing.T) {
	p := policy(was(machinev1alpha1.WaveInProgress, 3*time.Hour))
	members := []waves.Member{dev(machinev1alpha1.MemberRollingOut), prod}
	expect := func(d waves.Decision, want string) {
		t.Helper()
		var got []string
		for _, e := range d.Events["fleet"] {
			if !e.Warning {
				t.Errorf("%s is no warning", e.Reason)
			}
			got = append(got, e.Reason+": "+e.Message)
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	look := func() waves.Decision {
		d := waves.Plan(noon, waves.Observed{Policies: []*machinev1alpha1.RolloutPolicy{p}, Members: members})
		if s, changed := d.Policies["fleet"]; changed {
			p.Status = s
		}
		return d
	}
	expect(look(), "WaveOverdue: Wave dev is not complete since 2026-01-10T09:00:00Z, longer than its deadline: team-a/dev-rollingout (RollingOut); to let it pass, run kubectl drover rollout pass")
	expect(look(), "")
	members[0] = dev(machinev1alpha1.MemberFailed)
	expect(look(), "WaveFailed: Wave dev failed, and holds all later waves until it is complete: team-a/dev-failed (Failed); to let it pass, run kubectl drover rollout pass")
	members[0] = dev(machinev1alpha1.MemberPaused)
	expect(look(), "WaveOverdue: Wave dev is not complete since 2026-01-10T09:00:00Z, longer than its deadline: team-a/dev-paused (Paused); to let it pass, run kubectl drover rollout pass")
	members[0] = dev(machinev1alpha1.MemberComplete)
	expect(look(), "")
}

// TestWhatIsBeforeARollout is a sentence of a forecast.
func TestWhatIsBeforeARollout(t *testing.T) {
	if got := waves.Before(policy(was(machinev1alpha1.WaveOverdue, time.Hour)), prod); got != "It is in wave prod of RolloutPolicy fleet, and begins when the waves before it are complete and have soaked: dev (Overdue)" {
		t.Errorf("got %q", got)
	}
	if got := waves.Before(policy(), prod); !strings.HasSuffix(got, ": dev") {
		t.Errorf("without a status: %q", got)
	}
	if got := waves.Before(policy(), dev(machinev1alpha1.MemberComplete)); got != "" {
		t.Errorf("the first wave: %q", got)
	}
}

// TestTheWorkGrowsWithTheMembers plans the waves of 200 clusters with all of them in rollout: each answer looks at the waves, not
// at the members of other ones.
func TestTheWorkGrowsWithTheMembers(t *testing.T) {
	p := &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	for i := range 20 {
		p.Spec.Waves = append(p.Spec.Waves, machinev1alpha1.RolloutWave{Name: fmt.Sprintf("w%d", i), MatchLabels: map[string]machinev1alpha1.LabelValue{"wave": machinev1alpha1.LabelValue(fmt.Sprint(i))}})
	}
	o := waves.Observed{Policies: []*machinev1alpha1.RolloutPolicy{p}, Turns: map[types.UID]*machinev1alpha1.RolloutTurn{}}
	for i := range 200 {
		m := waves.Member{Namespace: "a", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"wave": fmt.Sprint(i / 10)}, State: machinev1alpha1.MemberRollingOut}
		o.Members = append(o.Members, m)
		o.Turns[m.UID] = &machinev1alpha1.RolloutTurn{Spec: machinev1alpha1.RolloutTurnSpec{Template: "b"}}
	}
	write := func() int {
		d := waves.Plan(noon, o)
		for uid, s := range d.Answers {
			o.Turns[uid].Status = s
		}
		if s, changed := d.Policies["fleet"]; changed {
			p.Status = s
		}
		return len(d.Answers) + len(d.Policies)
	}
	if n := write(); n != 201 {
		t.Errorf("%d writes for the first answers", n)
	}
	if n := write(); n != 0 {
		t.Errorf("%d writes at rest", n)
	}
	// One member of the first wave completes: only the number of the policy changes.
	o.Members[0].State = machinev1alpha1.MemberComplete
	if n := write(); n != 1 {
		t.Errorf("%d writes because one member of a wave is complete", n)
	}
}
