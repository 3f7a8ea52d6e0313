package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestAMachineGetsTheInstanceTypeThatHasRoom creates Machines of a class with three instance types. The cloud refuses VMs of the
// first one, and accepts VMs of the second one, which fail then. Each Machine gets a VM of the third one, without a failure and
// without a second VM at a time. Then the cloud has no room for any: the Machine that waits reports all three.
func TestAMachineGetsTheInstanceTypeThatHasRoom(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	lacks := func(size, code string, delay time.Duration) *localcloud.Fault {
		t.Helper()
		fault, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
			Kind: localcloud.FaultCreateFails, Code: code, Message: "no " + size + " is left", Count: 1000, Delay: localcloud.Duration(delay),
			Match: localcloud.FaultMatch{Size: size, Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return fault
	}
	lacks("large", localcloud.CodeQuotaExceeded, 0)
	lacks("medium", localcloud.CodeCapacityExhausted, time.Second)
	class := f.Class("listed", "local", `{"image":"ubuntu-24.04"}`)
	class.Spec.InstanceTypes = []machinev1alpha1.InstanceType{{Name: "large"}, {Name: "medium"}, {Name: "small"}}
	f.Create(t, class)
	md := f.Deployment("listed", 2, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = class.Name
	f.Create(t, md)
	uids := map[types.UID]bool{}
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		running := 0
		for _, m := range machines {
			if uids[m.GetUID()] = true; len(uids) > 2 || m.Status.Phase == machinev1alpha1.MachineFailed {
				t.Fatalf("Machine %s is %s, of %d\n%s", m.Name, m.Status.Phase, len(uids), f.Describe(ctx))
			}
			if m.Status.Phase == machinev1alpha1.MachineRunning {
				running++
			}
		}
		if running < 2 {
			return f.Describe(ctx)
		}
		return ""
	}, f.Describe)
	f.AwaitDeployment(t, md.Name)
	machines, err := f.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		s := m.Status.InstanceType
		if s == nil || s.Name != "small" || s.InstanceType != "small" || s.Round != 1 || !slices.Equal(refusalsOf(s), []string{"large QuotaExceeded", "medium CapacityExhausted"}) {
			t.Errorf("Machine %s has the instance type %+v", m.Name, s)
		}
		if s.NodeCapacity == nil || s.NodeCapacity.Capacity.Cpu().String() != "1" {
			t.Errorf("Machine %s has the capacity %+v", m.Name, s.NodeCapacity)
		}
		reportsInOrder(t, f, "Machine/"+m.Name, "InstanceTypeRefused", "InstanceTypeRefused", "NodeReady")
	}
	nodes, err := f.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Labels[corev1.LabelInstanceTypeStable] != "small" {
			t.Errorf("Node %s has the labels %v", n.Name, n.Labels)
		}
	}
	oneVMAtATime(t, f)

	fault := lacks("small", localcloud.CodeCapacityExhausted, 0)
	f.Patch(t, md, `{"spec":{"replicas":3}}`)
	awaitStatus(t, f, md, "the exhaustion to be reported", func(s machinev1alpha1.MachineDeploymentStatus) bool {
		return len(s.Exhausted) == 1 && s.Exhausted[0].Code == localcloud.CodeCapacityExhausted
	})
	waiting := &machinev1alpha1.Machine{}
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		for _, m := range machines {
			if op := m.Status.LastOperation; !uids[m.GetUID()] && op != nil && op.ErrorCode != "" && len(refusalsOf(m.Status.InstanceType)) == 3 {
				waiting = &m
				return ""
			}
		}
		return f.Describe(ctx)
	})
	if err := f.Cloud.DeleteFault(t.Context(), fault.ID); err != nil {
		t.Fatal(err)
	}
	patience.Eventually(t, func(ctx context.Context) string {
		m := &machinev1alpha1.Machine{}
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(waiting), m); err != nil {
			return err.Error()
		}
		if m.GetUID() != waiting.GetUID() || m.Status.Phase == machinev1alpha1.MachineFailed {
			t.Fatalf("Machine %s\n%s", m.Name, f.Describe(ctx))
		}
		if m.Status.Phase != machinev1alpha1.MachineRunning || m.Status.InstanceType.Name != "small" {
			return f.Describe(ctx)
		}
		return ""
	})
	oneVMAtATime(t, f)
	f.DeleteDeployment(t, md.Name)
}

func refusalsOf(s *machinev1alpha1.InstanceTypeStatus) []string {
	if s == nil {
		return nil
	}
	var out []string
	for _, r := range s.Refused {
		out = append(out, r.Name+" "+r.ErrorCode)
	}
	return out
}

// oneVMAtATime fails the test if a Machine had two VMs at any time.
func oneVMAtATime(t *testing.T, f kit.Fleet) {
	t.Helper()
	history, err := f.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	vms := map[string]map[string]bool{}
	for _, c := range history {
		machine := c.Tags[machinev1alpha1.TagMachineUID]
		if vms[machine] == nil {
			vms[machine] = map[string]bool{}
		}
		switch c.Kind {
		case localcloud.ChangeCreated:
			vms[machine][c.VM] = true
		case localcloud.ChangeGone:
			delete(vms[machine], c.VM)
		}
		if len(vms[machine]) > 1 {
			t.Errorf("the Machine with the UID %s had the VMs %v at %s", machine, fmt.Sprint(vms[machine]), c.At)
		}
	}
}
