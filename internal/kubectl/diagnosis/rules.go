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
	{condition: machinev1alpha1.ConditionReconciling, status: metav1.ConditionTrue,
		only: []string{machinev1alpha1.ReasonDrainBlocked, machinev1alpha1.ReasonWaitingForHooks}},
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
	{condition: machinev1alpha1.ConditionUpdated, status: metav1.ConditionFalse, only: []string{machinev1alpha1.ReasonUpdateFailed}, needsUser: []string{"*"}},
	{condition: string(xpv2.TypeSynced), status: metav1.ConditionFalse},
}

// explainedByFailure are the conditions whose cause is that of a Failed Machine.
var explainedByFailure = []string{machinev1alpha1.ConditionInfrastructureReady, machinev1alpha1.ConditionNodeReady, machinev1alpha1.ConditionNodeHealthy}

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
		return ofDeletion(m, ref, now)
	}
	var out []Finding
	rules := machineRules
	if f, ok := ofFailure(v, m, ref); ok {
		out = append(out, f)
		// The failure has the cause of these conditions.
		rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return slices.Contains(explainedByFailure, r.condition) })
	}
	for _, f := range apply(rules, ref, m.Status.Conditions) {
		f.NeedsUser = f.NeedsUser || f.Reason == machinev1alpha1.ReasonProviderIDEmpty && now.Sub(f.Since.Time) >= lateAfter
		out = append(out, f)
	}
	if f, ok := late(m, ref, now); ok {
		out = append(out, f)
	}
	// The error of the VM is that of InfrastructureReady, which has its error code and its remedy too.
	reported := slices.ContainsFunc(out, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionInfrastructureReady })
	if vm := v.VMOf(m); vm != nil && !vm.Missing && !reported {
		out = append(out, ofVM(vm)...)
	}
	return out
}

// ofVM returns the findings of the VM resource.
func ofVM(vm *view.Resource) []Finding {
	return apply(vmRules, view.Ref{Kind: vm.Kind, Namespace: vm.Namespace, Name: vm.Name}, vm.Conditions)
}

// setReplaces is the end of the advice for a Failed Machine. It is not true while something holds the set back.
const setReplaces = "The set replaces the Machine."

// toKeep is advice for a Failed Machine that is not kept yet.
const toKeep = "To keep a VM for analysis, run kubectl drover preserve."

// ofFailure returns the finding of a Failed Machine. Its set replaces it: only a Machine that is preserved, or
// that no set controls, needs a user.
func ofFailure(v *view.View, m *machinev1alpha1.Machine, ref view.Ref) (Finding, bool) {
	if m.Status.Phase != machinev1alpha1.MachineFailed {
		return Finding{}, false
	}
	reason := string(m.Status.FailureReason)
	a := advice.ForFailure(reason)
	f := Finding{Subjects: []view.Ref{ref}, Reason: reason, Cause: m.Status.Failure(), Meaning: a.Meaning, Do: a.Do}
	preserved := view.Is(m.Status.Conditions, machinev1alpha1.ConditionPreserved, metav1.ConditionTrue)
	by := metav1.GetControllerOf(m)
	switch held := heldBy(v, m); {
	case preserved != nil:
		f.Do = strings.TrimSpace(strings.NewReplacer(setReplaces, "", toKeep, "").Replace(f.Do)) + " The Machine is kept for analysis; to have it replaced, undo that."
	case by == nil:
		f.Do = strings.Replace(f.Do, setReplaces, "Delete the Machine: no set controls it, and nothing replaces it.", 1)
	case held != "":
		f.Do = strings.Replace(f.Do, setReplaces, "The replacement waits: "+held+".", 1)
	}
	if preserved != nil {
		f.Commands = []string{fmt.Sprintf("kubectl drover preserve %s -n %s --undo", ref, ref.Namespace)}
		if p := m.Status.Preservation; p != nil {
			f.Until = &p.Until
		}
	}
	f.NeedsUser = preserved != nil || by == nil
	return f, true
}

// heldBy returns the reason why the set of a Machine replaces none, "" if it does.
func heldBy(v *view.View, m *machinev1alpha1.Machine) string {
	by := metav1.GetControllerOf(m)
	if by == nil {
		return ""
	}
	s := v.Set(m.Namespace, by.Name)
	if s == nil {
		return ""
	}
	for _, held := range []*metav1.Condition{
		view.Is(s.Status.Conditions, machinev1alpha1.ConditionFrozen, metav1.ConditionTrue),
		view.Is(s.Status.Conditions, machinev1alpha1.ConditionRemediationAllowed, metav1.ConditionFalse),
	} {
		if held != nil {
			return held.Reason
		}
	}
	return ""
}

// ofSet returns the findings of a MachineSet.
func ofSet(v *view.View, s *machinev1alpha1.MachineSet) []Finding {
	out := apply(setRules, refOf(view.MachineSet, s), s.Status.Conditions)
	for i := range out {
		if f := &out[i]; f.Reason == machinev1alpha1.ReasonWaitingForMachines {
			waitsForStarting(f, v.MachinesOf(s))
		}
	}
	if e := s.Status.Exhausted; e != nil && e.Until != nil {
		return withoutExhaustion(out)
	}
	return out
}

// waitsForStarting adds until when the next Machine is replaced at most, and the command that ends the wait, to a finding.
func waitsForStarting(f *Finding, machines []*machinev1alpha1.Machine) {
	for _, m := range machines {
		if !m.Status.Phase.IsOnItsWay() || !m.DeletionTimestamp.IsZero() {
			continue
		}
		since := m.CreationTimestamp.Time
		if at := m.Status.RefusedUntil; at != nil && at.After(since) {
			since = at.Time
		}
		until := metav1.NewTime(since.Add(plan.CreationTimeout(m)))
		if f.Until == nil || until.Before(f.Until) {
			f.Until, f.Commands = &until, []string{fmt.Sprintf("kubectl delete %s -n %s", refOf(view.Machine, m), m.Namespace)}
		}
	}
}

// withoutExhaustion removes that the cloud had no room: no Machine waits for room any more.
func withoutExhaustion(all []Finding) []Finding {
	return slices.DeleteFunc(all, func(f Finding) bool { return f.Condition == machinev1alpha1.ConditionCapacityExhausted })
}

// isOver reports whether no Machine waits for room in any of the exhausted failure domains.
func isOver(exhausted []machinev1alpha1.Exhaustion) bool {
	return len(exhausted) > 0 && !slices.ContainsFunc(exhausted, func(e machinev1alpha1.Exhaustion) bool { return e.Until == nil })
}

// late returns a finding if the VM of a Machine has been running for long, and its Node has not joined.
func late(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) (Finding, bool) {
	c := view.Is(m.Status.Conditions, machinev1alpha1.ConditionNodeReady, metav1.ConditionFalse)
	running := m.Status.Join.At(machinev1alpha1.JoinVMRunning)
	if c == nil || m.Status.Phase == machinev1alpha1.MachineFailed || c.Reason != machinev1alpha1.ReasonNodeNotJoined || running == nil || now.Sub(running.Time) < lateAfter {
		return Finding{}, false
	}
	f := newFinding(ref, c)
	f.Do = cureOfMilestone(m)
	f.Commands = []string{fmt.Sprintf("kubectl drover why %s -n %s", ref, ref.Namespace)}
	return f, true
}

// cureOfMilestone returns where to look, by the last milestone that the VM passed: see docs/health.md.
func cureOfMilestone(m *machinev1alpha1.Machine) string {
	switch j := m.Status.Join; {
	case j.At(machinev1alpha1.JoinNodeRegistered) != nil:
		return "A Node of the name is there, and is not proven to be the Machine's: read the condition NodeIdentified."
	case j.At(machinev1alpha1.JoinCertificateApproved) != nil:
		return "The certificate of the kubelet is approved, and no Node was registered: read the log of the kubelet."
	case j.At(machinev1alpha1.JoinCertificateRequested) != nil:
		return "The certificate request of the kubelet is not approved: run kubectl get csr in the target cluster."
	}
	return "No kubelet has used the join token: read the console of the VM. The image, the user data, the mirror and the way to the API server are the usual causes."
}

// stagesOfDeletion are the stages that a user can shorten, with the reason that has the advice.
var stagesOfDeletion = map[machinev1alpha1.DeletionStage]string{
	machinev1alpha1.DeletionHeld:              machinev1alpha1.ReasonDeletionHeld,
	machinev1alpha1.DeletionPreDrainHooks:     machinev1alpha1.ReasonWaitingForHooks,
	machinev1alpha1.DeletionPreTerminateHooks: machinev1alpha1.ReasonWaitingForHooks,
	machinev1alpha1.DeletionDraining:          machinev1alpha1.ReasonDrainBlocked,
	machinev1alpha1.DeletionPaused:            machinev1alpha1.ReasonDeletionPaused,
}

// slowAfter is how long the cloud may take to delete something before that is a finding.
const slowAfter = 10 * time.Minute

// annotationPaused is Crossplane's own annotation.
const annotationPaused = "crossplane.io/paused"

// ofDeletion returns the finding that blocks the deletion of a Machine.
func ofDeletion(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) []Finding {
	d := m.Status.Deletion
	if d == nil {
		return nil
	}
	if m.Annotations[annotationPaused] == "true" {
		return []Finding{pausedDeletion(m, ref)}
	}
	if f, ok := ofCloud(m, ref, now); ok {
		return []Finding{f}
	}
	reason, ok := stagesOfDeletion[d.Stage]
	if !ok || d.Stage == machinev1alpha1.DeletionPaused || d.Stage == machinev1alpha1.DeletionDraining && len(d.Pods) == 0 {
		return nil
	}
	a := advice.For(view.MachineSet, reason)
	f := Finding{Subjects: []view.Ref{ref}, Reason: reason, Meaning: a.Meaning, Do: a.Do, Since: d.Since}
	switch d.Stage {
	case machinev1alpha1.DeletionHeld:
		f.Cause, f.NeedsUser = "the MachineSet that controlled the Machine does not exist; nothing is drained or deleted", true
		f.Commands = []string{fmt.Sprintf("kubectl annotate %s -n %s %s=true", ref, ref.Namespace, machinev1alpha1.AnnotationConfirmDeletion)}
	case machinev1alpha1.DeletionDraining:
		f.Cause, f.Until = podsOf(d.Pods), drainEnd(m)
		f.Do = fmt.Sprintf("Correct the PodDisruptionBudget or move the pods. To delete the pods without regard to budgets, set the annotation %s=true on the Machine.", machinev1alpha1.AnnotationForceDrain)
		f.NeedsUser = isMisconfigured(f.Cause)
		f.Commands = []string{fmt.Sprintf("kubectl drover drain %s -n %s --force", ref, ref.Namespace)}
	default:
		f.Cause = "hooks: " + strings.Join(d.Hooks, ", ")
	}
	return []Finding{f}
}

// pausedDeletion returns the finding of a deletion that an annotation holds, at any stage.
func pausedDeletion(m *machinev1alpha1.Machine, ref view.Ref) Finding {
	a := advice.For(view.MachineSet, machinev1alpha1.ReasonDeletionPaused)
	return Finding{
		Subjects: []view.Ref{ref}, Reason: machinev1alpha1.ReasonDeletionPaused, Meaning: a.Meaning, Do: a.Do, Since: m.Status.Deletion.Since, NeedsUser: true,
		Cause:    fmt.Sprintf("the annotation %s holds the deletion", annotationPaused),
		Commands: []string{fmt.Sprintf("kubectl annotate %s -n %s %s-", ref, ref.Namespace, annotationPaused)},
	}
}

// ofCloud returns the finding of a deletion that waits for finalizers of other controllers, or for a provider that
// reports an error or takes long.
func ofCloud(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) (Finding, bool) {
	d, cause := m.Status.Deletion, ""
	if op := m.Status.LastOperation; op != nil {
		cause = op.Description
	}
	f := Finding{Subjects: []view.Ref{ref}, Cause: cause, Since: d.Since}
	isOfProvider := d.Stage == machinev1alpha1.DeletionDeletingDependents || d.Stage == machinev1alpha1.DeletionDeletingVM || d.Stage == machinev1alpha1.DeletionDeletingCompanions
	_, missing := plan.MissingConfig(cause)
	switch isSlow := now.Sub(d.Since.Time) >= slowAfter; {
	case len(d.Finalizers) > 0:
		f.Reason, f.NeedsUser = machinev1alpha1.ReasonWaitingForFinalizers, d.Stage != machinev1alpha1.DeletionDeletingNode
	case isOfProvider && missing != "":
		f.Reason, f.NeedsUser = string(fn.ErrorProviderConfigNotFound), true
	case isOfProvider && (isSlow || strings.Contains(cause, "its provider reports: ")):
		f.Reason, f.NeedsUser = machinev1alpha1.ReasonVMNotDeleted, isSlow
	default:
		return f, false
	}
	a := advice.For(view.MachineSet, f.Reason)
	f.Meaning, f.Do = a.Meaning, a.Do
	if isOfProvider {
		f.Do += fmt.Sprintf(" If nothing of it exists at the cloud, set the annotation %s=true on the Machine.", machinev1alpha1.AnnotationForceDelete)
		f.Commands = []string{fmt.Sprintf("kubectl get managed -n %s", ref.Namespace)}
	}
	return f, true
}

// podsOf a blocked drain, each with its reason.
func podsOf(pods []machinev1alpha1.DrainedPod) string {
	texts := make([]string, 0, len(pods))
	for _, p := range pods {
		texts = append(texts, fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, p.Reason))
	}
	return strings.Join(texts, "; ")
}

// drainEnd is when a drain is forced, nil if that is not known.
func drainEnd(m *machinev1alpha1.Machine) *metav1.Time {
	d := m.Status.Drain
	if d == nil || m.Spec.Drain.Timeout.Duration == 0 {
		return nil
	}
	end := metav1.NewTime(d.StartTime.Add(m.Spec.Drain.Timeout.Duration))
	return &end
}
