package machinegroup

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/machinegroup"
)

func TestOnTheWay(t *testing.T) {
	of := func(phase v1alpha1.MachinePhase) *v1alpha1.Machine {
		return &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Phase: phase}}
	}
	deleted := of(v1alpha1.MachineJoining)
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	got := onTheWayOf([]*v1alpha1.Machine{
		of(""), of(v1alpha1.MachinePending), of(v1alpha1.MachineProvisioning), of(v1alpha1.MachineJoining), deleted,
		of(v1alpha1.MachineRunning), of(v1alpha1.MachineFailed), of(v1alpha1.MachineUnknown), of(v1alpha1.MachineUpdating),
	})
	if got[v1alpha1.MachineProvisioning] != 3 || got[v1alpha1.MachineJoining] != 1 || got[v1alpha1.MachineTerminating] != 1 || len(got) != 3 {
		t.Errorf("on the way are %v", got)
	}
}

func TestHalfOfWhatIsAwaitedIsToldBeforeItsTurn(t *testing.T) {
	now := time.Now()
	p := newPace(func() time.Time { return now })
	joining := func(n int) onTheWay {
		return onTheWayOf(slices.Repeat([]*v1alpha1.Machine{{Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineJoining}}}, n))
	}
	for range tellBurst {
		if wait := p.next(key, joining(8)); wait != 0 {
			t.Fatalf("one of the first news waits for %s", wait)
		}
		p.tell(key, joining(8))
	}
	for _, next := range []struct {
		joining int
		told    bool
	}{{7, false}, {5, false}, {4, true}, {3, false}, {2, true}, {1, true}, {0, true}, {0, false}} {
		p.of[key].at = now
		if wait := p.next(key, joining(next.joining)); wait == 0 {
			t.Errorf("with %d that join it is notified more often than every %s", next.joining, arrivalsEvery)
		}
		p.of[key].at = now.Add(-arrivalsEvery)
		wait := p.next(key, joining(next.joining))
		if told := wait == 0; told != next.told {
			t.Errorf("with %d that join it waits for %s, want told at once: %t", next.joining, wait, next.told)
		}
		if wait == 0 {
			p.tell(key, joining(next.joining))
		}
	}
	now = now.Add(machinegroup.TellEvery)
	if wait := p.next(key, joining(0)); wait != 0 {
		t.Errorf("it waits for %s when it is its turn", wait)
	}
}

func TestMachinesThatAreGoneAreReportedTogether(t *testing.T) {
	now := time.Now()
	p := newPace(func() time.Time { return now })
	ending := func(n int) onTheWay { return onTheWay{v1alpha1.MachineTerminating: n} }
	for range tellBurst {
		if wait := p.nextGone(key, ending(8)); wait != 0 {
			t.Fatalf("one of the first waits for %s", wait)
		}
		p.tell(key, ending(8))
	}
	now = now.Add(200 * time.Millisecond)
	if wait := p.nextGone(key, ending(7)); wait != goneEvery-200*time.Millisecond {
		t.Errorf("it waits for %s, want the rest of %s", wait, goneEvery)
	}
	now = now.Add(goneEvery)
	if wait := p.nextGone(key, ending(6)); wait != 0 {
		t.Errorf("it waits for %s when the time is over", wait)
	}
}
