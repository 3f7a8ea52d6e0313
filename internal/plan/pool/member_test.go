package pool

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// memberOf returns a settled member: a MachineDeployment with three available Machines that carries
// decision 7.
func memberOf(edits ...func(*member)) *member {
	d := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "web-a", Generation: 5}}
	d.Annotations = map[string]string{
		machinev1alpha1.AnnotationPoolDecision: "7", machinev1alpha1.AnnotationAppliedHash: "hash",
		machinev1alpha1.AnnotationNodeGroupMaxSize: "4",
	}
	d.Spec.Replicas = 3
	d.Status.ObservedGeneration, d.Status.DesiredReplicas = 5, ptr.To(int32(3))
	d.Status.Replicas, d.Status.AvailableReplicas = 3, 3
	d.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 5}}
	m := &member{is: &Deployment{MachineDeployment: d, Observed: true}, domain: "a", name: d.Name, wanted: true, isRecorded: true}
	m.desired = d.DeepCopy()
	m.decided = machinev1alpha1.PoolDomain{DesiredReplicas: 3, Decision: 7}
	for _, e := range edits {
		e(m)
	}
	return m
}

func decided(n int32, decision int64) func(*member) {
	return func(m *member) { m.decided.DesiredReplicas, m.decided.Decision = n, decision }
}

func running(replicas, available, terminating int32) func(*member) {
	return func(m *member) {
		s := &m.is.Status
		s.Replicas, s.AvailableReplicas, s.TerminatingReplicas = replicas, available, terminating
	}
}

func between(least, most int32) func(*member) {
	return func(m *member) { m.decided.Least, m.decided.Most = &least, most }
}

func absent(m *member) { m.is = nil }

func terminating(m *member) { m.is.Terminating = true }

func TestWhatIsNotCertainCountsAsTheWorse(t *testing.T) {
	type numbers struct{ least, available, most int32 }
	for name, tc := range map[string]struct {
		edits []func(*member)
		want  numbers
	}{
		"ADecisionThatWasCarriedOut":              {nil, numbers{3, 3, 3}},
		"MachinesThatTerminateTakeRoom":           {[]func(*member){running(3, 3, 2)}, numbers{3, 3, 5}},
		"MachinesAboveTheNumberTakeRoom":          {[]func(*member){running(4, 4, 1)}, numbers{3, 3, 5}},
		"MachinesThatAreStillToComeTakeRoom":      {[]func(*member){running(1, 1, 1)}, numbers{3, 1, 4}},
		"ASmallerNumberThatIsNotReportedYet":      {[]func(*member){decided(1, 8), between(1, 3)}, numbers{1, 1, 3}},
		"ALargerNumberThatIsNotReportedYet":       {[]func(*member){decided(5, 8), between(3, 5)}, numbers{3, 3, 5}},
		"ALargerNumberAfterASmallerOne":           {[]func(*member){decided(4, 9), between(1, 4)}, numbers{1, 1, 4}},
		"AnOldViewWithTheSameNumber":              {[]func(*member){decided(3, 9), between(1, 4)}, numbers{1, 1, 4}},
		"ADecisionThatIsReportedAndNotActedOn":    {[]func(*member){between(1, 6), func(m *member) { m.is.Status.ObservedGeneration = 4 }}, numbers{1, 1, 6}},
		"ANumberThatItsPlannerHasNotDecidedOn":    {[]func(*member){between(1, 6), func(m *member) { m.is.Status.DesiredReplicas = nil }}, numbers{1, 1, 6}},
		"ANumberThatSomebodyElseChanged":          {[]func(*member){between(1, 3), func(m *member) { m.is.Spec.Replicas = 9 }}, numbers{1, 1, 9}},
		"OneThatIsBeingDeletedHasNothing":         {[]func(*member){terminating}, numbers{3, 0, 3}},
		"OneThatIsBeingDeletedAndWasToHaveMore":   {[]func(*member){terminating, between(2, 8)}, numbers{2, 0, 8}},
		"OneThatIsNotSeenMayHaveAllThatItIsGiven": {[]func(*member){absent, between(0, 3)}, numbers{0, 0, 3}},
		"OneThatIsNotSeenMayHaveMoreOfBefore":     {[]func(*member){absent, between(0, 6)}, numbers{0, 0, 6}},
		"BoundsOfADecisionThatWasCarriedOutAreNo": {[]func(*member){between(0, 9)}, numbers{3, 3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			m := memberOf(tc.edits...)
			if got := (numbers{m.least(), m.available(), m.most()}); got != tc.want {
				t.Errorf("least, available and most %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAMemberIsCompleteWhenAllIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*member)
		want bool
	}{
		"AsItIsDesired":            {func(*member) {}, true},
		"WithoutMachineDeployment": {absent, false},
		"WithAnotherTemplate": {func(m *member) {
			m.desired.Annotations[machinev1alpha1.AnnotationAppliedHash] = "other"
		}, false},
		"WithAnotherDecision": {decided(3, 8), false},
		"WithAnotherNumber":   {decided(4, 7), false},
		"WithoutBeingReady":   {func(m *member) { m.is.Status.Conditions[0].Status = "False" }, false},
		"ReadyForWhatWas":     {func(m *member) { m.is.Generation++ }, false},
		"BeingDeleted":        {terminating, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memberOf(tc.edit).isComplete(); got != tc.want {
				t.Errorf("complete %t", got)
			}
		})
	}
}

func TestAMemberIsGoneWhenNothingIsLeft(t *testing.T) {
	left := func(m *member) {
		m.wanted = false
		decided(0, 7)(m)
		running(0, 0, 0)(m)
		m.is.Spec.Replicas, m.is.Status.DesiredReplicas = 0, ptr.To(int32(0))
	}
	for name, tc := range map[string]struct {
		edit func(*member)
		want bool
	}{
		"WithoutMachines":             {func(*member) {}, true},
		"WithOneThatTerminates":       {running(0, 0, 1), false},
		"WithOneThatIsToBeDeleted":    {running(1, 0, 0), false},
		"ThatIsWanted":                {func(m *member) { m.wanted = true }, false},
		"ThatIsToHaveSome":            {decided(1, 7), false},
		"ThatHasNotActed":             {func(m *member) { m.is.Status.ObservedGeneration = 4 }, false},
		"ThatCrossplaneCannotDelete":  {func(m *member) { m.is.Observed = false }, false},
		"ThatIsNotThere":              {absent, false},
		"ThatWasGivenByAnotherNumber": {decided(0, 8), false},
		"ThatSomebodyElseScaledAgain": {func(m *member) { m.is.Spec.Replicas = 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memberOf(left, tc.edit).isGone(); got != tc.want {
				t.Errorf("gone %t", got)
			}
		})
	}
}

func TestTheAutoscalerHasSeenAMaximumAfterSomeTime(t *testing.T) {
	lowered := func(ago time.Duration) func(*member) {
		return func(m *member) {
			m.decided.MaxSize, m.decided.LoweredTime = ptr.To(int32(4)), ptr.To(metav1.NewTime(now.Add(-ago)))
		}
	}
	for name, tc := range map[string]struct {
		edits []func(*member)
		want  bool
	}{
		"AfterThat":               {[]func(*member){lowered(autoscalerDelay)}, true},
		"NotBefore":               {[]func(*member){lowered(autoscalerDelay - time.Second)}, false},
		"AtOnceIfItWasNotLowered": {[]func(*member){lowered(0), func(m *member) { m.decided.LoweredTime = nil }}, true},
		"NotWhileItReadsMore":     {[]func(*member){lowered(time.Hour), func(m *member) { m.decided.MaxSize = ptr.To(int32(3)) }}, false},
		"NotByAViewOfBefore":      {[]func(*member){lowered(time.Hour), decided(3, 8)}, false},
		"NotWithoutAnAnnotation":  {[]func(*member){lowered(time.Hour), func(m *member) { m.is.Annotations[machinev1alpha1.AnnotationNodeGroupMaxSize] = "many" }}, false},
		"ThatThereIsNoneAnyMore": {[]func(*member){lowered(time.Hour), func(m *member) {
			m.decided.MaxSize = nil
			delete(m.is.Annotations, machinev1alpha1.AnnotationNodeGroupMaxSize)
		}}, true},
		"NotOfWhatIsNotThereAtAll": {[]func(*member){lowered(time.Hour), absent}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := memberOf(tc.edits...).isLowered(now); got != tc.want {
				t.Errorf("lowered %t", got)
			}
		})
	}
}

func TestAnExhaustionIsOfTheMembersOwnFailureDomain(t *testing.T) {
	m := memberOf(func(m *member) {
		m.is.Status.Exhausted = []machinev1alpha1.Exhaustion{{FailureDomain: "b", Code: "QuotaExceeded"}}
	})
	if e := m.exhausted(); e != nil {
		t.Errorf("exhausted %+v", e)
	}
	m.is.Status.Exhausted[0].FailureDomain = "a"
	if e := m.exhausted(); e == nil || e.Code != "QuotaExceeded" {
		t.Errorf("exhausted %+v", e)
	}
}

func TestANumberThatNobodyCanReadIsNoDecision(t *testing.T) {
	for value, want := range map[string]int64{"12": 12, "": 0, "x": 0, strconv.Itoa(1 << 40): 1 << 40} {
		m := memberOf(func(m *member) { m.is.Annotations[machinev1alpha1.AnnotationPoolDecision] = value })
		if got := m.decisionSeen(); got != want {
			t.Errorf("decision %q is %d, want %d", value, got, want)
		}
	}
	if n := memberOf(absent).decisionSeen() + int64(memberOf(absent).offered()); n != 0 {
		t.Errorf("a MachineDeployment that is not there follows %d", n)
	}
}

func TestSizesAreEqual(t *testing.T) {
	one, two := ptr.To(int32(1)), ptr.To(int32(2))
	for _, tc := range []struct {
		a, b *int32
		want bool
	}{{nil, nil, true}, {one, nil, false}, {nil, one, false}, {one, ptr.To(int32(1)), true}, {one, two, false}} {
		if got := equal(tc.a, tc.b); got != tc.want {
			t.Errorf("%v and %v: %t", tc.a, tc.b, got)
		}
	}
}
