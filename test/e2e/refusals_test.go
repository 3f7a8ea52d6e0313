package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// A refusal is a MachineDeployment whose VMs the cloud refuses with an error code.
type refusal struct {
	kit.Fleet
	md    *machinev1alpha1.MachineDeployment
	fault *localcloud.Fault
	// names of its Machines during the refusal.
	names  map[string]bool
	census *kit.Census
}

// TestWhatTheCloudRefusesWaitsAndRecovers has VMs refused with each class of errors, for longer
// than the creationTimeout of their Machines and during a restart of Crossplane and provider-drover. No Machine
// fails, none is replaced or created in addition, and the error is reported. When the cloud
// accepts the VMs, the same Machines start.
func TestWhatTheCloudRefusesWaitsAndRecovers(t *testing.T) {
	codes := []string{
		localcloud.CodeCapacityExhausted, localcloud.CodeQuotaExceeded, localcloud.CodeInvalidRequest,
		localcloud.CodePermissionDenied, localcloud.CodeThrottled, "Transient",
	}
	all := map[string]*refusal{}
	for _, code := range codes {
		all[code] = refuse(t, code)
	}
	for code, r := range all {
		step(t, code+"IsReported", func(t *testing.T) { r.isReported(t, code) })
	}
	for _, r := range all {
		r.givesTime(t, time.Second)
	}
	step(t, "NothingMovesOverARestart", func(t *testing.T) {
		restart(t, "crossplane")
		restart(t, "provider-drover")
		patience.Throughout(t, patience.After(10*time.Second), func(ctx context.Context) string {
			for code, r := range all {
				if s := r.moved(ctx); s != "" {
					return code + ": " + s
				}
			}
			return ""
		})
	})
	for _, r := range all {
		r.givesTime(t, 20*time.Minute)
		if err := r.Cloud.DeleteFault(t.Context(), r.fault.ID); err != nil {
			t.Fatal(err)
		}
	}
	for code, r := range all {
		step(t, code+"Recovers", func(t *testing.T) { r.recovers(t) })
	}
}

// firstPatience is how long a set waits for the first VM of a template before it creates the others.
const firstPatience = 10 * time.Second

func refuse(t *testing.T, code string) *refusal {
	t.Helper()
	r := &refusal{Fleet: plane.NewFleet(t)}
	r.fault = r.refuseVMs(t, code, 0)
	r.census = r.Census(t)
	r.md = r.Deployment("refused", 3, 1, 0)
	r.md.Spec.Template.Spec.FailureDomain = ptr.To("zone-b")
	r.Create(t, r.md)
	return r
}

// refuseVMs of the fleet with an error code: at once or, with a delay, after the cloud accepted
// them.
func (r *refusal) refuseVMs(t *testing.T, code string, delay time.Duration) *localcloud.Fault {
	t.Helper()
	if code == "Transient" {
		code = localcloud.CodeInternal
	}
	fault, err := r.Cloud.CreateFault(t.Context(), localcloud.Fault{
		Kind: localcloud.FaultCreateFails, Code: code, Message: "not now", Count: 1000, Delay: localcloud.Duration(delay),
		Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: r.Namespace}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fault
}

// isReported waits until the Machine and the deployment report the error, one Machine is refused, and
// no other Machine is created.
func (r *refusal) isReported(t *testing.T, code string) {
	stalled := "NotStalled"
	if code == localcloud.CodeInvalidRequest || code == localcloud.CodePermissionDenied {
		stalled = code
	}
	exhausted := code == localcloud.CodeCapacityExhausted || code == localcloud.CodeQuotaExceeded
	awaitStatus(t, r.Fleet, r.md, "the refusal to be reported", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		if conditionOf(s.Conditions, "ReplicaFailure").Reason != code || conditionOf(s.Conditions, "Stalled").Reason != stalled {
			return false
		}
		if !exhausted {
			return len(s.Exhausted) == 0
		}
		return len(s.Exhausted) == 1 && s.Exhausted[0].FailureDomain == "zone-b" && s.Exhausted[0].Code == code && s.Exhausted[0].Until == nil &&
			conditionOf(s.Conditions, "CapacityExhausted").Reason == code
	})
	if exhausted {
		reportsInOrder(t, r.Fleet, "MachineSet/"+r.md.Status.MachineSets[0].Name, "Created", `Failure domain "zone-b"`)
	}
	r.oneTries(t)
}

// givesTime to the Machines: a creationTimeout.
func (r *refusal) givesTime(t *testing.T, d time.Duration) {
	t.Helper()
	r.Patch(t, r.md, fmt.Sprintf(`{"spec":{"template":{"spec":{"creationTimeout":%q}}}}`, d))
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := r.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if m.Spec.CreationTimeout.Duration != d {
				return fmt.Sprintf("Machine %s has a creationTimeout of %s, want %s", m.Name, m.Spec.CreationTimeout.Duration, d)
			}
		}
		return ""
	}, r.Describe)
}

// oneTries checks that one Machine tries for all. If the refusal of this Machine takes longer than the set
// waits for it, the set creates the others, and they are refused as well.
func (r *refusal) oneTries(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := r.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		r.names = map[string]bool{}
		created := []time.Time{}
		for _, m := range machines {
			if op := m.Status.LastOperation; op == nil || op.ErrorCode == "" {
				return fmt.Sprintf("Machine %s is not refused yet\n%s", m.Name, r.Describe(ctx))
			}
			r.names[m.Name] = true
			created = append(created, m.CreationTimestamp.Time)
		}
		if len(created) == 0 {
			return "there is no Machine"
		}
		if !oneTried(created) {
			t.Fatalf("%d Machines, want one that tries for all\n%s", len(created), r.Describe(ctx))
		}
		return ""
	})
}

// oneTried reports whether one Machine tried for all: the set created the others only after it had waited for
// the first. The times are those of the creations.
func oneTried(created []time.Time) bool {
	slices.SortFunc(created, time.Time.Compare)
	// Creation timestamps have whole seconds.
	return len(created) == 1 || len(created) > 1 && created[1].Sub(created[0]) >= firstPatience-time.Second
}

func (r *refusal) moved(ctx context.Context) string {
	machines, err := r.Machines(ctx)
	if err != nil {
		return "" // The API server is restarting. This test does not check its errors.
	}
	for _, m := range machines {
		if !r.names[m.Name] || m.Status.Phase != machinev1alpha1.MachineProvisioning || m.Status.LastOperation.ErrorCode == "" {
			return fmt.Sprintf("Machine %s, of %v\n%s", m.Name, r.names, r.Describe(ctx))
		}
	}
	if len(machines) != len(r.names) {
		return r.Describe(ctx)
	}
	return ""
}

func (r *refusal) recovers(t *testing.T) {
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := r.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		up := 0
		for _, m := range machines {
			if m.Status.Phase == machinev1alpha1.MachineFailed {
				t.Fatalf("Machine %s failed\n%s", m.Name, r.Describe(ctx))
			}
			if r.names[m.Name] && m.Status.Phase == machinev1alpha1.MachineRunning {
				up++
			}
		}
		if up < len(r.names) {
			return "the Machine that was refused does not run\n" + r.Describe(ctx)
		}
		return ""
	})
	r.AwaitDeployment(t, r.md.Name)
	everyMachineHasItsNode(t, r.Fleet, 3)
	r.census.Done(t, 3)
	awaitStatus(t, r.Fleet, r.md, "the refusal to be over", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return conditionOf(s.Conditions, "ReplicaFailure").Status == metav1.ConditionFalse && len(s.Exhausted) == 0 &&
			conditionOf(s.Conditions, "CapacityExhausted").Status != metav1.ConditionTrue
	})
	r.DeleteDeployment(t, r.md.Name)
}

// TestVMsThatFailAfterTheyWereAcceptedAreNotReplacedInAStorm checks that no further Machine is
// created until the backoff of the error ends. The number of Machines by then is the number that
// the cloud accepted before the first one failed.
func TestVMsThatFailAfterTheyWereAcceptedAreNotReplacedInAStorm(t *testing.T) {
	kit.OnlyInLong(t, "TestWhatTheCloudRefusesWaitsAndRecovers, and the stories and the properties of internal/plan/simulator")
	t.Parallel()
	r := &refusal{Fleet: plane.NewFleet(t)}
	r.fault = r.refuseVMs(t, localcloud.CodeInvalidRequest, 100*time.Millisecond)
	s := machineSet(r.Fleet, "storm", 5)
	began := time.Now()
	r.Create(t, s)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		if b := s.Status.Backoff; b == nil || b.Failures != 1 || b.Until.Sub(began) < 9*time.Minute {
			return fmt.Sprintf("status %+v\n%s", s.Status, r.Describe(ctx))
		}
		return ""
	})
	created := s.Status.Created
	if created > 5 {
		t.Errorf("%d Machines were created for 5 replicas\n%s", created, r.Describe(t.Context()))
	}
	r.Throughout(t, func(ctx context.Context) string {
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err.Error()
		}
		if s.Status.Created != created || s.Status.Backoff == nil || s.Status.Backoff.Failures != 1 {
			return fmt.Sprintf("%d Machines were created, then %d\n%s", created, s.Status.Created, r.Describe(ctx))
		}
		return ""
	})
	// A new template has no backoff.
	if err := r.Cloud.DeleteFault(t.Context(), r.fault.ID); err != nil {
		t.Fatal(err)
	}
	r.Patch(t, s, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, kit.NewVersion))
	awaitSet(t, r.Fleet, s)
	everyMachineHasItsNode(t, r.Fleet, 5)
	kubectl(t, r.Fleet, "delete", "machineset", s.Name)
	r.AwaitNothing(t)
}
