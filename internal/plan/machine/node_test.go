package machine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

func TestNodeGoneSince(t *testing.T) {
	gone, restarted := workerNodeThat("m", ""), (*workernode.WorkerNode)(nil)
	outage := unreachable(workerNodeThat("m", ""))
	type sight struct {
		after time.Duration
		node  *workernode.WorkerNode
		// since is the expected time after soon, negative for no time.
		since time.Duration
		phase machinev1alpha1.MachinePhase
	}
	const never = -time.Second
	cases := map[string]struct {
		reason string
		sights []sight
	}{
		"ItBeginsOnce": {
			"the grace counts from the first reconcile that missed the Node",
			[]sight{{0, gone, 0, "Unknown"}, {10 * time.Second, gone, 0, "Unknown"}, {29 * time.Second, gone, 0, "Unknown"}, {30 * time.Second, gone, 0, "Failed"}},
		},
		"ItSurvivesARestart": {
			"a process that has just started knows no Node in its first run",
			[]sight{{0, gone, 0, "Unknown"}, {10 * time.Second, restarted, 0, "Unknown"}, {20 * time.Second, gone, 0, "Unknown"}, {30 * time.Second, gone, 0, "Failed"}},
		},
		"ItSurvivesAnOutage": {
			"an outage judges no Machine, and does not begin the grace again",
			[]sight{{0, gone, 0, "Unknown"}, {10 * time.Second, outage, 0, "Unknown"}, {time.Minute, outage, 0, "Unknown"}, {time.Minute, gone, 0, "Failed"}},
		},
		"ItDoesNotBeginDuringAnOutage": {
			"a Node that cannot be observed is not known to be gone",
			[]sight{{0, outage, never, "Unknown"}, {time.Hour, outage, never, "Unknown"}},
		},
		"ItEndsWhenTheNodeIsBackThoughAnOutageFollowsAtOnce": {
			"the Node was observed to be there",
			[]sight{{0, gone, 0, "Unknown"}, {10 * time.Second, unreachable(readyNode()), never, "Running"}},
		},
		"ItEndsWhenTheNodeIsBack": {
			"the next time that the Node is gone counts on its own",
			[]sight{{0, gone, 0, "Unknown"}, {10 * time.Second, readyNode(), never, "Running"}, {20 * time.Second, gone, 20 * time.Second, "Unknown"}, {49 * time.Second, gone, 20 * time.Second, "Unknown"}, {50 * time.Second, gone, 20 * time.Second, "Failed"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := alive(t)
			l.o.Machine.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: "m"}
			for _, s := range tc.sights {
				l.at(s.after, s.node).is(s.phase)
				got := never
				if since := l.d.Status.NodeGoneSince; since != nil {
					got = since.Sub(soon)
				}
				if got != s.since {
					t.Errorf("after %s: gone since %s, want %s: %s", s.after, got, s.since, tc.reason)
				}
			}
			if l.d.Status.Phase == "Failed" && l.d.Status.FailureReason != "NodeDeleted" {
				t.Errorf("it failed with %s", l.d.Status.FailureReason)
			}
		})
	}
}

func TestAMachineKeepsRunningWhileItsClusterCannotBeReached(t *testing.T) {
	l := alive(t).at(0, readyNode()).is("Running")
	before := l.d.Status
	for _, after := range []time.Duration{time.Second, time.Hour, 24 * time.Hour} {
		l.at(after, unreachable(readyNode())).is("Running")
		if diff := cmp.Diff(before, l.d.Status); diff != "" {
			t.Errorf("after %s the status changes: -before +after:\n%s", after, diff)
		}
	}
	if len(l.events) > 0 {
		t.Errorf("events %v", l.events)
	}
}

func TestTheDrainOfTheNodeIsInTheStatus(t *testing.T) {
	drain := &machinev1alpha1.DrainStatus{Stage: machinev1alpha1.DrainEvictingPods}
	for name, tc := range map[string]struct {
		drain   *machinev1alpha1.DrainStatus
		drained bool
	}{
		"NoDrain":     {nil, false},
		"ItIsDrained": {drain, false},
		"ItIsEmpty":   {drain, true},
	} {
		t.Run(name, func(t *testing.T) {
			wn := readyNode()
			wn.Observation.Drain, wn.Observation.Drained = tc.drain, tc.drained
			// The result must not depend on the previous status.
			status := machinev1alpha1.MachineStatus{Phase: "Running", Drain: &machinev1alpha1.DrainStatus{}, Drained: !tc.drained}
			got := Plan(soon, Observed{Machine: machine(status), VM: plan.VM{State: plan.VMRunning, ProviderID: id}, WorkerNode: wn}).Status
			if diff := cmp.Diff(tc.drain, got.Drain); diff != "" || got.Drained != tc.drained {
				t.Errorf("drained %t, drain: -want +got:\n%s", got.Drained, diff)
			}
		})
	}
}

// A providerID that is only in the status yields parameters, by which an existing Node is found
// again, and nothing else. It yields no phase in which the Node is trusted, and no addresses, by
// which certificates are approved.
func TestAForgedProviderIDGivesParametersOnly(t *testing.T) {
	forged := machinev1alpha1.MachineStatus{
		Phase: "Running", ProviderID: "test:///others",
		NodeRef:   &machinev1alpha1.NodeReference{Kind: "Node", Name: "cp-1", UID: "uid-of-cp-1"},
		Addresses: []machinev1alpha1.Address{{Type: "InternalIP", Address: "10.96.0.1"}},
	}
	d := Plan(soon, Observed{Machine: machine(forged), VM: plan.VM{State: plan.VMLost, ProviderID: "test:///others"}})
	if d.Status.Phase != "Failed" || d.Status.FailureReason != "VMLost" {
		t.Errorf("phase %s, reason %s", d.Status.Phase, d.Status.FailureReason)
	}
	if p := d.WorkerNode; p == nil || p.ProviderID != "test:///others" || len(p.Addresses) > 0 || p.Drained {
		t.Errorf("parameters %+v", p)
	}
}
