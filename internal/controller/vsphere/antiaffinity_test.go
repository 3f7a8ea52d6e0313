package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

const rule = "drover.ns.workers"

func ref(id string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: vmType, Value: id}
}

// antiAffinity returns a rule with these VMs.
func antiAffinity(key int32, name string, vms ...string) *types.ClusterAntiAffinityRuleSpec {
	r := &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Key: key, Name: name, Enabled: ptr.To(false)}}
	for _, vm := range vms {
		r.Vm = append(r.Vm, ref(vm))
	}
	return r
}

func TestRuleChanges(t *testing.T) {
	cases := map[string]struct {
		rules []types.BaseClusterRuleInfo
		named map[string]string
		want  string
	}{
		"OneVMNeedsNoRule":               {nil, map[string]string{"a": rule}, ""},
		"TwoVMsNeedOne":                  {nil, map[string]string{"a": rule, "b": rule, "c": "drover.ns.other"}, "add [a b]"},
		"ARuleWithAllIsLeftAlone":        {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a", "b", "x")}, map[string]string{"a": rule, "b": rule}, ""},
		"AVMJoins":                       {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a", "x")}, map[string]string{"a": rule, "b": rule}, "edit 1 [a x b]"},
		"TheSecondVMJoinsAnEmptyRule":    {[]types.BaseClusterRuleInfo{antiAffinity(1, rule)}, map[string]string{"a": rule, "b": rule}, "edit 1 [a b]"},
		"RulesOfOthersAreLeftAlone":      {[]types.BaseClusterRuleInfo{antiAffinity(1, "x", "a")}, map[string]string{"a": rule, "b": rule}, "add [a b]"},
		"OneOfTwoRulesWithAllIsEnough":   {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a"), antiAffinity(2, rule, "a", "b")}, map[string]string{"a": rule, "b": rule}, ""},
		"OneOfTwoRulesIsEdited":          {[]types.BaseClusterRuleInfo{antiAffinity(2, rule, "b"), antiAffinity(1, rule, "a")}, map[string]string{"a": rule, "b": rule}, "edit 1 [a b]"},
		"TheLastVMRemovesTheRule":        {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a")}, map[string]string{"a": leaving + rule}, "remove 1"},
		"TheLastTwoVMsRemoveTheRule":     {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a", "b")}, map[string]string{"a": leaving + rule, "b": leaving + rule}, "remove 1"},
		"AnEmptyRuleIsRemoved":           {[]types.BaseClusterRuleInfo{antiAffinity(1, rule)}, nil, "remove 1"},
		"ARuleWithAnotherVMStays":        {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a", "x")}, map[string]string{"a": leaving + rule}, ""},
		"ARuleWithAVMThatStaysStays":     {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a", "b")}, map[string]string{"a": leaving + rule, "b": rule}, ""},
		"AVMThatLeavesDoesNotJoin":       {nil, map[string]string{"a": rule, "b": leaving + rule}, ""},
		"AVMThatLeavesRestoresLostOnes":  {[]types.BaseClusterRuleInfo{antiAffinity(1, rule, "a")}, map[string]string{"a": leaving + rule, "b": rule, "c": rule}, "edit 1 [a b c]"},
		"ARuleOfAnotherTypeIsNotChanged": {[]types.BaseClusterRuleInfo{&types.ClusterAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: rule}}}, map[string]string{"a": rule, "b": rule}, `InvalidRequest: forProvider.antiAffinityGroup: the vSphere cluster has a rule "drover.ns.workers" of another type, *types.ClusterAffinityRuleSpec`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := clusterView{rules: tc.rules, named: map[types.ManagedObjectReference]string{}}
			for vm, r := range tc.named {
				v.named[ref(vm)] = r
			}
			changes, err := ruleChanges(v, rule)
			var got []string
			for _, c := range changes {
				s := string(c.Operation)
				if c.RemoveKey != nil {
					s += fmt.Sprint(" ", c.RemoveKey)
				}
				if info, ok := c.Info.(*types.ClusterAntiAffinityRuleSpec); ok {
					if c.Operation == types.ArrayUpdateOperationEdit {
						s += fmt.Sprint(" ", info.Key)
						if *info.Enabled {
							t.Error("a disabled rule is enabled")
						}
					}
					var vms []string
					for _, vm := range info.Vm {
						vms = append(vms, vm.Value)
					}
					s += fmt.Sprint(" ", vms)
				}
				got = append(got, s)
			}
			if err != nil {
				got = append(got, err.Error())
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("%s, want %s", s, tc.want)
			}
		})
	}
}

func TestALongNameOfARuleIsShortened(t *testing.T) {
	vm := &v1alpha1.VirtualMachine{}
	vm.SetNamespace(strings.Repeat("n", 63))
	seen := map[string]bool{}
	for _, group := range []string{strings.Repeat("g", 63), strings.Repeat("g", 62)} {
		vm.Spec.ForProvider.AntiAffinityGroup = &group
		name := ruleOf(vm)
		if len(name) != maxRuleName || seen[name] {
			t.Errorf("rule %q of %d bytes", name, len(name))
		}
		seen[name] = true
	}
}

func inGroup(p *v1alpha1.VirtualMachineParameters) { p.AntiAffinityGroup = ptr.To("workers") }

// member returns the name of a VM of the group.
func member(i int) string { return fmt.Sprintf("workers-abcde-%d", i) }

// createGroup creates VirtualMachines with the numbers from first to last.
func (w *world) createGroup(first, last int) {
	w.t.Helper()
	for i := first; i <= last; i++ {
		w.createAs(member(i), k8stypes.UID(fmt.Sprintf("0b0e7d2c-6a52-4a0b-9b53-%012d", i)), inGroup)
	}
}

func requestFor(i int) reconcile.Request {
	return reconcile.Request{NamespacedName: k8stypes.NamespacedName{Namespace: "ns", Name: member(i)}}
}

// untilGroup reconciles the VMs by turns until all of them are ready, or, if they are deleted, gone.
// after is called after each reconcile.
func (w *world) untilGroup(first, last int, after func()) {
	w.t.Helper()
	for end := time.Now().Add(patience.Limit()); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		done := true
		for i := first; i <= last; i++ {
			_, err := w.control.reconciler.Reconcile(w.t.Context(), requestFor(i))
			w.must(err)
			after()
			w.clock.pass(time.Second)
			done = done && w.isSettled(i)
		}
		if done {
			return
		}
	}
	w.t.Fatalf("VMs %d to %d are never ready or gone; last events %v", first, last, (*w.reported)[max(0, len(*w.reported)-5):])
}

// isSettled reports whether a VirtualMachine is ready, or gone after its deletion.
func (w *world) isSettled(i int) bool {
	vm := &v1alpha1.VirtualMachine{}
	err := w.kube.Get(context.Background(), requestFor(i).NamespacedName, vm)
	return kerrors.IsNotFound(err) || err == nil && vm.DeletionTimestamp == nil && vm.GetCondition(xpv2.TypeReady).Status == "True"
}

func (w *world) deleteGroup(first, last int) {
	w.t.Helper()
	for i := first; i <= last; i++ {
		vm := &v1alpha1.VirtualMachine{}
		w.must(w.kube.Get(w.t.Context(), requestFor(i).NamespacedName, vm))
		w.must(w.kube.Delete(w.t.Context(), vm))
	}
}

func (w *world) cluster() *object.ClusterComputeResource {
	w.t.Helper()
	c, err := w.finder.ClusterComputeResource(w.t.Context(), "DC0_C0")
	w.must(err)
	return c
}

// rules returns the anti-affinity rules of the cluster, with the names of their VMs.
func (w *world) rules() map[string][]string {
	w.t.Helper()
	config, err := w.cluster().Configuration(w.t.Context())
	w.must(err)
	out := map[string][]string{}
	for _, r := range config.Rule {
		a := r.(*types.ClusterAntiAffinityRuleSpec)
		vms := []string{}
		for _, vm := range a.Vm {
			name, err := object.NewVirtualMachine(w.admin.Client, vm).ObjectName(w.t.Context())
			w.must(err)
			vms = append(vms, name)
		}
		slices.Sort(vms)
		out[a.Name] = append(vms, out[a.Name]...)
	}
	return out
}

func (w *world) wantRules(want map[string][]string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.rules()); d != "" {
		w.t.Errorf("rules (-want +got):\n%s", d)
	}
}

func members(first, last int) (out []string) {
	for i := first; i <= last; i++ {
		out = append(out, member(i))
	}
	slices.Sort(out)
	return out
}

func nothingAfter() {}

func TestVMsOfAGroupHaveOneRuleUntilTheLastIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.createGroup(1, 1)
	w.untilGroup(1, 1, nothingAfter)
	w.wantRules(map[string][]string{}) // A rule has two VMs at least.
	w.createGroup(2, 3)
	w.untilGroup(2, 3, nothingAfter)
	w.wantRules(map[string][]string{rule: members(1, 3)})
	w.deleteGroup(1, 1)
	w.untilGroup(1, 1, nothingAfter)
	w.wantRules(map[string][]string{rule: members(2, 3)})
	w.createGroup(4, 4)
	w.untilGroup(4, 4, nothingAfter)
	w.wantRules(map[string][]string{rule: members(2, 4)})
	w.deleteGroup(2, 4)
	w.untilGroup(2, 4, nothingAfter)
	w.wantRules(map[string][]string{})
}

func TestAVMWithoutAGroupCausesNoCallForOne(t *testing.T) {
	w := newWorld(t)
	w.create()
	w.untilReady()
	w.delete()
	w.untilGone()
	if n := w.called("ReconfigureComputeResource_Task"); n != 0 {
		t.Errorf("%d changes of rules", n)
	}
}

func TestARunningVMOfAGroupCostsOneCall(t *testing.T) {
	w := newWorld(t)
	w.create(inGroup)
	w.untilReady()
	w.change(pin)
	w.restart()
	w.reconcile()
	before := w.called("RetrievePropertiesEx")
	w.reconcile()
	if n := w.called("RetrievePropertiesEx") - before; n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

// The provider loses its memory after each reconcile.
func TestAGroupSurvivesRestartsAtAnyPoint(t *testing.T) {
	w := newWorld(t)
	w.createGroup(1, 3)
	w.untilGroup(1, 3, w.restart)
	w.wantRules(map[string][]string{rule: members(1, 3)})
	w.deleteGroup(1, 3)
	w.untilGroup(1, 3, w.restart)
	w.wantRules(map[string][]string{})
}

// intercept calls f before the simulator handles a change of rules.
func (w *world) intercept(f func(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) types.BaseMethodFault) {
	inner := w.model.Map().Handler
	w.model.Map().Handler = func(ctx *simulator.Context, m *simulator.Method) (mo.Reference, types.BaseMethodFault) {
		if req, ok := m.Body.(*types.ReconfigureComputeResource_Task); ok {
			if fault := f(ctx, req); fault != nil {
				return nil, fault
			}
		}
		return inner(ctx, m)
	}
}

// Another process changes the rule between the read and the write of the provider.
func TestALostUpdateOfARuleIsRestored(t *testing.T) {
	w := newWorld(t)
	other := w.vm("DC0_C0_RP0_VM1").Reference()
	w.must(setAttributes(t.Context(), w.admin.Client, other, map[string]string{attributeRule: "later"}))
	w.createGroup(1, 2)
	w.untilGroup(1, 2, nothingAfter)
	writes := 0
	w.intercept(func(ctx *simulator.Context, _ *types.ReconfigureComputeResource_Task) types.BaseMethodFault {
		if writes++; writes > 1 {
			return nil
		}
		vm := ctx.Map.Get(other).(*simulator.VirtualMachine)
		ctx.WithLock(vm, func() { vm.CustomValue[0].(*types.CustomFieldStringValue).Value = rule })
		cluster := ctx.Map.Get(w.cluster().Reference()).(*simulator.ClusterComputeResource)
		ctx.WithLock(cluster, func() {
			r := *cluster.ConfigurationEx.(*types.ClusterConfigInfoEx).Rule[0].(*types.ClusterAntiAffinityRuleSpec)
			r.Vm = append(slices.Clone(r.Vm), other)
			cluster.ConfigurationEx.(*types.ClusterConfigInfoEx).Rule[0] = &r
		})
		return nil
	})
	w.createGroup(3, 3)
	w.untilGroup(3, 3, nothingAfter)
	w.wantRules(map[string][]string{rule: append([]string{"DC0_C0_RP0_VM1"}, members(1, 3)...)})
	if writes != 2 {
		t.Errorf("%d writes, want one that loses a VM, and one that restores it", writes)
	}
}

// The vCenter changes the rule, and its response is lost. The next read shows the change.
func TestALostResponseOfAChangeOfARuleIsFound(t *testing.T) {
	w := newWorld(t)
	lost := 0
	w.intercept(func(ctx *simulator.Context, req *types.ReconfigureComputeResource_Task) types.BaseMethodFault {
		if lost++; lost > 1 {
			return nil
		}
		cluster := ctx.Map.Get(req.This).(*simulator.ClusterComputeResource)
		cluster.ReconfigureComputeResourceTask(ctx, req)
		return &types.HostCommunication{}
	})
	w.createGroup(1, 2)
	w.untilGroup(1, 2, nothingAfter)
	w.wantRules(map[string][]string{rule: members(1, 2)})
	if lost != 1 {
		t.Errorf("%d writes, want 1", lost)
	}
}

func TestAGroupNeedsAClusterWithDRS(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*world)
		change func(*v1alpha1.VirtualMachineParameters)
		want   string
	}{
		"AHostInNoCluster": {
			func(*world) {},
			func(p *v1alpha1.VirtualMachineParameters) { p.Cluster = ptr.To("DC0_H0") },
			`invalid value "workers": "DC0_H0" is a host that is in no vSphere cluster`,
		},
		"AClusterWithoutDRS": {
			func(w *world) {
				w.done(w.cluster().Reconfigure(t.Context(), &types.ClusterConfigSpecEx{DrsConfig: &types.ClusterDrsConfigInfo{Enabled: ptr.To(false)}}, true))
			},
			func(*v1alpha1.VirtualMachineParameters) {},
			`invalid value "workers": DRS is disabled in the vSphere cluster of "DC0_C0"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(m *simulator.Model) { m.Host = 1 })
			tc.before(w)
			w.create(inGroup, tc.change)
			w.reconcile()
			wantCondition(t, w, xpv2.TypeSynced, "Synced=False", "InvalidRequest: forProvider.antiAffinityGroup: "+tc.want)
			if n := w.called("CloneVM_Task"); n != 0 {
				t.Errorf("%d clones", n)
			}
			w.delete()
			w.untilGone()
		})
	}
}

func TestAMissingRightForRulesIsNamedAndPreventsNoDeletion(t *testing.T) {
	w := newWorld(t)
	w.createGroup(2, 2)
	w.untilGroup(2, 2, nothingAfter)
	isDenied := true
	w.intercept(func(*simulator.Context, *types.ReconfigureComputeResource_Task) types.BaseMethodFault {
		if isDenied {
			return &types.NoPermission{PrivilegeId: "Host.Inventory.EditCluster"}
		}
		return nil
	})
	w.create(inGroup)
	w.until("refused", func(*v1alpha1.VirtualMachine) bool {
		return strings.Contains(w.says(xpv2.TypeSynced), "PermissionDenied")
	})
	wantCondition(t, w, xpv2.TypeSynced, `cannot change the rule "drover.ns.workers" of forProvider.antiAffinityGroup`, "needs the privilege Host.Inventory.EditCluster")
	if s := w.clone().Runtime.PowerState; s != off {
		t.Errorf("the VM is %s before it is in its rule", s)
	}
	isDenied = false
	w.clock.pass(time.Hour)
	w.untilReady()
	w.wantRules(map[string][]string{rule: members(1, 2)})
	isDenied = true
	w.deleteGroup(1, 2)
	w.untilGroup(1, 2, nothingAfter)
	if !w.isReported("AntiAffinityRuleKept") {
		t.Errorf("events %v", *w.reported)
	}
	w.wantRules(map[string][]string{rule: {}})
	// The next group with the name uses the rule, and removes it.
	isDenied = false
	w.createGroup(3, 4)
	w.untilGroup(3, 4, nothingAfter)
	w.wantRules(map[string][]string{rule: members(3, 4)})
	w.deleteGroup(3, 4)
	w.untilGroup(3, 4, nothingAfter)
	w.wantRules(map[string][]string{})
}

func TestAVMWhoseResourcePoolIsHiddenIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.create(inGroup)
	w.untilReady()
	x := &external{shared: &shared{record: w.reported}, note: &note{isLeaving: true}}
	if err := x.leave(t.Context(), w.admin.Client, w.get()); err != nil || !x.note.hasLeft || !w.isReported("AntiAffinityRuleKept") {
		t.Errorf("error %v, has left %t, events %v", err, x.note.hasLeft, *w.reported)
	}
}

func TestAChangeOfARuleThatFailsIsReportedWhenItFailsAgain(t *testing.T) {
	w := newWorld(t)
	failing := 1
	// The task fails: the simulator refuses to remove a rule that does not exist.
	w.intercept(func(_ *simulator.Context, req *types.ReconfigureComputeResource_Task) types.BaseMethodFault {
		if failing > 0 {
			failing--
			req.Spec.(*types.ClusterConfigSpecEx).RulesSpec = []types.ClusterRuleSpec{{
				ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: int32(999)},
			}}
		}
		return nil
	})
	w.createGroup(1, 2)
	w.untilGroup(1, 2, nothingAfter)
	w.wantRules(map[string][]string{rule: members(1, 2)})
	for _, e := range *w.reported {
		if e.Type == event.TypeWarning {
			t.Errorf("event %s: %s", e.Reason, e.Message)
		}
	}
	failing = 2
	w.createGroup(3, 3)
	w.untilGroup(3, 3, nothingAfter)
	w.wantRules(map[string][]string{rule: members(1, 3)})
	if !slices.ContainsFunc(*w.reported, func(e event.Event) bool {
		return strings.Contains(e.Message, `cannot change the rule "drover.ns.workers"`)
	}) {
		t.Errorf("events %v", *w.reported)
	}
}

// concurrently reconciles the VMs in processes of their own, each of which has a part of them.
func (w *world) concurrently(vms, processes int) {
	w.t.Helper()
	const workers = 5 // of each process
	var wg sync.WaitGroup
	for p := range processes {
		control := w.start(event.NewNopRecorder(), forgetful{})
		for worker := range workers {
			wg.Go(func() {
				for end := time.Now().Add(patience.Limit()); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					done := true
					for i := 1; i <= vms; i++ {
						if i%processes != p || i/processes%workers != worker || w.isSettled(i) {
							continue
						}
						done = false
						if _, err := control.reconciler.Reconcile(w.t.Context(), requestFor(i)); err != nil {
							w.t.Error(err)
						}
					}
					if done {
						return
					}
				}
				w.t.Error("the VMs are never ready or gone")
			})
		}
	}
	wg.Wait()
}

type forgetful struct{}

func (forgetful) After(client.Object, time.Duration) {}

// Fifty VMs join and leave at the same time, by two processes that overwrite each other's changes.
func TestFiftyVMsOfAGroupByTwoProcesses(t *testing.T) {
	const vms = 50
	w := newWorld(t)
	w.createGroup(1, vms)
	w.concurrently(vms, 2)
	w.wantRules(map[string][]string{rule: members(1, vms)})
	created := w.called("ReconfigureComputeResource_Task")
	t.Logf("%d changes of the rule for %d VMs", created, vms)
	if created > vms/2 {
		t.Errorf("%d changes of the rule for %d VMs: they are not batched", created, vms)
	}
	w.deleteGroup(1, vms)
	w.concurrently(vms, 2)
	w.wantRules(map[string][]string{})
	t.Logf("%d changes of the rule for their deletion", w.called("ReconfigureComputeResource_Task")-created)
}
