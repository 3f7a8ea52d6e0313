package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// The simulator stores the rules of DRS as it receives them. A vCenter validates them, as the reference of
// the vSphere Web Services API describes (ClusterComputeResource, ReconfigureComputeResource_Task,
// ClusterConfigSpecEx, ClusterRuleInfo). An edit identifies its rule by the key. The name of a rule is
// unique in its cluster. A rule has at least two VMs, and all of them are in the inventory. If a VM is
// deleted, the vCenter removes it from its rules and keeps the rules.

// checkRules refuses a change of rules that a vCenter refuses. It prepares the other changes for the
// simulator, which finds the rule to edit by its name.
func checkRules(ctx *simulator.Context, m *simulator.Method) types.BaseMethodFault {
	req, ok := m.Body.(*types.ReconfigureComputeResource_Task)
	if !ok {
		return nil
	}
	cluster, ok := ctx.Map.Get(m.This).(*simulator.ClusterComputeResource)
	spec, isCluster := req.Spec.(*types.ClusterConfigSpecEx)
	if !ok || !isCluster {
		return nil
	}
	rules := slices.Clone(rulesOf(ctx, cluster))
	for _, s := range spec.RulesSpec {
		if f := checkRule(ctx, rules, s); f != nil {
			return f
		}
	}
	return nil
}

func checkRule(ctx *simulator.Context, rules []types.BaseClusterRuleInfo, s types.ClusterRuleSpec) types.BaseMethodFault {
	if s.Operation == types.ArrayUpdateOperationRemove {
		return nil
	}
	info := s.Info.GetClusterRuleInfo()
	if s.Operation == types.ArrayUpdateOperationAdd && slices.ContainsFunc(rules, func(r types.BaseClusterRuleInfo) bool { return r.GetClusterRuleInfo().Name == info.Name }) {
		return &types.DuplicateName{Name: info.Name}
	}
	if s.Operation == types.ArrayUpdateOperationEdit {
		i := slices.IndexFunc(rules, func(r types.BaseClusterRuleInfo) bool { return r.GetClusterRuleInfo().Key == info.Key })
		if i < 0 {
			return &types.InvalidArgument{InvalidProperty: "rule.key"}
		}
		info.Name, info.RuleUuid = rules[i].GetClusterRuleInfo().Name, rules[i].GetClusterRuleInfo().RuleUuid
	}
	rule, ok := s.Info.(*types.ClusterAntiAffinityRuleSpec)
	if !ok {
		return nil
	}
	if len(rule.Vm) < 2 {
		return &types.InvalidArgument{InvalidProperty: "rule.vm"}
	}
	for _, vm := range rule.Vm {
		if ctx.Map.Get(vm) == nil {
			return &types.ManagedObjectNotFound{Obj: vm}
		}
	}
	return nil
}

func rulesOf(ctx *simulator.Context, cluster *simulator.ClusterComputeResource) (out []types.BaseClusterRuleInfo) {
	ctx.WithLock(cluster, func() {
		if config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx); ok {
			out = config.Rule
		}
	})
	return out
}

// KeepRules makes deleted VMs leave the anti-affinity rules of their clusters.
func KeepRules(r *simulator.Registry) { r.AddHandler(ruleKeeper{}) }

// A ruleKeeper is called by the simulator for each object of the inventory that changes.
type ruleKeeper struct{}

// Reference identifies the handler.
func (ruleKeeper) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "RuleKeeper", Value: "rule-keeper"}
}

// PutObject is called for a new object.
func (ruleKeeper) PutObject(*simulator.Context, mo.Reference) {}

// UpdateObject is called for an object that changes.
func (ruleKeeper) UpdateObject(*simulator.Context, mo.Reference, []types.PropertyChange) {}

// RemoveObject is called for an object that is deleted.
func (ruleKeeper) RemoveObject(ctx *simulator.Context, ref types.ManagedObjectReference) {
	if ref.Type != "VirtualMachine" {
		return
	}
	for _, o := range ctx.Map.All("ClusterComputeResource") {
		cluster, ok := o.(*simulator.ClusterComputeResource)
		if !ok {
			continue
		}
		ctx.WithLock(cluster, func() { dropVM(cluster, ref) })
	}
}

// dropVM replaces the rules instead of changing them: a client may still read the old ones.
func dropVM(cluster *simulator.ClusterComputeResource, vm types.ManagedObjectReference) {
	config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
	if !ok {
		return
	}
	rules := slices.Clone(config.Rule)
	for i, r := range rules {
		rule, ok := r.(*types.ClusterAntiAffinityRuleSpec)
		if !ok || !slices.Contains(rule.Vm, vm) {
			continue
		}
		without := *rule
		without.Vm = slices.DeleteFunc(slices.Clone(rule.Vm), func(other types.ManagedObjectReference) bool { return other == vm })
		rules[i] = &without
	}
	config.Rule = rules
}

// Rules of DRS in the cluster of the inventory: the names of their VMs, by the name of the rule.
func (v *VCenter) Rules() map[string][]string {
	ctx := v.context()
	out := map[string][]string{}
	for _, o := range v.registry().All("ClusterComputeResource") {
		cluster, ok := o.(*simulator.ClusterComputeResource)
		if !ok {
			continue
		}
		for _, r := range rulesOf(ctx, cluster) {
			rule, ok := r.(*types.ClusterAntiAffinityRuleSpec)
			if !ok {
				continue
			}
			out[rule.Name] = []string{}
			for _, ref := range rule.Vm {
				if vm, ok := v.registry().Get(ref).(*simulator.VirtualMachine); ok {
					out[rule.Name] = append(out[rule.Name], vm.Name)
				}
			}
		}
	}
	return out
}
