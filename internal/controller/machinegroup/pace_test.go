package machinegroup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

func TestCountPending(t *testing.T) {
	of := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Phase: phase}}
	}
	deleted := of(v1alpha1.MachineJoining)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	got := countPending([]*v1alpha1.Machine{
		of(""), of(v1alpha1.MachinePending), of(v1alpha1.MachineProvisioning), of(v1alpha1.MachineJoining), deleted,
		of(v1alpha1.MachineRunning), of(v1alpha1.MachineFailed), of(v1alpha1.MachineUnknown), of(v1alpha1.MachineUpdating),
	})
	if got[v1alpha1.MachineProvisioning] != 3 || got[v1alpha1.MachineJoining] != 1 || got[v1alpha1.MachineTerminating] != 1 || len(got) != 3 {
		t.Errorf("pending are %v", got)
	}
}

func TestChangesAreReportedTogether(t *testing.T) {
	joining := func(n int) pendingCounts { return pendingCounts{v1alpha1.MachineJoining: n} }
	ending := func(n int) pendingCounts { return pendingCounts{v1alpha1.MachineTerminating: n} }
	cases := map[string]struct {
		reason string
		// since is the time since the last notification, which reported was.
		since time.Duration
		was   pendingCounts
		// changed is the time since the change.
		changed time.Duration
		is      pendingCounts
		gone    bool
		want    time.Duration
	}{
		"AfterALongRestAFirstChangeWaitsForMore": {
			reason: "Changes of Machines that were created together come together.",
			since:  time.Hour, was: joining(2), is: joining(1), want: settleFor,
		},
		"TheLastOfAllArrivalsWaitsForNoMore": {
			reason: "No other Machine is pending.",
			since:  time.Minute, was: joining(10), is: nil, want: 0,
		},
		"TheLastMachineThatIsGoneWaitsForNoMore": {
			reason: "No other Machine terminates.",
			since:  time.Minute, was: ending(10), is: nil, gone: true, want: 0,
		},
		"TheLastOfSomeArrivalsWaitsForTheOthers": {
			reason: "Machines of another phase are pending.",
			since:  time.Minute, was: pendingCounts{v1alpha1.MachineJoining: 1, v1alpha1.MachineTerminating: 1}, is: ending(1), want: settleFor,
		},
		"AfterALongRestChangesThatSettledAreReported": {
			reason: "A set at rest must not wait for an interval.",
			since:  time.Hour, changed: settleFor, is: nil, want: 0,
		},
		"FewArrivalsWaitForMore": {
			reason: "The set can do little with a third of the Machines, and the others follow soon.",
			since:  time.Minute, was: joining(9), changed: time.Second, is: joining(6), want: group.NotifyEvery - time.Second,
		},
		"APhaseThatNoMachineWasInIsNoArrival": {
			reason: "Half of none is none.",
			since:  time.Minute, was: pendingCounts{v1alpha1.MachineProvisioning: 0, v1alpha1.MachineJoining: 9}, changed: time.Second, is: joining(6),
			want: group.NotifyEvery - time.Second,
		},
		"OtherChangesWaitForTheInterval": {
			reason: "A change that the set does not wait for costs no more often than that.",
			since:  time.Second, was: joining(9), changed: time.Second, is: joining(9), want: group.NotifyEvery - time.Second,
		},
		"HalfOfTheArrivalsAreReportedSooner": {
			reason: "The set can delete old Machines for new ones that are available.",
			since:  900 * time.Millisecond, was: joining(9), changed: 500 * time.Millisecond, is: joining(4), want: arrivalsEvery - 900*time.Millisecond,
		},
		"ALastArrivalIsReportedSooner": {
			reason: "The set waits for nothing else.",
			since:  arrivalsEvery, was: joining(1), changed: settleFor, is: joining(0), want: 0,
		},
		"MachinesThatAreGoneAreReportedSoonest": {
			reason: "The set may create Machines in their place.",
			since:  goneEvery - 100*time.Millisecond, was: ending(8), changed: settleFor, is: ending(4), gone: true, want: 100 * time.Millisecond,
		},
		"FewMachinesThatAreGoneWaitForMore": {
			reason: "VMs that are deleted together end together.",
			since:  time.Minute, was: ending(8), changed: 200 * time.Millisecond, is: ending(7), gone: true, want: arrivalsEvery - 200*time.Millisecond,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			p := newPace(func() time.Time { return now })
			p.notified(key, tc.was)
			now = now.Add(tc.since - tc.changed)
			p.delay(key, tc.is, tc.gone)
			now = now.Add(tc.changed)
			if got := p.delay(key, tc.is, tc.gone); got != tc.want {
				t.Errorf("%s The delay is %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestAPaceOfAnUnknownGroupWaitsForMoreChangesOnly(t *testing.T) {
	now := time.Now()
	p := newPace(func() time.Time { return now })
	if got := p.delay(key, nil, false); got != settleFor {
		t.Errorf("the delay is %s, want %s", got, settleFor)
	}
	now = now.Add(settleFor)
	if got := p.delay(key, nil, false); got != 0 {
		t.Errorf("the delay is %s, want none", got)
	}
}

func TestANotificationWaitsUntilNoMoreMachinesArrive(t *testing.T) {
	now := time.Now()
	p := newPace(func() time.Time { return now })
	p.notified(key, pendingCounts{v1alpha1.MachineJoining: 10})
	now = now.Add(time.Minute)
	// A Machine arrives every 200 ms.
	for left, since := 4, time.Duration(0); left > 0; left, since = left-1, since+200*time.Millisecond {
		if got := p.delay(key, pendingCounts{v1alpha1.MachineJoining: left}, false); got != settleFor {
			t.Errorf("the delay is %s after %s and with %d pending Machines, want %s", got, since, left, settleFor)
		}
		now = now.Add(200 * time.Millisecond)
	}
	if got := p.delay(key, nil, false); got != 0 {
		t.Errorf("the delay is %s after the last arrival", got)
	}
}

func TestANotificationDoesNotWaitForeverForArrivals(t *testing.T) {
	now := time.Now()
	p := newPace(func() time.Time { return now })
	p.notified(key, pendingCounts{v1alpha1.MachineJoining: 100})
	now = now.Add(time.Minute)
	left, waited := 50, time.Duration(0)
	for p.delay(key, pendingCounts{v1alpha1.MachineJoining: left}, false) > 0 {
		now, waited, left = now.Add(100*time.Millisecond), waited+100*time.Millisecond, left-1
		if waited > time.Minute {
			break
		}
	}
	if waited != settleAtMost {
		t.Errorf("reported after %s of arrivals, want %s", waited, settleAtMost)
	}
}
