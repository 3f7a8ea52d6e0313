package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func TestTheNodeHasTheInstanceTypeOfItsVM(t *testing.T) {
	for name, tc := range map[string]struct {
		typ  string
		own  map[string]string
		want string
	}{
		"AsALabel":                               {typ: "m7i.large", want: "m7i.large"},
		"UnlessTheMachineHasTheLabel":            {typ: "m7i.large", own: map[string]string{corev1.LabelInstanceTypeStable: "own"}, want: "own"},
		"OrTheInstanceTypeIsNoLabelValue":        {typ: "a flavor with spaces"},
		"OrTheClassListsNone":                    {},
		"OrTheInstanceTypeIsLongerThanALabelMay": {typ: strings.Repeat("a", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{}
			m.Spec.Metadata.Labels = tc.own
			o := Observed{Machine: m, VM: plan.VM{State: plan.VMRunning, ProviderID: "local://1", Confirmed: true}}
			if tc.typ != "" {
				o.VM.InstanceType = &machinev1alpha1.InstanceTypeStatus{Name: "a", InstanceType: tc.typ, Round: 1}
			}
			d := Plan(time.Unix(1000, 0), o)
			if got := d.WorkerNode.Labels[corev1.LabelInstanceTypeStable]; got != tc.want {
				t.Errorf("label %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(o.VM.InstanceType, d.Status.InstanceType); diff != "" {
				t.Errorf("status -want +got:\n%s", diff)
			}
		})
	}
}

// TestTheTimesOfAMachineWhoseInstanceTypesAreRefused plans at 12:00 for a Machine that was created at 11:00 and has a
// creationTimeout of 20 minutes.
func TestTheTimesOfAMachineWhoseInstanceTypesAreRefused(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) *metav1.Time { v := metav1.NewTime(now.Add(-ago)); return &v }
	// tried is the state in which an instance type is tried, "" for none, after the VMs with these UIDs were refused.
	tried := func(name string, uids ...types.UID) *machinev1alpha1.InstanceTypeStatus {
		s := &machinev1alpha1.InstanceTypeStatus{Name: name, Round: 1}
		for _, uid := range uids {
			s.Refused = append(s.Refused, machinev1alpha1.RefusedInstanceType{Name: string(uid), ErrorCode: "CapacityExhausted", Message: "none is left", VMUID: uid})
		}
		return s
	}
	const none = "CapacityExhausted"
	for name, tc := range map[string]struct {
		before         *machinev1alpha1.InstanceTypeStatus
		refusedUntil   *metav1.Time
		exhaustedSince *metav1.Time
		code           string // of the last operation
		vm             plan.VM
		phase          machinev1alpha1.MachinePhase
		wantRefused    *metav1.Time
		wantExhausted  *metav1.Time
		event          string
	}{
		"ARefusalBeginsTheCreationTimeoutAgain": {
			vm: plan.VM{InstanceType: tried("a", "a"), Discard: "a"}, phase: machinev1alpha1.MachineProvisioning, wantRefused: at(0),
			event: "The cloud has no room for instance type a (CapacityExhausted): none is left",
		},
		"ARecordedRefusalDoesNot": {
			before: tried("a", "a"), refusedUntil: at(time.Minute), vm: plan.VM{InstanceType: tried("b", "a")},
			phase: machinev1alpha1.MachineProvisioning, wantRefused: at(time.Minute),
		},
		"AnInstanceTypeThatHangsFailsTheMachine": {
			before: tried("b", "a"), refusedUntil: at(21 * time.Minute), vm: plan.VM{InstanceType: tried("b", "a")},
			phase: machinev1alpha1.MachineFailed, wantRefused: at(21 * time.Minute),
		},
		"ASoDoesAResourceThatIsNotDeleted": {
			before: tried("a", "a"), refusedUntil: at(21 * time.Minute), vm: plan.VM{InstanceType: tried("a", "a"), Discard: "a"},
			phase: machinev1alpha1.MachineFailed, wantRefused: at(21 * time.Minute),
		},
		"TheRefusalOfAllIsTheExhaustion": {
			before: tried("", "a"), refusedUntil: at(time.Second), vm: plan.VM{InstanceType: tried("", "a"), ErrorCode: none, Exhausted: none},
			phase: machinev1alpha1.MachineProvisioning, wantRefused: at(time.Second), wantExhausted: at(0),
		},
		"WhichNoCreationTimeoutEnds": {
			before: tried("", "a"), refusedUntil: at(time.Hour), exhaustedSince: at(time.Hour), code: none, vm: plan.VM{InstanceType: tried("", "a"), ErrorCode: none, Exhausted: none},
			phase: machinev1alpha1.MachineProvisioning, wantRefused: at(time.Hour), wantExhausted: at(time.Hour),
		},
		"TheNextRoundBeginsTheCreationTimeoutAndNotTheExhaustion": {
			before: tried("", "a"), refusedUntil: at(time.Hour), exhaustedSince: at(time.Hour), code: none, vm: plan.VM{InstanceType: tried("a", "a"), ErrorCode: none, Exhausted: none},
			phase: machinev1alpha1.MachineProvisioning, wantRefused: at(0), wantExhausted: at(time.Hour),
		},
		"WhichAHangingVMEndsToo": {
			before: tried("a", "a"), refusedUntil: at(21 * time.Minute), exhaustedSince: at(time.Hour), code: none, vm: plan.VM{InstanceType: tried("a", "a"), ErrorCode: none, Exhausted: none},
			phase: machinev1alpha1.MachineFailed, wantRefused: at(21 * time.Minute), wantExhausted: at(time.Hour),
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machinev1alpha1.Machine{}
			m.CreationTimestamp = *at(time.Hour)
			m.Spec.CreationTimeout = metav1.Duration{Duration: 20 * time.Minute}
			m.Status.Phase, m.Status.InstanceType, m.Status.RefusedUntil, m.Status.ExhaustedSince = machinev1alpha1.MachineProvisioning, tc.before, tc.refusedUntil, tc.exhaustedSince
			m.Status.LastOperation = &machinev1alpha1.LastOperation{Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing, ErrorCode: tc.code}
			tc.vm.State = plan.VMCreating
			d := Plan(now, Observed{Machine: m, VM: tc.vm})
			if d.Status.Phase != tc.phase {
				t.Errorf("phase %s: %s", d.Status.Phase, d.Status.FailureMessage)
			}
			if !d.Status.RefusedUntil.Equal(tc.wantRefused) || !d.Status.ExhaustedSince.Equal(tc.wantExhausted) {
				t.Errorf("refused until %v, want %v; exhausted since %v, want %v", d.Status.RefusedUntil, tc.wantRefused, d.Status.ExhaustedSince, tc.wantExhausted)
			}
			got := ""
			for _, e := range d.Events {
				if e.Reason == machinev1alpha1.EventInstanceTypeRefused {
					got += e.Message
				}
			}
			if got != tc.event {
				t.Errorf("event %q", got)
			}
		})
	}
}
