package drain

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var now = time.Unix(10_000, 0)

func TestDecideOverAPod(t *testing.T) {
	ready := pass{}
	forced, silent, dead := pass{forced: true}, pass{silent: true}, pass{dead: true}
	gone := func(after time.Duration) pod { return pod{gone: now.Add(after)} }
	cases := map[string]struct {
		pass pass
		pod  pod
		want action
	}{
		"APodIsEvicted":                              {ready, pod{}, evict},
		"OnASilentNodeToo":                           {silent, pod{}, evict},
		"OnADeadNodeNoBudgetProtectsIt":              {dead, pod{}, remove},
		"AFinishedPodMayStay":                        {forced, pod{finished: true}, ignore},
		"ASkippedPodMayStay":                         {forced, pod{behavior: machinev1alpha1.PodSkip}, ignore},
		"APodThatShallCompleteIsWaitedFor":           {ready, pod{behavior: machinev1alpha1.PodWaitCompleted}, hold},
		"ButNotByForce":                              {forced, pod{behavior: machinev1alpha1.PodWaitCompleted}, remove},
		"ATerminatingPodIsWaitedFor":                 {ready, gone(-time.Hour), wait},
		"ButNotOnASilentNode":                        {silent, gone(time.Minute), ignore},
		"NorForeverOnADeadOne":                       {dead, gone(-2*KillDelay - time.Second), ignore},
		"ByForceAPodIsDeleted":                       {forced, pod{}, remove},
		"ItsGraceIsCutShort":                         {forced, gone(time.Hour), remove},
		"AShortGraceIsKept":                          {forced, gone(forcedGrace), wait},
		"AndALittleMore":                             {forced, gone(-KillDelay), wait},
		"ThenItIsKilled":                             {forced, gone(-KillDelay - time.Second), kill},
		"WhatSurvivesThatIsHeldByFinalizersAndStays": {forced, gone(-2*KillDelay - time.Second), ignore},
		"ARefusedPodIsTriedAgain":                    {pass{maxRefused: 3}, pod{attempt: attempt{refused: 2}}, evict},
		"UntilItWasRefusedTooOften":                  {pass{maxRefused: 3}, pod{attempt: attempt{refused: 3}}, remove},
		"WithoutALimitForEver":                       {ready, pod{attempt: attempt{refused: 3000}}, evict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.pass.now = now
			if got := tc.pass.decide(tc.pod); got != tc.want {
				t.Errorf("decided to %s, want %s", got, tc.want)
			}
		})
	}
}

func TestPlanOfAPass(t *testing.T) {
	named := func(name string, change func(*pod)) pod {
		p := pod{name: types.NamespacedName{Namespace: "ns", Name: name}}
		if change != nil {
			change(&p)
		}
		return p
	}
	order := func(o int32) func(*pod) { return func(p *pod) { p.order = o } }
	volume := func(priority int32) func(*pod) {
		return func(p *pod) { p.volumes, p.priority = []string{"pv"}, priority }
	}
	cases := map[string]struct {
		pass pass
		pods []pod
		want []string
	}{
		"LowerOrdersGoFirst": {
			pods: []pod{named("late", order(10)), named("first", order(-1)), named("middle", nil)},
			want: []string{"first evict", "late hold", "middle hold"},
		},
		"AHigherOrderWaitsForTerminatingPodsOfALowerOne": {
			pods: []pod{named("late", order(1)), named("first", func(p *pod) { p.gone = now.Add(time.Second) })},
			want: []string{"first wait", "late hold"},
		},
		"AndForThoseThatShallComplete": {
			pods: []pod{named("late", order(1)), named("job", func(p *pod) { p.behavior = machinev1alpha1.PodWaitCompleted })},
			want: []string{"job hold", "late hold"},
		},
		"WhatMayStayHoldsNothingUp": {
			pods: []pod{named("late", order(1)), named("done", func(p *pod) { p.finished = true }), named("skipped", func(p *pod) { p.behavior = machinev1alpha1.PodSkip })},
			want: []string{"done ignore", "late evict", "skipped ignore"},
		},
		"ForceKnowsNoOrder": {
			pass: pass{forced: true},
			pods: []pod{named("late", order(10)), named("volume", volume(0)), named("first", nil)},
			want: []string{"first remove", "late remove", "volume remove"},
		},
		"PodsWithVolumesTakeTurnsByPriority": {
			pods: []pod{named("low", volume(1)), named("high", volume(1000)), named("plain", nil)},
			want: []string{"plain evict", "high evict", "low evict"},
		},
		"WhileVolumesMoveNoOtherStarts": {
			pass: pass{moving: true},
			pods: []pod{named("a", volume(0)), named("plain", nil)},
			want: []string{"plain evict", "a hold"},
		},
		"NorWhileAPodWithVolumesTerminates": {
			pods: []pod{named("a", volume(0)), named("b", func(p *pod) { volume(0)(p); p.gone = now.Add(time.Second) })},
			want: []string{"b wait", "a hold"},
		},
		"ARefusedPodIsLeftAloneForAWhile": {
			pods: []pod{
				named("again", func(p *pod) { p.attempt = attempt{1, now.Add(-EvictEvery), "no", ""} }),
				named("soon", func(p *pod) { p.attempt = attempt{1, now.Add(-time.Second), "no", ""} }),
			},
			want: []string{"again evict", "soon hold"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.pass.now = now
			var got []string
			for _, s := range tc.pass.plan(tc.pods) {
				got = append(got, s.name.Name+" "+string(s.do))
				if (s.do == hold) != (s.reason != "") {
					t.Errorf("%s: %s with reason %q", s.name.Name, s.do, s.reason)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestGraceOfAPod(t *testing.T) {
	for name, tc := range map[string]struct {
		pass  pass
		do    action
		limit time.Duration // 0 for none
		want  string
	}{
		"ItsOwn":                    {pass{}, evict, 0, "own"},
		"TheLimit":                  {pass{}, evict, time.Minute, "1m0s"},
		"TheLimitWhenDeleted":       {pass{}, remove, time.Minute, "1m0s"},
		"LittleByForce":             {pass{forced: true}, remove, time.Minute, "30s"},
		"LessIfTheLimitIsLower":     {pass{forced: true}, remove, time.Second, "1s"},
		"NoneForWhatIsKilled":       {pass{forced: true}, kill, time.Minute, "0s"},
		"NothingForWhatIsWaitedFor": {pass{forced: true}, wait, time.Minute, "own"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.limit > 0 {
				tc.pass.grace = &tc.limit
			}
			got := "own"
			if g := tc.pass.graceOf(tc.do); g != nil {
				got = g.String()
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestDrainStatusNamesTenPodsThoseThatBlockFirst(t *testing.T) {
	left := Remaining{{Namespace: "a", Name: "a"}: {reason: reasonTerminating}}
	for i := range 12 {
		left[types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("pod-%02d", 11-i)}] = stay{reason: "reason"}
	}
	s := &machinev1alpha1.DrainStatus{}
	left.Fill(s)
	if s.Remaining != 13 || len(s.Pods) != 10 || s.Pods[0].Name != "pod-00" || s.Pods[9].Name != "pod-09" {
		t.Errorf("status %+v", s)
	}
	Remaining{}.Fill(s)
	if s.Remaining != 0 || s.Pods != nil {
		t.Errorf("status %+v", s)
	}
}

func TestNextPassIsSoonWhilePodsTerminate(t *testing.T) {
	if a, b := (Remaining{{}: {reason: reasonTerminating}}).Again(), (Remaining{{}: {reason: "blocked"}}).Again(); a >= b {
		t.Errorf("%s while pods terminate, %s while they are blocked", a, b)
	}
}

func TestBlockedBy(t *testing.T) {
	budget := kerrors.NewTooManyRequests("no", 0)
	budget.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "web needs 2"}}}
	cases := map[string]struct {
		err  error
		want string
	}{
		"ABudget":                    {budget, "its PodDisruptionBudget does not allow its eviction: web needs 2"},
		"ABusyServer":                {kerrors.NewTooManyRequests("later", 1), reasonBusy},
		"ATerminatingNamespace":      {terminatingNamespace(), reasonNamespace},
		"SomethingElseIsReportedRaw": {kerrors.NewInternalError(errors.New("two budgets")), "cannot be evicted: Internal error occurred: two budgets"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := blockedBy(tc.err); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func terminatingNamespace() error {
	err := kerrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("unable to create new content"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace is being terminated"})
	return err
}
