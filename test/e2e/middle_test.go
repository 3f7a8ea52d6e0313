package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

const newerVersion = "v1.35.5"

// inTheMiddle creates a MachineDeployment and rolls it until one Machine is updated.
func inTheMiddle(t *testing.T, f kit.Fleet, replicas int32, surge, unavailable int) *machinev1alpha1.MachineDeployment {
	t.Helper()
	md := f.Deployment("middle", replicas, surge, unavailable)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	roll(t, f, md, kit.NewVersion)
	awaitStatus(t, f, md, "a Machine to be updated", func(s machinev1alpha1.MachineDeploymentStatus) bool { return s.UpdatedReplicas > 0 })
	return md
}

func TestARolloutThatIsPausedInTheMiddleHoldsUntilItIsResumed(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := inTheMiddle(t, f, 5, 1, 0)

	f.Patch(t, md, `{"spec":{"paused":true}}`)
	awaitReason(t, f, md, "Progressing", "MachineDeploymentPaused")
	awaitStatus(t, f, md, "what was under way to be done", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return isAtRest(s) && s.Replicas >= 5
	})
	held := versions(t, f)
	if held[kit.OldVersion] == 0 || held[kit.NewVersion] == 0 {
		t.Fatalf("the rollout was not held in the middle: %v", held)
	}
	nodesOfOldTemplatesAreMarked(t, f)
	// A paused deployment still scales. The scaling must not replace old Machines.
	f.Patch(t, md, `{"spec":{"replicas":7}}`)
	awaitStatus(t, f, md, "two more Machines", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return isAtRest(s) && s.Replicas >= 7
	})
	if now := versions(t, f); now[kit.OldVersion] < held[kit.OldVersion] || now[kit.NewVersion] < held[kit.NewVersion] {
		t.Errorf("while paused, %v became %v", held, now)
	}

	f.Patch(t, md, `{"spec":{"paused":false}}`)
	f.AwaitDeployment(t, md.Name)
	reportsInOrder(t, f, "MachineDeployment/middle", "for revision 2", "spec.paused is true", "The pause has ended", "Revision 2 is rolled out")
	f.DeleteDeployment(t, md.Name)
}

// isAtRest reports whether the number of Machines equals the desired replicas of all sets, and
// all are available.
func isAtRest(s machinev1alpha1.MachineDeploymentStatus) bool {
	decided := int32(0)
	for _, set := range s.MachineSets {
		decided += set.Replicas
	}
	return s.Replicas == decided && s.AvailableReplicas == decided && s.TerminatingReplicas == 0
}

func nodesOfOldTemplatesAreMarked(t *testing.T, f kit.Fleet) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			n := &corev1.Node{}
			if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, n); err != nil {
				return err.Error()
			}
			marked := slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == machinev1alpha1.TaintOutdated && taint.Effect == corev1.TaintEffectPreferNoSchedule
			})
			if marked != (m.Spec.Version == kit.OldVersion) {
				return fmt.Sprintf("Node %s of version %s has taints %v", n.Name, m.Spec.Version, n.Spec.Taints)
			}
		}
		return ""
	})
}

func TestARolloutThatIsSupersededInTheMiddleGoesToTheNewestTemplate(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := inTheMiddle(t, f, 4, 2, 1)
	guard := f.Guard(t, kit.Bounds{MaxMachines: 6, MinAvailable: 3})
	roll(t, f, md, newerVersion)
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 10)
	awaitStatus(t, f, md, "one MachineSet", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return len(s.MachineSets) == 1 && s.Revision == 3
	})
	f.DeleteDeployment(t, md.Name)
}

func TestARollbackInTheMiddleGoesBackAndStaysUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := inTheMiddle(t, f, 4, 2, 1)
	guard := f.Guard(t, kit.Bounds{MaxMachines: 6, MinAvailable: 3})
	f.Patch(t, md, `{"spec":{"rollbackTo":{"revision":1}}}`)
	awaitReason(t, f, md, "Progressing", "NewMachineSetAvailable")
	awaitVersions(t, f, map[string]int{kit.OldVersion: 4})
	if r := md.Status.Rollback; r == nil || r.Requested != 1 || r.Revision != 3 {
		t.Errorf("the rollback is %+v", r)
	}
	f.Patch(t, md, `{"spec":{"rollbackTo":null}}`)
	awaitReason(t, f, md, "Progressing", "NewMachineSetAvailable")
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 20)

	f.Patch(t, md, `{"spec":{"rollbackTo":{"revision":77}}}`)
	awaitReason(t, f, md, "Valid", "RevisionNotFound")
	awaitVersions(t, f, map[string]int{kit.NewVersion: 4})
	f.DeleteDeployment(t, md.Name)
}

func TestARolloutThatMakesNoProgressSaysSoAndRecovers(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := f.Deployment("middle", 2, 1, 0)
	md.Spec.ProgressDeadlineSeconds = 20
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	guard := f.Guard(t, kit.Bounds{MaxMachines: 3, MinAvailable: 2})
	neverBoot(t, f, 1)
	roll(t, f, md, kit.NewVersion)
	awaitReason(t, f, md, "Progressing", "ProgressDeadlineExceeded")
	awaitReason(t, f, md, "Stalled", "ProgressDeadlineExceeded")
	// The Machine that never booted finally fails, and its replacement boots.
	timeOut(t, f, awaitJoining(t, f))
	f.AwaitDeployment(t, md.Name)
	awaitReason(t, f, md, "Stalled", "NotStalled")
	guard.Done(t, 10)
	reportsInOrder(t, f, "MachineDeployment/middle", "made no progress for 20 seconds", "Revision 2 is rolled out")
	f.DeleteDeployment(t, md.Name)
}

func TestScalingInTheMiddleOfARolloutKeepsTheBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to int32
		bounds   kit.Bounds
	}{
		"FromSixToTwelve": {6, 12, kit.Bounds{MaxMachines: 14, MinAvailable: 5}},
		"FromTwelveToSix": {12, 6, kit.Bounds{MaxMachines: 14, MinAvailable: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := raisedFleet(t)
			md := inTheMiddle(t, f, tc.from, 2, 1)
			guard := f.Guard(t, tc.bounds)
			kubectl(t, f, "scale", "md", md.Name, fmt.Sprintf("--replicas=%d", tc.to))
			awaitStatus(t, f, md, "the sets to be scaled", func(s machinev1alpha1.MachineDeploymentStatus) bool {
				return s.DesiredReplicas != nil && *s.DesiredReplicas == tc.to
			})
			f.AwaitDeployment(t, md.Name)
			guard.Done(t, 20)
			everyMachineHasItsNode(t, f, int(tc.to))
			f.DeleteDeployment(t, md.Name)
		})
	}
}

func TestMachinesRollAfterATimeWithoutAChange(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := f.Deployment("after", 2, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	before := machineNames(t, f)
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"rollout":{"after":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
	awaitStatus(t, f, md, "a revision", func(s machinev1alpha1.MachineDeploymentStatus) bool { return s.Revision == 2 })
	f.AwaitDeployment(t, md.Name)
	for name := range machineNames(t, f) {
		if before[name] {
			t.Errorf("Machine %s was not replaced", name)
		}
	}
	f.DeleteDeployment(t, md.Name)
}

// versions returns the number of Machines per version that are not terminating.
func versions(t *testing.T, f kit.Fleet) map[string]int {
	t.Helper()
	machines, err := f.Machines(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, m := range machines {
		if m.DeletionTimestamp == nil {
			n[m.Spec.Version]++
		}
	}
	return n
}
