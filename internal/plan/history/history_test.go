package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func entry(machine string, minutes int) machinev1alpha1.ReplacedMachine {
	return machinev1alpha1.ReplacedMachine{
		Machine: machine, Node: machine, Reason: machinev1alpha1.ReplacedFailed, Time: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)),
	}
}

func drained(e machinev1alpha1.ReplacedMachine, d time.Duration) machinev1alpha1.ReplacedMachine {
	e.DrainDuration = &metav1.Duration{Duration: d}
	return e
}

func rollout(e machinev1alpha1.ReplacedMachine, revision int64, message string) machinev1alpha1.ReplacedMachine {
	e.Reason, e.Revision, e.Message = machinev1alpha1.ReplacedRollout, revision, message
	return e
}

func TestMerge(t *testing.T) {
	type list = []machinev1alpha1.ReplacedMachine
	var eleven list
	for i := range 11 {
		eleven = append(eleven, entry(fmt.Sprintf("m%02d", i), i-11))
	}
	for name, tc := range map[string]struct {
		lists []list
		want  list
	}{
		"NothingWasReplaced":                  {nil, nil},
		"TheLatestIsTheLastOne":               {[]list{{entry("b", -1)}, {entry("a", -2), entry("c", -3)}}, list{entry("c", -3), entry("a", -2), entry("b", -1)}},
		"EntriesOfOneTimeAreSortedByName":     {[]list{{entry("b", -1), entry("a", -1)}}, list{entry("a", -1), entry("b", -1)}},
		"TheOldestOfElevenIsDisplaced":        {[]list{eleven}, eleven[1:]},
		"AnEntryIsListedOnce":                 {[]list{{entry("a", -2)}, {entry("a", -1)}}, list{entry("a", -2)}},
		"TheDurationOfTheDrainIsAdded":        {[]list{{entry("a", -2)}, {drained(entry("a", -2), time.Minute)}}, list{drained(entry("a", -2), time.Minute)}},
		"AnOlderViewRemovesNoDuration":        {[]list{{drained(entry("a", -2), time.Minute)}, {entry("a", -2)}}, list{drained(entry("a", -2), time.Minute)}},
		"AnOlderViewRemovesNoRevision":        {[]list{{rollout(entry("a", -2), 3, "to v2")}, {rollout(entry("a", -2), 0, "")}}, list{rollout(entry("a", -2), 3, "to v2")}},
		"TheRevisionIsAdded":                  {[]list{{rollout(entry("a", -2), 0, "")}, {rollout(entry("a", -2), 3, "to v2")}}, list{rollout(entry("a", -2), 3, "to v2")}},
		"ATimeAheadOfTheClockDisplacesNobody": {[]list{append(list{entry("ahead", 600)}, eleven...)}, append(append(list{}, eleven[2:]...), entry("ahead", 0))},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Merge(now, tc.lists...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAListIsTheSameInAnyOrderOfViews merges views of one history in any order, some of them twice.
func TestAListIsTheSameInAnyOrderOfViews(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 25).Draw(t, "machines")
		var all []machinev1alpha1.ReplacedMachine
		for i := range n {
			all = append(all, entry(fmt.Sprintf("m%02d", i), -rapid.IntRange(0, 30).Draw(t, "age")))
		}
		want := Merge(now, all)
		var is []machinev1alpha1.ReplacedMachine
		for _, i := range append(rapid.Permutation(indexes(n)).Draw(t, "order"), rapid.SliceOf(rapid.IntRange(0, max(0, n-1))).Draw(t, "again")...) {
			if i < n {
				is = Merge(now, is, all[i:i+1])
			}
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestOf(t *testing.T) {
	machine := func(edits ...func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{machinev1alpha1.AnnotationReplaceRequestedBy: "alice"}}}
		m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: "n"}
		for _, e := range edits {
			e(m)
		}
		return m
	}
	for name, tc := range map[string]struct {
		m    *machinev1alpha1.Machine
		want *machinev1alpha1.ReplacedMachine
	}{
		"AMachineWithoutANodeIsNotListed": {machine(func(m *machinev1alpha1.Machine) { m.Status.NodeRef = nil }), nil},
		"TheNameOfAUserWhoRequestedNothingIsNotListed": {machine(), &machinev1alpha1.ReplacedMachine{
			Time: metav1.NewTime(now), Machine: "m", Node: "n", Reason: machinev1alpha1.ReplacedRequested,
		}},
		"TheUserWhoRequestedItIsListed": {machine(func(m *machinev1alpha1.Machine) { m.Status.ReplaceRequested = true }), &machinev1alpha1.ReplacedMachine{
			Time: metav1.NewTime(now), Machine: "m", Node: "n", Reason: machinev1alpha1.ReplacedRequested, RequestedBy: "alice",
		}},
		"TheFailureIsListed": {machine(func(m *machinev1alpha1.Machine) {
			m.Status.FailureReason, m.Status.FailureMessage = machinev1alpha1.FailureVMLost, "the VM\nis gone"
		}), &machinev1alpha1.ReplacedMachine{
			Time: metav1.NewTime(now), Machine: "m", Node: "n", Reason: machinev1alpha1.ReplacedRequested, FailureReason: machinev1alpha1.FailureVMLost, Message: "the VM is gone",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, counts := Of(tc.m, now.Add(time.Millisecond), machinev1alpha1.ReplacedRequested)
			if counts != (tc.want != nil) {
				t.Fatalf("counts %t", counts)
			}
			if tc.want != nil {
				if diff := cmp.Diff(*tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestTextsAreWithinTheSchema has a tenant or a Node with texts of a megabyte.
func TestTextsAreWithinTheSchema(t *testing.T) {
	long := strings.Repeat("ä", 1<<19)
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{machinev1alpha1.AnnotationReplaceRequestedBy: long}}}
	m.Status.NodeRef, m.Status.ReplaceRequested = &machinev1alpha1.NodeReference{Name: long}, true
	m.Status.FailureReason, m.Status.FailureMessage = machinev1alpha1.FailureReason(long), long
	e, _ := Of(m, now, machinev1alpha1.ReplacedFailed)
	e = ForRevision(e, 1, long)
	for field, text := range map[string]string{"node": e.Node, "requestedBy": e.RequestedBy, "message": e.Message} {
		if len(text) > 260 || text == "" {
			t.Errorf("%s has %d bytes", field, len(text))
		}
	}
	if len(e.FailureReason) > 70 {
		t.Errorf("failureReason has %d bytes", len(e.FailureReason))
	}
}

// TestRebootsAreListedBesideReplacements has a Machine that was rebooted twice and then replaced.
func TestRebootsAreListedBesideReplacements(t *testing.T) {
	reboot := func(minutes int, byHealth string, state machinev1alpha1.RebootState) machinev1alpha1.ReplacedMachine {
		m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: "n"}
		m.Status.Reboot = &machinev1alpha1.RebootStatus{
			ID: "x", State: state, StartTime: metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute)), ByHealth: byHealth, Message: "no proof",
		}
		e, ended := OfReboot(m)
		if !ended {
			t.Fatalf("%s has not ended", state)
		}
		return e
	}
	first, second := reboot(-30, "Ready is Unknown", machinev1alpha1.RebootSucceeded), reboot(-20, "Ready is Unknown", machinev1alpha1.RebootFailed)
	if first.Reason != machinev1alpha1.ReplacedRebooted || first.Message != "Ready is Unknown" || first.FailureReason != machinev1alpha1.FailureNodeUnhealthy ||
		second.Reason != machinev1alpha1.ReplacedRebootFailed || second.Message != "Ready is Unknown: no proof" {
		t.Errorf("%+v, %+v", first, second)
	}
	replaced := entry("m", -10)
	all := Merge(now, []machinev1alpha1.ReplacedMachine{first}, []machinev1alpha1.ReplacedMachine{replaced, second, first}, []machinev1alpha1.ReplacedMachine{reboot(5, "", machinev1alpha1.RebootSucceeded)})
	if diff := cmp.Diff([]machinev1alpha1.ReplacedMachine{first, second, replaced}, all); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	drain := []machinev1alpha1.ReleasedMachine{{Name: "m", DrainDuration: &metav1.Duration{Duration: time.Second}}}
	if out := WithDrains(all, drain); out[0].DrainDuration != nil || out[2].DrainDuration == nil {
		t.Errorf("the drain of the deletion is that of a reboot: %+v", out)
	}
	m := &machinev1alpha1.Machine{}
	m.Status.NodeRef, m.Status.Reboot = &machinev1alpha1.NodeReference{}, &machinev1alpha1.RebootStatus{State: machinev1alpha1.RebootRebooting}
	if _, ended := OfReboot(m); ended {
		t.Error("a reboot in progress is listed")
	}
}
