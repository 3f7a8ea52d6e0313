package vm

import (
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// TestLooks has a VM that was created at noon.
func TestLooks(t *testing.T) {
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(s string) time.Time {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return noon.Add(d)
	}
	const never = ""
	for name, tc := range map[string]struct {
		reason string
		now    string
		state  string
		error  string
		phase  machinev1alpha1.MachinePhase
		// asked is the time of the last request, and notReady the time since which the Node is not
		// Ready.
		asked, notReady string
		// tried is the time of an attempt to create the VM that failed.
		tried       string
		deleted     bool
		unreachable bool
		// missing means that an inventory reports that the cloud does not list the VM.
		missing bool
		// want means that a request is due now, and next is the time until the following one.
		want bool
		next string
	}{
		"AVMThatHadNoTimeToRun": {
			reason: "a cloud takes seconds to start a VM", now: "15s", state: "starting", next: "5s",
		},
		"AVMThatShouldRunByNow": {
			reason: "the provider reports it at its next poll only, in 10 minutes", now: "20s", state: "starting", want: true, next: "30s",
		},
		"AProviderThatWasJustAsked": {
			reason: "each look is a call of the cloud", now: "30s", state: "starting", asked: "20s", next: "20s",
		},
		"AProviderThatSawNothingNew": {
			reason: "the VM may need longer", now: "50s", state: "starting", asked: "20s", want: true, next: "30s",
		},
		"AVMThatStartsForHours": {
			reason: "the provider looks as often by itself", now: "3h", state: "starting", asked: "2h51m", next: "1m",
		},
		"AVMThatRuns": {
			reason: "there is nothing to wait for", now: "1m", state: "on", next: never,
		},
		"AMachineThatRunsBeforeItsVM": {
			reason: "its condition InfrastructureReady would be False for 10 minutes", now: "20s", state: "starting", phase: machinev1alpha1.MachineRunning, want: true, next: "30s",
		},
		"ACreationThatIsRefused": {
			reason: "the provider tries it again by itself", now: "1m", state: "starting", error: "no quota", next: never,
		},
		"ACreationThatWasRefusedAndIsTriedAgain": {
			reason: "the provider tries it by itself", now: "30s", tried: "0s", error: "no quota", next: "30s",
		},
		"ACreationThatNobodyTriesAgain": {
			reason: "upjet forgets one that took long to fail, until its next poll", now: "1m", tried: "0s", error: "no quota", want: true, next: "30s",
		},
		"ACreationThatIsThrottled": {
			reason: "each call makes the wait longer", now: "1m", tried: "0s", error: "rate limit", next: "1m",
		},
		"AThrottledCreationThatIsNotTriedAgain": {
			reason: "the throttling has ended, and upjet waits for its next poll", now: "2m", tried: "0s", error: "rate limit", want: true, next: "30s",
		},
		"AMachineThatFailed": {
			reason: "nothing that the provider sees changes that", now: "1m", state: "starting", phase: machinev1alpha1.MachineFailed, next: never,
		},
		"ANodeThatIsNotReady": {
			reason: "the cloud may have stopped or deleted the VM", now: "1h", state: "on", phase: machinev1alpha1.MachineRunning, notReady: "1h", want: true, next: "30s",
		},
		"ANodeThatIsNotReadyAgain": {
			reason: "what was asked before says nothing of now", now: "1h", state: "on", phase: machinev1alpha1.MachineRunning, asked: "30m", notReady: "1h", want: true, next: "30s",
		},
		"ANodeThatIsNotReadyForLong": {
			reason: "the cloud reports it late", now: "61m", state: "on", phase: machinev1alpha1.MachineUnknown, asked: "1h", notReady: "1h", want: true, next: "1m",
		},
		"ANodeThatNeverWasReady": {
			reason: "the kubelet starts before its network plugin", now: "1m", state: "on", phase: machinev1alpha1.MachineJoining, notReady: "30s", next: never,
		},
		"ANodeThatCannotBeObserved": {
			reason: "its cluster is down, and not each of its VMs", now: "1h", state: "on", phase: machinev1alpha1.MachineRunning, notReady: "1h", unreachable: true, next: never,
		},
		"AVMThatTheInventoryMisses": {
			reason: "the Machine fails in the same pass", now: "1h", state: "on", phase: machinev1alpha1.MachineRunning, notReady: "1h", missing: true, next: never,
		},
		"AVMThatIsBeingDeleted": {
			reason: "nothing can be changed of it", now: "1m", state: "starting", deleted: true, next: never,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := single(t, func(in *fn.Infrastructure) { in.Status.Running = `vm.status.?state.orValue("") == "on"` })
			annotations := map[string]string{
				"crossplane.io/external-name": "1", "crossplane.io/external-create-succeeded": noon.Format(time.RFC3339),
			}
			status := map[string]any{"id": "test:///1", "state": tc.state}
			if tc.tried != "" {
				annotations = map[string]string{"crossplane.io/external-create-pending": at(tc.tried).Format(time.RFC3339)}
				status = nil
			}
			if tc.asked != "" {
				annotations[meta.AnnotationKeyReconcileRequestedAt] = at(tc.asked).Format(time.RFC3339)
			}
			there := vm(annotations, status)
			if tc.error != "" {
				there = vm(annotations, status, condition("Synced", "False", "ReconcileError", tc.error))
			}
			if tc.deleted {
				there = deleted(there)
			}
			o.VM, o.Now, o.Machine.Status.Phase = &there, at(tc.now), tc.phase
			o.Node = workernode.Observation{NodeName: "node", Present: true}
			if tc.notReady != "" {
				o.Node.Conditions = []workernode.Condition{{Type: "Ready", Status: "Unknown", Since: &metav1.Time{Time: at(tc.notReady)}}}
			}
			if tc.unreachable {
				o.Node.Error = "down"
			}
			if tc.missing {
				o.Inventory = &plan.InventoryReport{ExternalName: "1", State: plan.InventoryMissing}
			}
			d := Plan(b, nil, o)
			want := annotations[meta.AnnotationKeyReconcileRequestedAt]
			if tc.want {
				want = o.Now.Format(time.RFC3339)
			}
			if got := d.VM.GetAnnotations()[meta.AnnotationKeyReconcileRequestedAt]; got != want {
				t.Errorf("%s: asked at %q, want %q", tc.reason, got, want)
			}
			next := time.Duration(0)
			if tc.next != never {
				next = at(tc.next).Sub(noon)
			}
			if d.Word.LookAgain != next {
				t.Errorf("%s: next in %s, want %s", tc.reason, d.Word.LookAgain, next)
			}
		})
	}
}
