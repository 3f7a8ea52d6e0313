package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// lost is the owner reference of an object that was restored from a backup without its owner, or
// whose owner has another UID now. The garbage collector deletes such an object.
func lost(kind string) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"machine.drover.dev/v1alpha1","kind":%q,"name":"lost","uid":"00000000-0000-4000-8000-000000000000","controller":true,"blockOwnerDeletion":true}]}}`, kind)
}

const confirmed = `{"metadata":{"annotations":{"drover.dev/confirm-deletion":"true"}}}`

func TestAMachineThatTheGarbageCollectorDeletesIsNotDrained(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	m := running(t, f, "kept")
	node := m.machine(t).Status.NodeRef.Name
	f.Patch(t, m.machine(t), lost("MachineSet"))
	patience.Eventually(t, func(ctx context.Context) string {
		is := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: m.name}, is); err != nil {
			return err.Error()
		}
		if d := is.Status.Deletion; d == nil || d.Stage != machinev1alpha1.DeletionHeld {
			return fmt.Sprintf("deleted %v, deletion %+v, operation %+v", is.DeletionTimestamp, d, is.Status.LastOperation)
		}
		return ""
	}, f.Describe)
	f.Throughout(t, func(ctx context.Context) string {
		if vms := m.vms(ctx); len(vms) != 1 {
			return fmt.Sprintf("VMs %+v", vms)
		}
		return inService(ctx, f, node)
	})
	f.Patch(t, m.machine(t), confirmed)
	patience.Eventually(t, m.gone, f.Describe)
}

func TestAMachineSetThatTheGarbageCollectorDeletesKeepsItsMachines(t *testing.T) {
	t.Parallel()
	f := raisedFleet(t)
	set := machineSet(f, "kept", 2)
	f.Create(t, set)
	awaitSet(t, f, set)
	before := uids(t, f)
	f.Patch(t, set, lost("MachineDeployment"))
	key := client.ObjectKeyFromObject(set)
	patience.Eventually(t, func(ctx context.Context) string {
		is := &machinev1alpha1.MachineSet{}
		if err := f.Client.Get(ctx, key, is); err != nil {
			return err.Error()
		}
		if c := meta.FindStatusCondition(is.Status.Conditions, machinev1alpha1.ConditionStalled); c == nil || c.Reason != machinev1alpha1.ReasonDeletionHeld {
			return fmt.Sprintf("deleted %v, conditions %+v", is.DeletionTimestamp, is.Status.Conditions)
		}
		return ""
	}, f.Describe)
	f.Throughout(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if m.DeletionTimestamp != nil || !before[m.UID] {
				return fmt.Sprintf("Machine %s: deleted %v, new %t", m.Name, m.DeletionTimestamp, !before[m.UID])
			}
			if s := inService(ctx, f, m.Status.NodeRef.Name); s != "" {
				return s
			}
		}
		if len(machines) != 2 {
			return fmt.Sprintf("%d Machines", len(machines))
		}
		return ""
	})
	f.Patch(t, set, confirmed)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, key, &machinev1alpha1.MachineSet{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the MachineSet is there: %v", err)
		}
		return ""
	}, f.Describe)
}

// inService reports why a Node accepts no pods, empty if it does.
func inService(ctx context.Context, f kit.Fleet, name string) string {
	n := &corev1.Node{}
	if err := f.Cluster.Client.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return err.Error()
	}
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if !ready || n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		return fmt.Sprintf("the Node %s is Ready %t, cordoned %t, deleted %v", name, ready, n.Spec.Unschedulable, n.DeletionTimestamp)
	}
	return ""
}

// uids of the Machines of a fleet.
func uids(t *testing.T, f kit.Fleet) map[types.UID]bool {
	t.Helper()
	machines, err := f.Machines(t.Context())
	must(t, err)
	out := map[types.UID]bool{}
	for _, m := range machines {
		out[m.UID] = true
	}
	return out
}
