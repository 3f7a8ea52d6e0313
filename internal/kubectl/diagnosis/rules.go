package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/advice"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
)

// lateAfter is how long a Node may take to join after its VM runs, before that is a finding.
const lateAfter = 2 * time.Minute

// A rule selects a condition.
type rule struct {
	condition string
	status    metav1.ConditionStatus
	// reasons that are findings, nil for all, and reasons that are none.
	only, but []string
	// needsUser are the reasons that last until a user acts; "*" stands for all.
	needsUser []string
}

// setRules are those of NodePools, MachineDeployments and MachineSets, the cause before its effects.
var setRules = []rule{
	{condition: machinev1alpha1.ConditionValid, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionFrozen, status: metav1.ConditionTrue, but: []string{machinev1alpha1.ReasonDeploymentFrozen},
		needsUser: []string{machinev1alpha1.ReasonManualFreeze, machinev1alpha1.ReasonTargetUnreachable, machinev1alpha1.ReasonInjectedIdentityNotAllowed}},
	{condition: machinev1alpha1.ConditionFrozen, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonFreezeLabelInvalid}, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionRemediationAllowed, status: metav1.ConditionFalse},
	{condition: machinev1alpha1.ConditionReplicaFailure, status: metav1.ConditionTrue, but: []string{machinev1alpha1.ReasonMachineDeploymentFailing}},
	{condition: machinev1alpha1.ConditionCapacityExhausted, status: metav1.ConditionTrue},
	{condition: machinev1alpha1.ConditionSelectorExclusive, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionAnnotationsValid, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	// The other reasons are advice: nothing waits for them.
	{condition: machinev1alpha1.ConditionHealthValid, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonHealthProfileNotFound}, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionReconciling, status: metav1.ConditionTrue,
		only:      []string{machinev1alpha1.ReasonEvictionRefused, machinev1alpha1.ReasonDrainBlocked, machinev1alpha1.ReasonWaitingForHooks},
		needsUser: []string{machinev1alpha1.ReasonEvictionRefused}},
	{condition: machinev1alpha1.ConditionReconciling, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonNodePoolPaused}, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionStalled, status: metav1.ConditionTrue, but: []string{machinev1alpha1.ReasonMachineDeploymentStalled}, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionProgressing, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonProgressDeadlineExceeded}, needsUser: []string{"*"}},
	// Crossplane stops before the pipeline, for example for a Composition of another kind. The other conditions are then
	// those of the generation before.
	{condition: string(xpv2.TypeSynced), status: metav1.ConditionFalse},
}

// machineRules are those of Machines.
var machineRules = []rule{
	{condition: machinev1alpha1.ConditionValid, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionNodeIdentified, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionInfrastructureReady, status: metav1.ConditionFalse,
		but:       []string{machinev1alpha1.ReasonWaiting, machinev1alpha1.ReasonVMCreating},
		needsUser: []string{string(fn.ErrorInvalidRequest), string(fn.ErrorPermissionDenied), string(fn.ErrorProviderConfigNotFound)}},
	{condition: machinev1alpha1.ConditionNodeReady, status: metav1.ConditionFalse, but: []string{machinev1alpha1.ReasonNodeNotJoined, machinev1alpha1.ReasonNodeStarting},
		needsUser: []string{machinev1alpha1.ReasonUserDataRefused}},
	{condition: machinev1alpha1.ConditionNodeReady, status: metav1.ConditionUnknown},
	{condition: machinev1alpha1.ConditionNodeHealthy, status: metav1.ConditionFalse},
	{condition: machinev1alpha1.ConditionUserDataComplete, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionAnnotationsValid, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	// The other reasons are advice: nothing waits for them.
	{condition: machinev1alpha1.ConditionHealthValid, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonHealthProfileNotFound}, needsUser: []string{"*"}},
	{condition: machinev1alpha1.ConditionUpdated, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonUpdateFailed}, needsUser: []string{"*"}},
	// A reboot that failed is no cause: the conditions of the Node show what it leaves.
	{condition: machinev1alpha1.ConditionRebooted, status: metav1.ConditionFalse, but: []string{machinev1alpha1.ReasonRebootFailed}},
	{condition: string(xpv2.TypeSynced), status: metav1.ConditionFalse},
}

// explained are the conditions whose cause is that of a Failed Machine, or the reboot of one.
var explained = []string{machinev1alpha1.ConditionInfrastructureReady, machinev1alpha1.ConditionNodeReady, machinev1alpha1.ConditionNodeHealthy}

// vmRules are those of the VM resource.
var vmRules = []rule{
	{condition: string(xpv2.TypeSynced), status: metav1.ConditionFalse},
	{condition: machinev1alpha1.ConditionLastAsyncOperation, status: metav1.ConditionFalse},
}

// configRules are those of the configuration of the target cluster.
var configRules = []rule{
	{condition: clusterv1alpha1.ConditionReachable, status: metav1.ConditionFalse, needsUser: []string{"*"}},
	{condition: clusterv1alpha1.ConditionAuthorized, status: metav1.ConditionFalse, needsUser: []string{"*"}},
}

// apply rules to the conditions of an object.
func apply(rules []rule, subject view.Ref, conditions []metav1.Condition) []Finding {
	var out []Finding
	for _, r := range rules {
		c := view.Is(conditions, r.condition, r.status)
		if c == nil || r.only != nil && !slices.Contains(r.only, c.Reason) || slices.Contains(r.but, c.Reason) {
			continue
		}
		f := newFinding(subject, c)
		f.NeedsUser = slices.Contains(r.needsUser, c.Reason) || slices.Contains(r.needsUser, "*") || isMisconfigured(c.Message)
		f.Commands = commandsFor(c.Reason, subject)
		out = append(out, f)
	}
	return out
}

// isMisconfigured reports whether a drain waits for a PodDisruptionBudget that never allows the eviction.
func isMisconfigured(message string) bool { return strings.Contains(message, "misconfigured") }

// commandsFor returns the commands that show or carry out the advice of a reason.
func commandsFor(reason string, s view.Ref) []string {
	switch reason {
	case machinev1alpha1.ReasonManualFreeze:
		return []string{fmt.Sprintf("kubectl drover freeze %s -n %s --undo", s, s.Namespace)}
	case machinev1alpha1.ReasonProgressDeadlineExceeded:
		return []string{fmt.Sprintf("kubectl drover rollout undo %s -n %s", s, s.Namespace)}
	}
	return nil
}

// ofConfig returns why a target cluster cannot be used.
func ofConfig(c *view.Config) []Finding {
	if c == nil {
		return nil
	}
	ref := view.Ref{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
	if c.Missing {
		a := advice.For(view.MachineDeployment, machinev1alpha1.ReasonClusterNotFound)
		return []Finding{{
			Subjects: []view.Ref{ref}, Reason: machinev1alpha1.ReasonClusterNotFound, Cause: fmt.Sprintf("there is no %s %q", c.Kind, c.Name),
			Meaning: a.Meaning, Do: a.Do, NeedsUser: true,
		}}
	}
	return apply(configRules, ref, c.Conditions)
}

// ofMachine returns the findings of a Machine and its VM.
func ofMachine(v *view.View, m *machinev1alpha1.Machine, now time.Time) []Finding {
	ref := view.Ref{Kind: view.Machine, Namespace: m.Namespace, Name: m.Name}
	if !m.DeletionTimestamp.IsZero() {
		return slices.Concat(ofDeletion(m, ref, now), passedOver(m, ref), failedBefore(m, ref))
	}
	var out []Finding
	failure, failed := ofFailure(v, m, ref)
	if failed {
		out = append(out, failure)
	}
	stuck := plan.StuckBy(m)
	for _, f := range apply(machineRules, ref, m.Status.Conditions) {
		if (failed || m.Status.Reboot.IsInProgress()) && slices.Contains(explained, f.Condition) {
			continue
		}
		// From the same time on, its MachineSet is Stalled by it.
		f.NeedsUser = f.NeedsUser || stuck != nil && stuck.Condition.Type == f.Condition && stuck.Left(now) <= 0
		out = append(out, f)
	}
	out = oneOfNode(out)
	if f, ok := late(m, ref, now); ok && !failed {
		out = append(out, f)
	}
	// The error of the VM is that of InfrastructureReady, which has its error code and its remedy too.
	reported := slices.ContainsFunc(out, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionInfrastructureReady })
	if vm := v.VMOf(m); vm != nil && !vm.Missing && !reported {
		out = append(out, ofVM(vm)...)
	}
	return out
}

// oneOfNode makes one finding of a Node that is not Ready, and that is unhealthy for that reason: it is one cause, with one
// cure and the time at which the Machine is Failed.
func oneOfNode(all []Finding) []Finding {
	ready := slices.IndexFunc(all, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionNodeReady })
	healthy := slices.IndexFunc(all, func(f Finding) bool {
		return f.Condition == machinev1alpha1.ConditionNodeHealthy && strings.HasPrefix(f.Cause, "Node condition Ready ")
	})
	if ready < 0 || healthy < 0 {
		return all
	}
	f := all[ready]
	f.Cause = f.Cause + "; " + all[healthy].Cause
	f.Do, f.NeedsUser = sentences(f.Do, all[healthy].Do), f.NeedsUser || all[healthy].NeedsUser
	all[ready] = f
	return slices.Delete(all, healthy, healthy+1)
}

// ofVM returns the findings of the VM resource.
func ofVM(vm *view.Resource) []Finding {
	return apply(vmRules, view.Ref{Kind: vm.Kind, Namespace: vm.Namespace, Name: vm.Name}, vm.Conditions)
}
