package recovery

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var (
	away      = flag.Duration("away", 30*time.Second, "how long providers are away in TestProvidersThatAreAwayTouchNothing")
	snapshots = flag.Int("snapshots", 1, "how many snapshots TestSnapshotsOfARolloutLoseNothing restores")
	seed      = flag.Uint64("snapshot-seed", 0, "seed of its points in time, 0 for one of its own")
)

// shared are the components of a control cluster that continue without it: another control
// cluster may use them.
var shared = []string{"target", "local-cloud"}

const kubernetes = "kubernetes"

// stop all components of a control cluster, as its loss would.
func stop(t *testing.T, p *kit.Plane) (stopped []string) {
	t.Helper()
	s, err := p.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Components {
		if !slices.Contains(shared, c.Name) && c.Name != kubernetes {
			stopped = append(stopped, c.Name)
		}
	}
	// Stop the API server last, so that the other components can end.
	stopped = append(stopped, kubernetes)
	operate(t, p, "stop", stopped...)
	return stopped
}

func operate(t *testing.T, p *kit.Plane, verb string, components ...string) {
	t.Helper()
	for _, c := range components {
		if err := p.Launcher(t.Context(), verb, c); err != nil {
			t.Fatal(err)
		}
	}
}

func etcd(p *kit.Plane) string { return filepath.Join(p.Dir, kubernetes, "etcd") }

// snapshot etcd while the API server is paused for a moment.
func snapshot(t *testing.T, p *kit.Plane) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "etcd")
	operate(t, p, "stop", kubernetes)
	defer operate(t, p, "start", kubernetes)
	if err := os.CopyFS(dir, os.DirFS(etcd(p))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// restore a snapshot of etcd. All clients of the API server are restarted.
func restore(t *testing.T, p *kit.Plane, snapshot string) {
	t.Helper()
	stopped := stop(t, p)
	if err := os.RemoveAll(etcd(p)); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(etcd(p), os.DirFS(snapshot)); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(stopped)
	operate(t, p, "start", stopped...)
}

// newCollector deletes orphans as early as it may: for it, ten minutes pass within three seconds.
func newCollector(t *testing.T, f kit.Fleet) *machinev1alpha1.OrphanCollector {
	t.Helper()
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	o.Spec.Namespace, o.Spec.Policy = f.Namespace, machinev1alpha1.OrphanDelete
	o.Spec.GracePeriod.Duration, o.Spec.Interval.Duration = 10*time.Minute, time.Second
	o.Spec.MaxOrphans = 100
	f.Create(t, o)
	go f.Age(t.Context(), virtualMachine.Group, f.Namespace, o.Spec.GracePeriod.Duration-3*time.Second)
	return o
}

// reports returns the difference between the VMs that an OrphanCollector reports and the given
// ones, empty if there is none.
func reports(ctx context.Context, f kit.Fleet, c *machinev1alpha1.OrphanCollector, vms []string) string {
	is := &machinev1alpha1.OrphanCollector{}
	if err := f.Client.Get(ctx, client.ObjectKeyFromObject(c), is); err != nil {
		return err.Error()
	}
	var named []string
	for _, o := range is.Status.VirtualMachines {
		if o.Namespace == f.Namespace {
			named = append(named, o.ExternalName)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, vms) {
		return fmt.Sprintf("of %v it reports %+v", vms, is.Status)
	}
	return ""
}

// TestWhatAnEtcdSnapshotLacksIsReportedAndKept restores a snapshot that is older than some
// creations and deletions of VMs.
func TestWhatAnEtcdSnapshotLacksIsReportedAndKept(t *testing.T) {
	f := here.NewTargetFleet(t)
	collector := newCollector(t, f)
	md := f.Deployment("web", 3, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, here)

	f.Patch(t, md, `{"spec":{"replicas":5}}`)
	if err := f.Client.Delete(t.Context(), &machines[0]); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(&machines[0]), &machinev1alpha1.Machine{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the Machine is there: %v", err)
		}
		return f.Unsettled(ctx, md.Name)
	}, f.Describe)
	v := keepVigil(t, f, 10)

	restore(t, here, before)
	f.AwaitDeployment(t, md.Name)
	if got, err := f.Machines(t.Context()); err != nil || len(got) != 3 {
		t.Errorf("%d Machines, error %v", len(got), err)
	}
	var orphans []string
	patience.Eventually(t, func(ctx context.Context) string {
		if orphans, err = unclaimed(ctx, f); err != nil || len(orphans) != 3 {
			return fmt.Sprintf("VMs without a Machine: %v, error %v", orphans, err)
		}
		return reports(ctx, f, collector, orphans)
	}, f.Describe)
	f.Throughout(t, func(ctx context.Context) string { return reports(ctx, f, collector, orphans) })

	// The manual step of docs/recovery.md: the set gets the Machines back.
	sets := &machinev1alpha1.MachineSetList{}
	if err := f.Client.List(t.Context(), sets, client.InNamespace(f.Namespace)); err != nil || len(sets.Items) != 1 {
		t.Fatalf("%d MachineSets, error %v", len(sets.Items), err)
	}
	bring := append([]string{"import", "--namespace", f.Namespace, "--kubeconfig", here.Kubeconfig, "--machine-set", sets.Items[0].Name}, orphans...)
	if _, err := kubectlDrover(t, "", bring...); err == nil || !strings.Contains(err.Error(), "would have 6 Machines, and keeps 3") {
		t.Errorf("imported without room: %v", err)
	}
	f.Patch(t, &sets.Items[0], `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	f.Patch(t, md, `{"spec":{"replicas":6}}`)
	patience.Eventually(t, func(context.Context) string {
		if _, err := kubectlDrover(t, "", bring...); err != nil {
			return err.Error() // The set does not have its replicas yet.
		}
		return ""
	})
	f.Patch(t, &sets.Items[0], `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
	f.AwaitDeployment(t, md.Name)
	if left, err := unclaimed(t.Context(), f); err != nil || len(left) > 0 {
		t.Errorf("no Machine has the VMs %v, error %v", left, err)
	}
	if vms, err := f.VMs(t.Context()); err != nil || len(vms) != 6 {
		t.Errorf("%d VMs, error %v", len(vms), err)
	}
	v.done(t)
	itIsAFleetLikeAnyOther(t, f, 6)
}

// TestAVMThatIsYoungerThanTheSnapshotIsKept restores a snapshot in which a Machine has no VM yet.
// The VM that the Machine got since is in use. The Machine gets another VM, which must not take
// over the Node of the first VM.
func TestAVMThatIsYoungerThanTheSnapshotIsKept(t *testing.T) {
	f := here.NewTargetFleet(t)
	collector := newCollector(t, f)
	operate(t, here, "stop", "provider-local")
	md := f.Deployment("web", 1, 1, 0)
	md.Spec.Template.Spec.CreationTimeout = metav1.Duration{Duration: patience.Scale(90 * time.Second).Truncate(time.Second)}
	f.Create(t, md)
	resources := &metav1.PartialObjectMetadataList{}
	resources.SetGroupVersionKind(virtualMachine.GroupVersion().WithKind(virtualMachine.Kind + "List"))
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.List(ctx, resources, client.InNamespace(f.Namespace)); err != nil || len(resources.Items) != 1 {
			return fmt.Sprintf("%d VM resources, error %v", len(resources.Items), err)
		}
		return ""
	}, f.Describe)
	before := snapshot(t, here)
	operate(t, here, "start", "provider-local")
	f.AwaitDeployment(t, md.Name)
	vms, err := f.VMs(t.Context())
	if err != nil || len(vms) != 1 {
		t.Fatalf("%d VMs, error %v", len(vms), err)
	}
	first := []string{vms[0].ID}
	v := keepVigil(t, f, 2)

	nodes, err := f.Nodes(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("%d Nodes, error %v", len(nodes), err)
	}

	restore(t, here, before)
	patience.Eventually(t, func(ctx context.Context) string {
		if vms, err := f.VMs(ctx); err != nil || len(vms) != 2 {
			return fmt.Sprintf("%d VMs, error %v", len(vms), err)
		}
		return ""
	}, f.Describe)
	patience.Throughout(t, patience.After(time.Minute), func(ctx context.Context) string {
		is := &corev1.Node{}
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(&nodes[0]), is); err != nil || !slices.Equal(is.Status.Addresses, nodes[0].Status.Addresses) {
			return fmt.Sprintf("the Node of the first VM has the addresses %v, and had %v, error %v", is.Status.Addresses, nodes[0].Status.Addresses, err)
		}
		return ""
	})
	f.AwaitDeployment(t, md.Name)
	patience.Eventually(t, func(ctx context.Context) string {
		if left, err := unclaimed(ctx, f); err != nil || !slices.Equal(left, first) {
			return fmt.Sprintf("VMs without a Machine: %v, want %v, error %v", left, first, err)
		}
		return reports(ctx, f, collector, first)
	}, f.Describe)
	v.done(t)
	discard(t, f, collector, first)
	patience.Eventually(t, func(ctx context.Context) string {
		if left, err := unclaimed(ctx, f); err != nil || len(left) > 0 {
			return fmt.Sprintf("no Machine has %v, error %v", left, err)
		}
		return f.Unsettled(ctx, md.Name)
	}, f.Describe)
	itIsAFleetLikeAnyOther(t, f, 1)
}

// discard VMs: delete their Nodes, and confirm at an OrphanCollector that a person checked the
// VMs.
func discard(t *testing.T, f kit.Fleet, c *machinev1alpha1.OrphanCollector, vms []string) {
	t.Helper()
	names, err := json.Marshal(vms)
	if err != nil {
		t.Fatal(err)
	}
	f.Patch(t, c, fmt.Sprintf(`{"spec":{"confirmedOrphans":%s}}`, names))
	all, err := f.VMs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, vm := range all {
		if !slices.Contains(vms, vm.ID) {
			continue
		}
		if err := f.Cluster.Client.DeleteAllOf(t.Context(), &corev1.Node{}, client.MatchingLabels{clusterv1alpha1.LabelJoinToken: vm.Tags[machinev1alpha1.TagMachineUID]}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotsOfARolloutLoseNothing restores snapshots from random points of a rollout, at
// random later points. After each restore, the fleet is complete, and each VM belongs to a
// Machine or is reported.
func TestSnapshotsOfARolloutLoseNothing(t *testing.T) {
	kit.OnlyInLong(t, "TestWhatAnEtcdSnapshotLacksIsReportedAndKept and TestAVMThatIsYoungerThanTheSnapshotIsKept")
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-snapshot-seed=%d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	f := here.NewTargetFleet(t)
	collector := newCollector(t, f)
	md := f.Deployment("web", 4, 1, 1)
	// A Machine that had no VM in a snapshot, and got one since, cannot join with its next VM.
	md.Spec.Template.Spec.CreationTimeout = metav1.Duration{Duration: patience.Scale(90 * time.Second).Truncate(time.Second)}
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	versions := []string{kit.NewVersion, kit.OldVersion}
	for i := range *snapshots {
		f.Patch(t, md, fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, versions[i%2]))
		pass(t, random)
		before := snapshot(t, here)
		pass(t, random)
		restore(t, here, before)
		f.AwaitDeployment(t, md.Name)
		var orphans []string
		patience.Eventually(t, func(ctx context.Context) (waits string) {
			var err error
			if orphans, err = unclaimed(ctx, f); err != nil {
				return err.Error()
			}
			return reports(ctx, f, collector, orphans)
		}, f.Describe)
		t.Logf("restore %d left %d VMs to report", i, len(orphans))
		discard(t, f, collector, orphans)
		patience.Eventually(t, func(ctx context.Context) string {
			if left, err := unclaimed(ctx, f); err != nil || len(left) > 0 {
				return fmt.Sprintf("no Machine has %v, error %v", left, err)
			}
			return f.Unsettled(ctx, md.Name)
		}, f.Describe)
	}
	itIsAFleetLikeAnyOther(t, f, 4)
}

// pass waits for a random time, so that snapshots differ.
func pass(t *testing.T, random *rand.Rand) {
	t.Helper()
	patience.Throughout(t, patience.After(time.Duration(random.Int64N(int64(15*time.Second)))), func(context.Context) string { return "" })
}

// TestProvidersThatAreAwayTouchNothing stops the controllers of Machines and VMs while the fleet
// is scaled up.
func TestProvidersThatAreAwayTouchNothing(t *testing.T) {
	f := here.NewTargetFleet(t)
	md, v := aFleetInUse(t, f, 3)
	operate(t, here, "stop", "provider-drover", "provider-local")
	f.Patch(t, md, `{"spec":{"replicas":4}}`)
	patience.Throughout(t, patience.After(*away), func(context.Context) string { return "" })
	operate(t, here, "start", "provider-local", "provider-drover")
	f.AwaitDeployment(t, md.Name)
	v.done(t)
	f.DeleteDeployment(t, md.Name)
	f.AwaitNothing(t)
}

// dump all objects of a fleet like a backup: without statuses, and with the UIDs of their owners.
func dump(t *testing.T, f kit.Fleet) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, kind := range []schema.GroupVersionKind{
		machinev1alpha1.MachineDeploymentGroupVersionKind, machinev1alpha1.MachineSetGroupVersionKind, machinev1alpha1.MachineGroupGroupVersionKind,
		machinev1alpha1.MachineGroupVersionKind, virtualMachine,
	} {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := f.Client.List(t.Context(), l, client.InNamespace(f.Namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range l.Items {
			o := &l.Items[i]
			delete(o.Object, "status")
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
			out = append(out, o)
		}
	}
	return out
}

// TestAControlClusterThatIsLost moves the fleets of a permanently lost control cluster: by the
// plugin and by Velero as the docs describe, and from a backup as some tools restore it. It is
// the last test that uses this control cluster.
func TestAControlClusterThatIsLost(t *testing.T) {
	saved, backedUp := here.NewTargetFleet(t), here.NewTargetFleet(t)
	lost := installationOf(t, here.Client)
	_, v := aFleetInUse(t, saved, 3)
	_, w := aFleetInUse(t, backedUp, 2)
	dir := filepath.Join(t.TempDir(), "saved")
	if _, err := kubectlDrover(t, "", "move", "--namespace", saved.Namespace, "--kubeconfig", here.Kubeconfig, "--to-directory", dir); err != nil {
		t.Fatal(err)
	}
	backup := dump(t, backedUp)
	tool, byVelero := newVelero(t), kit.Fleet{}
	var x *vigil
	if tool != nil {
		byVelero = here.NewTargetFleet(t)
		_, x = aFleetInUse(t, byVelero, 3)
		tool.backUp(t, here, byVelero.Namespace)
	}
	stop(t, here)

	t.Run("WhatVeleroBackedUpIsTakenOverOnceSomebodySaysThatItIsLost", func(t *testing.T) {
		if tool == nil {
			t.Skipf("%s names no folder: make velero builds Velero, and runs this test with it", envVelero)
		}
		f := there.TargetFleetIn(t, byVelero.Namespace)
		tool.restore(t, there, f.Namespace)
		takenOverOnceItIsSaid(t, f, lost, x)
		say(t, lost, "null")
	})
	t.Run("WhatWasSavedIsTakenOverOnceSomebodySaysThatItIsLost", func(t *testing.T) {
		f := there.TargetFleetIn(t, saved.Namespace)
		if _, err := kubectlDrover(t, "", "move", "--namespace", f.Namespace, "--from-directory", dir, "--to-kubeconfig", there.Kubeconfig, patience.Flag()); err != nil {
			t.Fatal(err)
		}
		takenOverOnceItIsSaid(t, f, lost, v)
	})
	t.Run("WhatTheGarbageCollectorDeletesOfABackupIsHeldUntilSomebodyConfirmsIt", func(t *testing.T) {
		f := there.TargetFleetIn(t, backedUp.Namespace)
		for _, o := range backup {
			if err := f.Client.Create(t.Context(), o.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		say(t, lost, `"Lost"`)
		md := &machinev1alpha1.MachineDeployment{}
		patience.Eventually(t, func(ctx context.Context) string {
			if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: "web"}, md); err != nil || md.Status.AvailableReplicas != 2 {
				return fmt.Sprintf("status %+v, error %v", md.Status, err)
			}
			return ""
		}, f.Describe)
		var held []machinev1alpha1.Machine
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			held = slices.DeleteFunc(machines, func(m machinev1alpha1.Machine) bool {
				return m.Status.Deletion == nil || m.Status.Deletion.Stage != machinev1alpha1.DeletionHeld
			})
			if err != nil || len(held) != 2 {
				return fmt.Sprintf("%d Machines are held, error %v", len(held), err)
			}
			if left, err := unclaimed(ctx, f); err != nil || len(left) > 0 {
				return fmt.Sprintf("no Machine has the VMs %v, error %v", left, err)
			}
			return ""
		}, f.Describe)
		w.done(t)
		for i := range held {
			f.Patch(t, &held[i], `{"metadata":{"annotations":{"drover.dev/confirm-deletion":"true"}}}`)
		}
		patience.Eventually(t, func(ctx context.Context) string {
			if vms, err := f.VMs(ctx); err != nil || len(vms) != 2 {
				return fmt.Sprintf("%d VMs, error %v", len(vms), err)
			}
			return f.Unsettled(ctx, "web")
		}, f.Describe)
	})
}

// takenOverOnceItIsSaid checks that three Machines take over their VMs and Nodes once the other
// control cluster is declared lost.
func takenOverOnceItIsSaid(t *testing.T, f kit.Fleet, lost string, v *vigil) {
	t.Helper()
	waits := func(ctx context.Context) string { return valid(ctx, f, machinev1alpha1.ReasonVMOfAnotherInstallation) }
	patience.Eventually(t, waits, f.Describe)
	f.Throughout(t, waits)
	md := &machinev1alpha1.MachineDeployment{}
	if err := f.Client.Get(t.Context(), client.ObjectKey{Namespace: f.Namespace, Name: "web"}, md); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(md.Status.Conditions, machinev1alpha1.ConditionStalled); c == nil || c.Reason != machinev1alpha1.ReasonVMOfAnotherInstallation {
		t.Errorf("the deployment does not say what it waits for: %+v", md.Status.Conditions)
	}
	v.check(t)
	say(t, lost, `"Lost"`)
	f.AwaitDeployment(t, md.Name)
	if left, err := unclaimed(t.Context(), f); err != nil || len(left) > 0 {
		t.Errorf("no Machine has the VMs %v, error %v", left, err)
	}
	if vms, err := f.VMs(t.Context()); err != nil || len(vms) != 3 {
		t.Errorf("%d VMs, error %v", len(vms), err)
	}
	v.done(t)
	itIsAFleetLikeAnyOther(t, f, 3)
}

// Declare the state of another control cluster, by the command that the messages of its Machines
// have.
func say(t *testing.T, installation, state string) {
	t.Helper()
	if out, err := there.Kubectl(t, "-n", "crossplane-system", "patch", "configmap", "drover-installations", "--type=merge", "-p", fmt.Sprintf(`{"data":{%q:%s}}`, installation, state)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
