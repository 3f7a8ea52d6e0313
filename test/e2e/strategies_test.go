package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

func TestARollingUpdateKeepsItsBoundsAndHasItsStory(t *testing.T) {
	onEachBreaker(t, func(t *testing.T, f kit.Fleet) {
		md := f.Deployment("rolling", 3, 1, 1)
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)

		guard := f.Guard(t, kit.Bounds{MaxMachines: 4, MinAvailable: 2})
		roll(t, f, md, kit.NewVersion)
		kubectl(t, f, "wait", "--for=condition=Progressing", "md/rolling", patience.Flag())
		f.AwaitDeployment(t, md.Name)
		guard.Done(t, 10)
		everyMachineHasItsNode(t, f, 3)
		kubectl(t, f, "wait", "--for=condition=Available", "md/rolling", patience.Flag())
		kubectl(t, f, "wait", "--for=condition=Reconciling=false", "md/rolling", patience.Flag())
		reportsInOrder(t, f, "MachineDeployment/rolling",
			"for revision 1", "from 0 to 3", "Revision 1 is rolled out", "for revision 2", "Scaled up", "Scaled down", "Revision 2 is rolled out")
		f.DeleteDeployment(t, md.Name)
	})
}

func TestRecreateLeavesNothingOfTheOldBeforeTheNew(t *testing.T) {
	kit.OnlyInLong(t, "the stories and the properties of internal/plan/simulator")
	onEachBreaker(t, func(t *testing.T, f kit.Fleet) {
		md := f.Deployment("recreated", 3, 1, 0)
		md.Spec.Strategy.Type = machinev1alpha1.Recreate
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)

		guard := f.GuardBy(t, kit.OneVersion)
		roll(t, f, md, kit.NewVersion)
		f.AwaitDeployment(t, md.Name)
		guard.Done(t, 10)
		everyMachineHasItsNode(t, f, 3)
		f.DeleteDeployment(t, md.Name)
	})
}

func TestARecreationThatIsTakenBackMakesNoMachineBesideThoseThatGo(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	md := f.Deployment("taken-back", 3, 1, 0)
	md.Spec.Strategy.Type = machinev1alpha1.Recreate
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)

	guard := f.Guard(t, kit.Bounds{MaxMachines: 3})
	hook := machinev1alpha1.HookPreTerminate + "audit"
	kubectl(t, f, "annotate", "machines", "--all", hook+"=")
	roll(t, f, md, kit.NewVersion)
	awaitStatus(t, f, md, "all Machines to be going", func(s machinev1alpha1.MachineDeploymentStatus) bool { return s.TerminatingReplicas == 3 })

	roll(t, f, md, kit.OldVersion)
	waits := func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return s.Revision == 3 && s.TerminatingReplicas == 3 && len(s.MachineSets) == 1 && s.MachineSets[0].Replicas == 0
	}
	awaitStatus(t, f, md, "only the first set to be left", waits)
	f.Throughout(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		if !waits(md.Status) {
			return fmt.Sprintf("the set does not wait: %+v", md.Status)
		}
		return ""
	})

	kubectl(t, f, "annotate", "machines", "--all", hook+"-")
	f.AwaitDeployment(t, md.Name)
	guard.Done(t, 10)
	everyMachineHasItsNode(t, f, 3)
	f.DeleteDeployment(t, md.Name)
}

func TestOnDeleteReplacesWhatTheUserDeletes(t *testing.T) {
	kit.OnlyInLong(t, "the stories and the properties of internal/plan/simulator")
	onEachBreaker(t, func(t *testing.T, f kit.Fleet) {
		md := f.Deployment("ondelete", 3, 1, 0)
		md.Spec.Strategy.Type = machinev1alpha1.OnDelete
		f.Create(t, md)
		f.AwaitDeployment(t, md.Name)
		old := machineNames(t, f)

		roll(t, f, md, kit.NewVersion)
		awaitStatus(t, f, md, "a set for the new template", func(s machinev1alpha1.MachineDeploymentStatus) bool {
			return s.Revision == 2 && len(s.MachineSets) == 2
		})
		deleted := 0
		for name := range old {
			if !isSubset(old, machineNames(t, f)) && deleted == 0 {
				t.Fatal("a Machine went that nobody deleted")
			}
			kubectl(t, f, "delete", "machine", name, "--wait=false")
			deleted++
			awaitVersions(t, f, map[string]int{kit.OldVersion: 3 - deleted, kit.NewVersion: deleted})
		}
		f.AwaitDeployment(t, md.Name)
		everyMachineHasItsNode(t, f, 3)
		f.DeleteDeployment(t, md.Name)
	})
}

// roll changes the version of a template.
func roll(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, version string) {
	t.Helper()
	f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, version))
}

// awaitStatus waits for a status of a MachineDeployment that was observed after its last change.
func awaitStatus(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, what string, ok func(machinev1alpha1.MachineDeploymentStatus) bool) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		if s := md.Status; s.ObservedGeneration != md.Generation || !ok(s) {
			return fmt.Sprintf("awaiting %s, the status is %+v\n%s", what, s, f.Describe(ctx))
		}
		return ""
	})
}

// awaitReason waits for the reason of a condition of a MachineDeployment.
func awaitReason(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, condition, reason string) {
	t.Helper()
	awaitStatus(t, f, md, condition+" "+reason, func(s machinev1alpha1.MachineDeploymentStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, condition)
		return c != nil && c.Reason == reason
	})
}

// awaitVersions waits until there are exactly these numbers of running Machines per version, and
// no other Machines except terminating ones.
func awaitVersions(t *testing.T, f kit.Fleet, want map[string]int) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		got := map[string]int{}
		for v := range want {
			got[v] = 0
		}
		for _, m := range machines {
			if m.DeletionTimestamp == nil && m.Status.Phase == machinev1alpha1.MachineRunning {
				got[m.Spec.Version]++
			} else if m.DeletionTimestamp == nil {
				return fmt.Sprintf("Machine %s is %s\n%s", m.Name, m.Status.Phase, f.Describe(ctx))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("running Machines by version are %v, want %v\n%s", got, want, f.Describe(ctx))
		}
		return ""
	})
}

func isSubset(a, of map[string]bool) bool {
	for k := range a {
		if !of[k] {
			return false
		}
	}
	return true
}

// reportsInOrder checks that the events of an object contain texts in this order.
func reportsInOrder(t *testing.T, f kit.Fleet, object string, texts ...string) {
	t.Helper()
	reportsInOrderIn(t, f, f.Namespace, object, texts...)
}

// reportsInOrderIn is reportsInOrder for events of another namespace.
func reportsInOrderIn(t *testing.T, f kit.Fleet, namespace, object string, texts ...string) {
	t.Helper()
	kind, name, _ := strings.Cut(object, "/")
	patience.Eventually(t, func(ctx context.Context) string {
		l := &corev1.EventList{}
		if err := f.Client.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		story := kit.Story(l.Items, kind, name)
		at := 0
		for _, line := range story {
			if at < len(texts) && strings.Contains(line, texts[at]) {
				at++
			}
		}
		if at < len(texts) {
			return fmt.Sprintf("after %d of %d texts there is no event with %q in\n%s", at, len(texts), texts[at], strings.Join(story, "\n"))
		}
		return ""
	})
}
