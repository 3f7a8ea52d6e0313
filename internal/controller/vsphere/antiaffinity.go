package vsphere

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/native"
)

// Anti-affinity of VMs is a rule of DRS in the configuration of their vSphere cluster. A change of
// a rule replaces all of its VMs, and a vCenter does not detect that another client changed the rule
// in the meantime. Three properties make this safe for any number of VMs and processes:
//
//   - The group is recorded at the VMs: a custom attribute names the rule of each one. It is set
//     before the rule is read, so of two VMs that join at the same time at least one sees the other.
//   - The rule is computed from the attributes of all VMs in the cluster, never from the change alone.
//   - A VM has joined or left if the rule was read, after the last write of this process, with all VMs
//     that it must have. So a process that overwrites the change of another one restores it itself.

const (
	// attributeRule is the custom attribute with the name of the VM's rule.
	attributeRule = "drover-anti-affinity-rule"
	// leaving precedes the name of the rule at a VM that is being deleted.
	leaving = "leaving "
	// maxRuleName is the maximum length of a name in a vCenter.
	maxRuleName = 80
	// minRuleVMs is the minimum number of VMs of a rule. A vCenter refuses a rule with fewer.
	minRuleVMs = 2
)

// ruleOf returns the name of the VM's anti-affinity rule, empty if it has none. Namespaces and groups
// have no dots, so no two groups have the same name.
func ruleOf(vm *v1alpha1.VirtualMachine) string {
	group := text(vm.Spec.ForProvider.AntiAffinityGroup)
	if group == "" {
		return ""
	}
	name := "drover." + vm.GetNamespace() + "." + group
	if len(name) <= maxRuleName {
		return name
	}
	hash := sha256.Sum256([]byte(name))
	suffix := "." + hex.EncodeToString(hash[:8])
	return name[:maxRuleName-len(suffix)] + suffix
}

// A clusterView has the anti-affinity rules of a vSphere cluster, and the VMs that belong to them.
type clusterView struct {
	rules []types.BaseClusterRuleInfo
	// named has the values of attributeRule by VM.
	named map[types.ManagedObjectReference]string
}

// ruleChanges returns the changes after which the rule has all VMs of its group, none if it has. A
// group of one VM needs no rule, and keeps the one that it has. The rule is removed with its last VM.
func ruleChanges(v clusterView, name string) ([]types.ClusterRuleSpec, error) {
	var rules []*types.ClusterAntiAffinityRuleSpec
	for _, r := range v.rules {
		if r.GetClusterRuleInfo().Name != name {
			continue
		}
		rule, ok := r.(*types.ClusterAntiAffinityRuleSpec)
		if !ok {
			return nil, native.Invalid("antiAffinityGroup", "the vSphere cluster has a rule %q of another type, %T", name, r)
		}
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b *types.ClusterAntiAffinityRuleSpec) int { return cmp.Compare(a.Key, b.Key) })
	var members []types.ManagedObjectReference
	for vm, rule := range v.named {
		if rule == name {
			members = append(members, vm)
		}
	}
	slices.SortFunc(members, func(a, b types.ManagedObjectReference) int { return cmp.Compare(a.Value, b.Value) })
	switch {
	case len(members) == 0:
		return removedRules(v, name, rules), nil
	case len(members) < minRuleVMs || slices.ContainsFunc(rules, func(r *types.ClusterAntiAffinityRuleSpec) bool { return hasAll(r.Vm, members) }):
		return nil, nil
	case len(rules) == 0:
		return []types.ClusterRuleSpec{{
			ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
			Info: &types.ClusterAntiAffinityRuleSpec{
				ClusterRuleInfo: types.ClusterRuleInfo{Name: name, Enabled: ptr.To(true), Mandatory: ptr.To(false), UserCreated: ptr.To(true)},
				Vm:              members,
			},
		}}, nil
	}
	rule := *rules[0]
	rule.Vm = slices.Clone(rule.Vm)
	for _, vm := range members {
		if !slices.Contains(rule.Vm, vm) {
			rule.Vm = append(rule.Vm, vm)
		}
	}
	return []types.ClusterRuleSpec{{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit}, Info: &rule}}, nil
}

// removedRules returns the removal of the rules that have only VMs that are being deleted. A rule with
// another VM stays: an administrator added that VM, or this account may not see its attributes.
func removedRules(v clusterView, name string, rules []*types.ClusterAntiAffinityRuleSpec) []types.ClusterRuleSpec {
	var out []types.ClusterRuleSpec
	for _, r := range rules {
		isKept := slices.ContainsFunc(r.Vm, func(vm types.ManagedObjectReference) bool { return v.named[vm] != leaving+name })
		if !isKept {
			out = append(out, types.ClusterRuleSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: r.Key}})
		}
	}
	return out
}

func hasAll(vms, wanted []types.ManagedObjectReference) bool {
	return !slices.ContainsFunc(wanted, func(vm types.ManagedObjectReference) bool { return !slices.Contains(vms, vm) })
}

// readCluster reads the rules of a vSphere cluster and the attributes of its VMs, by one call.
func readCluster(ctx context.Context, c *vim25.Client, cluster types.ManagedObjectReference) (clusterView, error) {
	const pools, vms = "pools", "vms"
	below := []types.BaseSelectionSpec{&types.SelectionSpec{Name: pools}, &types.SelectionSpec{Name: vms}}
	res, err := property.DefaultCollector(c).RetrieveProperties(ctx, types.RetrieveProperties{SpecSet: []types.PropertyFilterSpec{{
		ObjectSet: []types.ObjectSpec{
			{Obj: *c.ServiceContent.CustomFieldsManager},
			{Obj: cluster, SelectSet: []types.BaseSelectionSpec{
				&types.TraversalSpec{Type: "ComputeResource", Path: "resourcePool", SelectSet: below},
				&types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: pools}, Type: "ResourcePool", Path: "resourcePool", SelectSet: below},
				&types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: vms}, Type: "ResourcePool", Path: "vm"},
			}},
		},
		PropSet: []types.PropertySpec{
			{Type: "CustomFieldsManager", PathSet: []string{"field"}},
			{Type: clusterType, PathSet: []string{"configurationEx"}},
			{Type: vmType, PathSet: []string{"customValue"}},
		},
	}}})
	if err != nil {
		return clusterView{}, err
	}
	return viewOf(res.Returnval)
}

func viewOf(objects []types.ObjectContent) (clusterView, error) {
	var fields object.CustomFieldDefList
	values := map[types.ManagedObjectReference][]types.BaseCustomFieldValue{}
	out := clusterView{named: map[types.ManagedObjectReference]string{}}
	isRead := false
	for _, o := range objects {
		// A VM that is deleted during the read has no properties.
		if o.Obj.Type == vmType && len(o.MissingSet) > 0 {
			continue
		}
		loaded, err := mo.ObjectContentToType(o)
		if err != nil {
			return clusterView{}, err
		}
		switch o := loaded.(type) {
		case mo.CustomFieldsManager:
			fields = o.Field
		case mo.VirtualMachine:
			values[o.Self] = o.CustomValue
		case mo.ClusterComputeResource:
			if config, ok := o.ConfigurationEx.(*types.ClusterConfigInfoEx); ok {
				out.rules, isRead = config.Rule, true
			}
		}
	}
	// Without this check a missing configuration looks like a cluster without rules.
	if !isRead {
		return clusterView{}, errors.New("the vCenter does not return the configuration of the vSphere cluster")
	}
	for vm, v := range values {
		if rule := attributesOf(fields, v)[attributeRule]; rule != "" {
			out.named[vm] = rule
		}
	}
	return out, nil
}

// clusterType is the object type of vSphere clusters. A host that is in none is a ComputeResource.
const clusterType = "ClusterComputeResource"

// ownerOf returns the vSphere cluster or host of a resource pool.
func ownerOf(ctx context.Context, c *vim25.Client, pool types.ManagedObjectReference) (types.ManagedObjectReference, error) {
	var p mo.ResourcePool
	err := property.DefaultCollector(c).RetrieveOne(ctx, pool, []string{"owner"}, &p)
	return p.Owner, err
}

// checkDRS returns an error if the resource pool of a VM with an anti-affinity group is not in a
// cluster with DRS.
func (out *places) checkDRS(ctx context.Context, c *vim25.Client, p v1alpha1.VirtualMachineParameters) error {
	if p.AntiAffinityGroup == nil {
		return nil
	}
	const what = "cannot read the vSphere cluster of forProvider.antiAffinityGroup"
	place := cmp.Or(text(p.Cluster), text(p.ResourcePool))
	owner, err := ownerOf(ctx, c, out.pool.Reference())
	if err != nil {
		return classify(what, err)
	}
	if owner.Type != clusterType {
		return native.Invalid("antiAffinityGroup", "invalid value %q: %q is a host that is in no vSphere cluster; only a cluster with DRS has anti-affinity rules", *p.AntiAffinityGroup, place)
	}
	config, err := object.NewClusterComputeResource(c, owner).Configuration(ctx)
	if err != nil {
		return classify(what, err)
	}
	if !ptr.Deref(config.DrsConfig.Enabled, false) {
		return native.Invalid("antiAffinityGroup", "invalid value %q: DRS is disabled in the vSphere cluster of %q; only a cluster with DRS applies anti-affinity rules", *p.AntiAffinityGroup, place)
	}
	return nil
}

// join brings the VM into its anti-affinity rule, which may take several reconciles.
func (x *external) join(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine) error {
	isSettled, err := x.settleRule(ctx, c, ruleOf(vm))
	x.note.hasJoined = isSettled
	return err
}

// leave removes the anti-affinity rule of the VM if the VM is the last one in it. The vCenter itself
// removes a deleted VM from a rule. If the vCenter refuses the change, the rule stays: it must not
// prevent the deletion of the VM.
func (x *external) leave(ctx context.Context, c *vim25.Client, vm *v1alpha1.VirtualMachine) error {
	rule := ruleOf(vm)
	var err error
	if !x.note.isLeaving {
		err = setAttributes(ctx, c, *x.vm, map[string]string{attributeRule: leaving + rule})
		x.note.isLeaving = err == nil
	}
	if err == nil {
		x.note.hasLeft, err = x.settleRule(ctx, c, rule)
	}
	if class := classOf(err); err != nil && (class == fn.ErrorPermissionDenied || class == fn.ErrorInvalidRequest) {
		x.record.Event(vm, event.Warning(machinev1alpha1.EventAntiAffinityRuleKept, fmt.Errorf("the anti-affinity rule %q may stay without VMs: %w", rule, err)))
		x.note.hasLeft, err = true, nil
	}
	return err
}

// settleRule reports whether the rule is as it must be, and changes it if not.
func (x *external) settleRule(ctx context.Context, c *vim25.Client, rule string) (bool, error) {
	if x.pool == nil {
		return false, &native.Error{
			Class: fn.ErrorPermissionDenied, What: fmt.Sprintf("cannot change the rule %q of forProvider.antiAffinityGroup", rule),
			Err: errors.New("the vCenter does not show the resource pool of the VM"),
		}
	}
	owner, err := ownerOf(ctx, c, *x.pool)
	if err != nil {
		return false, classify("cannot read the resource pool of the VM", err)
	}
	if owner.Type != clusterType {
		return false, native.Invalid("antiAffinityGroup", "the VM is on a host that is in no vSphere cluster")
	}
	isSettled, err := x.vcenter.rulesOf(owner).settle(ctx, c, rule, x.now)
	return isSettled, classify(fmt.Sprintf("cannot change the rule %q of forProvider.antiAffinityGroup", rule), err)
}
