package machine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/nodekeys"
	"github.com/drover-dev/drover/internal/pipeline"
	"github.com/drover-dev/drover/internal/plan"
)

// report writes the status that the pipeline decided on, if it changed, and then records the events of the
// pipeline. Events follow an accepted status, so that a decision by a stale view is never announced.
func (r *Reconciler) report(ctx context.Context, f *facts, d decision) (written bool, err error) {
	m := f.machine
	status, err := statusOf(d)
	if err != nil {
		return false, err
	}
	status.CompositionRevision = f.revision
	// The pipeline saw the Machine before its providerID was recorded, and nothing else can
	// have changed the spec since.
	status.ObservedGeneration = m.GetGeneration()
	if status.ResourceRefs, err = references(f, d); err != nil {
		return false, err
	}
	status.AppliedToNode = f.applied(d)
	status.UserData, status.Identity = f.ownUserData(), m.Status.Identity
	status.Conditions = slices.Clone(m.Status.Conditions)
	setConditions(&status, m.GetGeneration(), append(conditionsOf(d.Conditions), conditionOf(readyWhen(d)))...)
	own := append(identifiedCondition(f), userDataCondition(f)...)
	setConditions(&status, m.GetGeneration(), own...)
	news := newsOf(m.Status.Conditions, own)
	// After a failed launch, Synced stays False until a launch succeeds: otherwise each retry would write it
	// twice.
	isLaunched := true
	if hasFailed(m) {
		if isLaunched, err = f.isLaunched(d); err != nil {
			return false, err
		}
	}
	if isLaunched {
		setConditions(&status, m.GetGeneration(), conditionOf(xpv2.ReconcileSuccess()))
	}
	f.joinDue = nodekeeper.SettleJoin(r.now(), m.Status, &status)
	if written, err = r.writeStatus(ctx, m, status); err != nil {
		return false, err
	}
	r.recordResults(m, d.Results)
	for _, c := range news {
		r.record.Event(m, event.Event{Type: event.TypeWarning, Reason: event.Reason(c.Reason), Message: c.Message})
	}
	return written, nil
}

// hasFailed reports whether the status has an error of an earlier reconcile.
func hasFailed(m *machinev1alpha1.Machine) bool {
	c := meta.FindStatusCondition(m.Status.Conditions, string(xpv2.TypeSynced))
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == string(xpv2.ReasonReconcileError)
}

// recovered removes the error from the status after a successful launch.
func (r *Reconciler) recovered(ctx context.Context, m *machinev1alpha1.Machine) error {
	if !hasFailed(m) {
		return nil
	}
	status := *m.Status.DeepCopy()
	setConditions(&status, m.GetGeneration(), conditionOf(xpv2.ReconcileSuccess()))
	_, err := r.writeStatus(ctx, m, status)
	return err
}

// statusOf decodes the status of a decision.
func statusOf(d decision) (machinev1alpha1.MachineStatus, error) {
	status := machinev1alpha1.MachineStatus{}
	raw := d.Desired.GetComposite().GetResource().GetFields()["status"]
	if raw == nil {
		return status, nil
	}
	b, err := raw.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(b, &status)
	}
	if err != nil {
		return status, fmt.Errorf("cannot decode the status that the pipeline desires: %w", err)
	}
	return status, nil
}

// maxReferences is the limit of the schema of a Machine's status.
const maxReferences = 64

// references returns references to the resources that the pipeline desires, and to those that exist.
func references(f *facts, d decision) ([]machinev1alpha1.ComposedReference, error) {
	byRole := map[string]machinev1alpha1.ComposedReference{}
	for role, obj := range f.observed {
		byRole[role] = machinev1alpha1.ComposedReference{Role: role, APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Name: obj.GetName()}
	}
	for role, res := range d.Desired.GetResources() {
		want, err := compose(f.machine, role, res)
		if err != nil {
			return nil, err
		}
		byRole[role] = machinev1alpha1.ComposedReference{Role: role, APIVersion: want.GetAPIVersion(), Kind: want.GetKind(), Name: want.GetName()}
	}
	if len(byRole) > maxReferences {
		return nil, fmt.Errorf("the pipeline composes %d resources: must be at most %d", len(byRole), maxReferences)
	}
	var out []machinev1alpha1.ComposedReference
	for _, ref := range byRole {
		out = append(out, ref)
	}
	slices.SortFunc(out, func(a, b machinev1alpha1.ComposedReference) int { return cmp.Compare(a.Role, b.Role) })
	return out, nil
}

// conditionsOf converts the conditions of a pipeline.
func conditionsOf(conditions []*fnv1.Condition) []metav1.Condition {
	statuses := map[fnv1.Status]metav1.ConditionStatus{
		fnv1.Status_STATUS_CONDITION_TRUE:  metav1.ConditionTrue,
		fnv1.Status_STATUS_CONDITION_FALSE: metav1.ConditionFalse,
	}
	out := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		if isSystem(c.GetType()) {
			continue // The controller sets these itself.
		}
		out = append(out, metav1.Condition{
			Type: c.GetType(), Status: cmp.Or(statuses[c.GetStatus()], metav1.ConditionUnknown),
			// The schema requires a reason: without one the API server would refuse the whole status.
			Reason: cmp.Or(c.GetReason(), machinev1alpha1.ReasonUnspecified), Message: c.GetMessage(),
		})
	}
	return out
}

func isSystem(conditionType string) bool {
	return conditionType == string(xpv2.TypeReady) || conditionType == string(xpv2.TypeSynced)
}

func conditionOf(c xpv2.Condition) metav1.Condition {
	return metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: string(c.Reason), Message: c.Message}
}

// setConditions sets conditions of a generation. A condition that is not set now keeps the generation that it
// was set for.
func setConditions(s *machinev1alpha1.MachineStatus, generation int64, conditions ...metav1.Condition) {
	for _, c := range conditions {
		c.ObservedGeneration = generation
		meta.SetStatusCondition(&s.Conditions, c)
	}
}

// writeStatus writes the status in one write, if it changed.
func (r *Reconciler) writeStatus(ctx context.Context, m *machinev1alpha1.Machine, status machinev1alpha1.MachineStatus) (written bool, err error) {
	if equality.Semantic.DeepEqual(m.Status, status) {
		return false, nil
	}
	was := m.DeepCopy()
	m.Status = status
	if err := r.client.Status().Patch(ctx, m, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		m.Status = was.Status
		return false, err
	}
	r.remember(m)
	return true, nil
}

// remember stores a Machine as the API server returned it.
func (r *Reconciler) remember(m *machinev1alpha1.Machine) {
	m.SetGroupVersionKind(machineKind)
	m.SetManagedFields(nil)
	r.written.put(m.DeepCopy())
}

// recordVM writes the spec once the VM itself reports its providerID. It writes the providerID, which the
// cluster-autoscaler reads, and references to all composed resources, which "crossplane resource trace"
// follows. It comes before the status, which then is about the new generation.
//
// The references are derived, and never read. They share the write of the providerID, so that they cost no
// additional one. If the provider reports an error first, they are written without a providerID: a user then
// looks for the resource with the error.
func (r *Reconciler) recordVM(ctx context.Context, f *facts, d decision) error {
	m := f.machine
	isNew := d.vm.Confirmed && m.Spec.ProviderID == nil
	if !isNew && m.Spec.ProviderID == nil && d.vm.ErrorCode == "" {
		return nil
	}
	refs, err := traced(f, d)
	if err != nil {
		return err
	}
	if !isNew && slices.Equal(tracedBefore(m), refs) {
		return nil
	}
	return r.patchSpec(ctx, m, func(s *machinev1alpha1.MachineSpec) {
		if isNew {
			s.ProviderID = &d.vm.ProviderID
		}
		if s.Crossplane == nil {
			s.Crossplane = &machinev1alpha1.CompositionSelection{}
		}
		s.Crossplane.ResourceRefs = refs
	})
}

// traced returns the references of status.resourceRefs in Crossplane's form for a spec.
func traced(f *facts, d decision) ([]machinev1alpha1.ResourceReference, error) {
	composed, err := references(f, d)
	if err != nil {
		return nil, err
	}
	out := make([]machinev1alpha1.ResourceReference, 0, len(composed))
	for _, c := range composed {
		out = append(out, machinev1alpha1.ResourceReference{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name})
	}
	return out, nil
}

func tracedBefore(m *machinev1alpha1.Machine) []machinev1alpha1.ResourceReference {
	if m.Spec.Crossplane == nil {
		return nil
	}
	return m.Spec.Crossplane.ResourceRefs
}

// pin pins a Machine to a revision, as Crossplane does with the policy Manual.
func (r *Reconciler) pin(ctx context.Context, m *machinev1alpha1.Machine, revision string) error {
	return r.patchSpec(ctx, m, func(s *machinev1alpha1.MachineSpec) {
		s.Crossplane.CompositionRevisionRef = &machinev1alpha1.CompositionReference{Name: revision}
	})
}

func (r *Reconciler) patchSpec(ctx context.Context, m *machinev1alpha1.Machine, change func(*machinev1alpha1.MachineSpec)) error {
	was := m.DeepCopy()
	change(&m.Spec)
	if err := r.client.Patch(ctx, m, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	r.remember(m)
	return nil
}

// recordResults records the results of a pipeline as events of the Machine.
func (r *Reconciler) recordResults(m *machinev1alpha1.Machine, results []*fnv1.Result) {
	for _, res := range results {
		reason := event.Reason(cmp.Or(res.GetReason(), machinev1alpha1.EventComposeResources))
		if res.GetSeverity() == fnv1.Severity_SEVERITY_NORMAL {
			r.record.Event(m, event.Normal(reason, res.GetMessage()))
			continue
		}
		r.record.Event(m, event.Event{Type: event.TypeWarning, Reason: reason, Message: res.GetMessage()})
	}
}

// fail reports an error that keeps the Machine from being reconciled, and returns it, so that it is retried
// with a backoff. The rest of the status stays.
func (r *Reconciler) fail(ctx context.Context, m *machinev1alpha1.Machine, err error) error {
	if isStale(err) || ctx.Err() != nil {
		return err
	}
	status := *m.Status.DeepCopy()
	setConditions(&status, m.GetGeneration(), conditionOf(xpv2.ReconcileError(err)))
	written, werr := r.writeStatus(ctx, m, status)
	if werr != nil {
		return werr
	}
	if written {
		r.record.Event(m, event.Warning(machinev1alpha1.EventReconcileError, err))
	}
	return err
}

// reportFatal reports that a step failed. The conditions that it did not set become Unknown, as in Crossplane.
func (r *Reconciler) reportFatal(ctx context.Context, m *machinev1alpha1.Machine, d decision, fatal *pipeline.FatalError) error {
	status := *m.Status.DeepCopy()
	set := conditionsOf(d.Conditions)
	for _, c := range status.Conditions {
		if !isSystem(c.Type) && !slices.ContainsFunc(set, func(s metav1.Condition) bool { return s.Type == c.Type }) {
			set = append(set, metav1.Condition{Type: c.Type, Status: metav1.ConditionUnknown, Reason: machinev1alpha1.ReasonFatalResult, Message: "A step of the pipeline failed before it set this condition"})
		}
	}
	setConditions(&status, m.GetGeneration(), append(set, conditionOf(xpv2.ReconcileError(fatal)))...)
	written, err := r.writeStatus(ctx, m, status)
	if err != nil {
		return err
	}
	r.recordResults(m, d.Results)
	if written {
		r.record.Event(m, event.Warning(machinev1alpha1.ReasonFatalResult, fatal))
	}
	return nil
}

// refuse reports a problem that a user must fix before the pipeline can run.
func (r *Reconciler) refuse(ctx context.Context, m *machinev1alpha1.Machine, p *plan.Problem) error {
	status := *m.Status.DeepCopy()
	if status.Phase == "" {
		status.Phase = machinev1alpha1.MachinePending
	}
	status.ObservedGeneration = m.GetGeneration()
	setConditions(&status, m.GetGeneration(),
		metav1.Condition{Type: machinev1alpha1.ConditionValid, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Message},
		conditionOf(xpv2.ReconcileSuccess()))
	if meta.FindStatusCondition(status.Conditions, string(xpv2.TypeReady)) == nil {
		setConditions(&status, m.GetGeneration(), conditionOf(xpv2.Creating()))
	}
	written, err := r.writeStatus(ctx, m, status)
	if written {
		r.record.Event(m, event.Event{Type: event.TypeWarning, Reason: event.Reason(p.Reason), Message: p.Message})
	}
	return err
}

// pause reports that a Machine has Crossplane's annotation for a pause. The deletion of the Machine is paused too, at
// any stage.
func (r *Reconciler) pause(ctx context.Context, m *machinev1alpha1.Machine) error {
	status := *m.Status.DeepCopy()
	setConditions(&status, m.GetGeneration(), conditionOf(xpv2.ReconcilePaused().WithMessage("Reconciliation is paused by the annotation "+xpmeta.AnnotationKeyReconciliationPaused)))
	if m.GetDeletionTimestamp() != nil {
		r.setDeletion(m, &status, pausedDeletion(m, r.now()), &machinev1alpha1.LastOperation{
			Type: machinev1alpha1.OperationDelete, State: machinev1alpha1.OperationProcessing,
			Description: "Paused: nothing is drained or deleted until the annotation " + xpmeta.AnnotationKeyReconciliationPaused + " is removed",
		})
	}
	_, err := r.writeStatus(ctx, m, status)
	return err
}

// pausedDeletion returns the deletion status of a paused Machine: a stage that has begun stays.
func pausedDeletion(m *machinev1alpha1.Machine, now time.Time) *machinev1alpha1.DeletionStatus {
	if d := m.Status.Deletion; d != nil && (d.Stage.HasBegun() || d.Stage == machinev1alpha1.DeletionPaused) {
		return d.DeepCopy()
	}
	return &machinev1alpha1.DeletionStatus{Stage: machinev1alpha1.DeletionPaused, Since: metav1.NewTime(now.UTC().Truncate(time.Second))}
}

// setDeletion sets the stage of a deletion in a status, and the operation that it waits for. A Machine that is being
// deleted is not Ready, whatever its Node reports.
func (r *Reconciler) setDeletion(m *machinev1alpha1.Machine, status *machinev1alpha1.MachineStatus, d *machinev1alpha1.DeletionStatus, op *machinev1alpha1.LastOperation) {
	status.Phase, status.Deletion = machinev1alpha1.MachineTerminating, d
	setConditions(status, m.GetGeneration(), conditionOf(xpv2.Deleting()))
	if isSameOperation(op, status.LastOperation) {
		return
	}
	now := metav1.NewTime(r.now().UTC().Truncate(time.Second))
	changed := *op
	changed.LastUpdateTime = &now
	status.LastOperation = &changed
}

func isSameOperation(a, b *machinev1alpha1.LastOperation) bool {
	return b != nil && b.LastUpdateTime != nil && a.Type == b.Type && a.State == b.State && a.Description == b.Description && a.ErrorCode == b.ErrorCode
}

// applied returns the record of the Node for the status.
func (f *facts) applied(d decision) *machinev1alpha1.AppliedToNode {
	switch {
	case f.applying != nil:
		return f.applying
	case f.node != nil && f.node.Settled != nil:
		return f.node.Settled.Record
	case f.machine.Status.NodeRef == nil && (f.node == nil || f.node.Proven == ""):
		return nodekeys.Promise(f.machine, d.node)
	}
	return f.machine.Status.AppliedToNode
}

// readyWhen returns the condition Ready, as the pipeline decided it.
func readyWhen(d decision) xpv2.Condition {
	if d.Desired.GetComposite().GetReady() == fnv1.Ready_READY_TRUE {
		return xpv2.Available()
	}
	return xpv2.Creating()
}

// identifiedCondition reports whether the Node is certain. It is empty for a Machine whose Node was never
// contested, and while the Nodes cannot be read.
func identifiedCondition(f *facts) []metav1.Condition {
	switch {
	case f.node == nil || !f.node.IsObserved:
		return nil
	case f.node.Contest != nil:
		return []metav1.Condition{{Type: machinev1alpha1.ConditionNodeIdentified, Status: metav1.ConditionFalse, Reason: f.node.Contest.Reason, Message: f.node.Contest.Message}}
	case meta.FindStatusCondition(f.machine.Status.Conditions, machinev1alpha1.ConditionNodeIdentified) != nil:
		return []metav1.Condition{{Type: machinev1alpha1.ConditionNodeIdentified, Status: metav1.ConditionTrue, Reason: machinev1alpha1.ReasonNodeProven}}
	}
	return nil
}

// newsOf returns the conditions that are False and were not False with the same message before.
func newsOf(was, is []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(is), func(c metav1.Condition) bool {
		before := meta.FindStatusCondition(was, c.Type)
		return c.Status != metav1.ConditionFalse || before != nil && before.Status == c.Status && before.Message == c.Message
	})
}
