package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/deletion"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/jointoken"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/text"
	"github.com/drover-dev/drover/internal/workernode"
)

// tokenFor is how long the deletion of a Machine waits for the revocation of its join token. After that, the
// token is left to the sweeper, or to its expiry.
const tokenFor = 30 * time.Second

// terminate does the next step of the deletion of a Machine. It does not depend on FinalizerTerminator:
// otherwise, if a user removed it, FinalizerDrain would hold the VM, and the VM its Machine.
func (r *Reconciler) terminate(ctx context.Context, m *machinev1alpha1.Machine) (reconcile.Result, error) {
	o, err := r.inventory(ctx, m, r.cached)
	if err != nil {
		return reconcile.Result{}, err
	}
	isHidden := r.isIdentityHidden(m, o)
	if !isHidden {
		if err := r.identify(ctx, m, o.vmOf()); err != nil {
			return reconcile.Result{}, err
		}
	}
	if o.Collected, err = r.collectedBy(ctx, m); err != nil {
		return reconcile.Result{}, err
	}
	if o.IsHeld() {
		return reconcile.Result{}, r.execute(ctx, m, o, deletion.Plan(o.State), nil)
	}
	if isHidden && !o.ForceDelete {
		o.Node = &deletion.Node{Name: identity.NodeName(m), Trouble: o.Unreadable}
		return reconcile.Result{RequeueAfter: nodekeeper.RetryAfter}, r.execute(ctx, m, o, deletion.Plan(o.State), nil)
	}
	token := r.revoke(ctx, m)
	wn, err := r.leaveNode(ctx, m, &o)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := deletion.Plan(o.State)
	if p.IsIrrevocable() {
		// A VM may be so new that the cache lacks it.
		fresh, err := r.inventory(ctx, m, r.fresh)
		if err != nil {
			return reconcile.Result{}, err
		}
		fresh.Node, fresh.Collected = o.Node, o.Collected
		o, p = fresh, deletion.Plan(fresh.State)
	}
	if p.Step == finalizer.Remove && token > 0 {
		p.Step, p.Again = finalizer.Nothing, token
	}
	if wn != nil {
		p.RequeueWithin(wn.Again)
	}
	if len(p.Release) > 0 {
		p.RequeueWithin(providerErrorAfter) // An error that the provider reported before causes no event.
	}
	if o.Unreadable != "" || o.unwatched {
		p.RequeueWithin(nodekeeper.RetryAfter) // No watch reports that a right was granted, or that a VM is gone.
	}
	return reconcile.Result{RequeueAfter: p.Again}, r.execute(ctx, m, o, p, wn)
}

// isIdentityHidden reports whether the Machine has taken over a VM by its status, and the VM resource that
// proves it cannot be read. With another identity its Node would not be found, and the VM would be deleted
// without a drain.
func (r *Reconciler) isIdentityHidden(m *machinev1alpha1.Machine, o inventory) bool {
	_, known := r.parameters.get(m.GetUID())
	return m.Status.Identity != nil && o.Unreadable != "" && o.vmOf() == nil && !known
}

// collectedBy returns the name of the MachineSet that controls the Machine and does not exist any more, if the
// Machine may have a Node. It is empty if the set exists or a user confirmed the deletion.
func (r *Reconciler) collectedBy(ctx context.Context, m *machinev1alpha1.Machine) (string, error) {
	if !mayHaveNode(m) || isTrue(m, machinev1alpha1.AnnotationConfirmDeletion) {
		return "", nil
	}
	if d := m.Status.Deletion; d != nil && d.Stage.HasBegun() {
		return "", nil // It began while the MachineSet existed.
	}
	return finalizer.LostOwner(ctx, r.live, m, machinev1alpha1.MachineSetGroupVersionKind)
}

// revoke revokes the join token. It returns how long the deletion may wait for a retry, zero if it need not.
func (r *Reconciler) revoke(ctx context.Context, m *machinev1alpha1.Machine) time.Duration {
	_, err := r.tokens.Apply(ctx, m, jointoken.Request{
		TTL: metav1.Duration{Duration: time.Hour}, MaxLife: metav1.Duration{Duration: time.Hour}, Revoked: true, Frozen: true,
	})
	if err == nil {
		return 0
	}
	if left := m.GetDeletionTimestamp().Add(tokenFor).Sub(r.now()); left > 0 {
		return min(left, nodekeeper.RetryAfter)
	}
	r.record.Event(m, event.Warning(machinev1alpha1.EventTokenAbandoned, fmt.Errorf("the join token is left to expire in the target cluster: %w", err)))
	return 0
}

// leaveNode does a pass of the drain, and records in the state whether a Node remains. It returns nil if the
// drain ended earlier, or is not needed.
func (r *Reconciler) leaveNode(ctx context.Context, m *machinev1alpha1.Machine, o *inventory) (*nodekeeper.Node, error) {
	if o.HasLeftNode() || !mayHaveNode(m) {
		return nil, nil
	}
	wn := r.nodeOf(m)
	x, unreachable := r.nodes.KeeperFor(ctx, m)
	gone, err := x.Remove(ctx, wn, unreachable)
	r.parameters.set(m.GetUID(), wn.Memory())
	if gone {
		return wn, nil
	}
	o.Node = leavingNodeOf(wn, err)
	return wn, nil
}

// mayHaveNode reports whether the Machine may have a Node: a Node or a VM was recorded.
func mayHaveNode(m *machinev1alpha1.Machine) bool {
	return m.Status.NodeRef != nil || m.Status.ProviderID != "" || m.Spec.ProviderID != nil
}

// nodeOf returns the Node of a Machine that is being deleted. No pipeline runs for it any more: the parameters
// of the drain are in the Machine itself.
func (r *Reconciler) nodeOf(m *machinev1alpha1.Machine) *nodekeeper.Node {
	wn := &nodekeeper.Node{Machine: m, WorkerNode: workernode.WorkerNode{Observation: nodekeeper.LastSeen(m)}}
	if before, ok := r.parameters.get(m.GetUID()); ok && before.Node != nil {
		wn.WorkerNode, wn.Evidence = *before.Node, before.Evidence
	} else {
		// After a restart the providerID is unknown: that of the status may be forged. The names in the status are
		// used to find a Node, and prove nothing without its token.
		wn.Parameters.CloudNamesNodes = m.Status.NodeRef != nil && m.Status.NodeRef.Name != identity.NodeName(m)
	}
	wn.Observation.Drain = m.Status.Drain.DeepCopy()
	plan.SettleDrain(r.now(), wn.Observation.Drain)
	wn.Parameters.Drain = workernode.Drain{
		Drain: m.Spec.Drain,
		Skip:  isTrue(m, machinev1alpha1.AnnotationSkipDrain),
		Force: isTrue(m, machinev1alpha1.AnnotationForceDrain),
	}
	return wn
}

// stageOf maps the stage of a drain to that of the Machine's deletion.
var stageOf = map[machinev1alpha1.DrainStage]machinev1alpha1.DeletionStage{
	machinev1alpha1.DrainWaitingForHooks:  machinev1alpha1.DeletionPreDrainHooks,
	machinev1alpha1.DrainEvictingPods:     machinev1alpha1.DeletionDraining,
	machinev1alpha1.DrainDetachingVolumes: machinev1alpha1.DeletionDetachingVolumes,
	machinev1alpha1.DrainDeletingNode:     machinev1alpha1.DeletionDeletingNode,
}

func leavingNodeOf(wn *nodekeeper.Node, err error) *deletion.Node {
	out := &deletion.Node{Name: cmp.Or(wn.Observation.NodeName, identity.NodeName(wn.Machine)), Finalizers: wn.HeldBy, Until: wn.HeldUntil}
	if err != nil {
		out.Trouble = err.Error()
	}
	d := wn.Observation.Drain
	if d == nil {
		return out
	}
	out.Stage, out.Hooks = stageOf[d.Stage], d.Hooks
	if d.StageSince != nil {
		out.Since = d.StageSince.Time
	}
	for _, p := range d.Pods {
		if p.Reason != machinev1alpha1.ReasonPodTerminating {
			out.Pods = append(out.Pods, p)
		}
	}
	return out
}

func (r *Reconciler) execute(ctx context.Context, m *machinev1alpha1.Machine, o inventory, p deletion.Decision, wn *nodekeeper.Node) error {
	var errs []error
	if len(p.TimedOut) > 0 {
		r.record.Event(m, event.Warning(machinev1alpha1.EventHookTimeout, fmt.Errorf("the deletion goes on, although it is held by %s: that took longer than %s", strings.Join(p.TimedOut, ", "), o.HookTimeout)))
	}
	if len(p.Overdue) > 0 {
		r.record.Event(m, event.Warning(machinev1alpha1.EventDependentTimeout, fmt.Errorf("the VM is deleted, although %s still exist: their deletion took longer than %s", describeAll(p.Overdue), deletion.DependentsTimeout)))
	}
	// The stage is recorded before it starts: after a restart the deletion never returns to the Node.
	if err := r.reportDeletion(ctx, m, p, wn); err != nil {
		return err
	}
	for _, v := range p.Release {
		errs = append(errs, release(ctx, r.client, o.objects[v].gvk, o.objects[v].meta, r.now()))
	}
	for _, v := range p.Forget {
		errs = append(errs, forget(ctx, r.client, o.objects[v].gvk, o.objects[v].meta, r.now()))
	}
	for _, v := range p.Unmade {
		r.record.Event(m, event.Normal(machinev1alpha1.EventNeverCreated, fmt.Sprintf("%s %s is deleted without its provider, which never began to create it", v.Kind, v.Name)))
		errs = append(errs, letUnmadeGo(ctx, r.client, o.objects[v].gvk, o.objects[v].meta))
	}
	for _, v := range p.Abandon {
		r.record.Event(m, event.Warning(machinev1alpha1.EventForceDeleted, fmt.Errorf("%s %s is let go without its provider, as %s asks: if its VM still exists, nothing deletes it any more; look for the tag %s=%s", v.Kind, v.Name, machinev1alpha1.AnnotationForceDelete, machinev1alpha1.TagMachineUID, m.GetUID())))
		errs = append(errs, abandon(ctx, r.client, o.objects[v].gvk, o.objects[v].meta))
	}
	errs = append(errs, finalizer.Take(ctx, r.client, machineKind, m, p.Step))
	return errors.Join(errs...)
}

// describeAll returns the kinds and names of resources.
func describeAll(vms []deletion.Resource) string {
	out := make([]string, 0, len(vms))
	for _, v := range vms {
		out = append(out, v.Kind+" "+v.Name)
	}
	return strings.Join(out, ", ")
}

// reportDeletion writes the stage of the deletion in the status, if it changed.
func (r *Reconciler) reportDeletion(ctx context.Context, m *machinev1alpha1.Machine, p deletion.Decision, wn *nodekeeper.Node) error {
	status := *m.Status.DeepCopy()
	if wn != nil && (isWorthWriting(status.Drain, wn.Observation.Drain) || len(wn.HeldBy) > 0) {
		status.Drain = wn.Observation.Drain
	}
	if wn != nil {
		if status.NotReadySince = wn.Observation.NotReadySince(); status.NotReadySince != nil {
			status.ReadySince = nil
		}
	}
	if p.Operation != nil && p.Deletion != nil {
		r.setDeletion(m, &status, p.Deletion, p.Operation)
	}
	_, err := r.writeStatus(ctx, m, status)
	return err
}

// isWorthWriting reports whether a drain made progress. The moment before the Node is deleted is not worth a
// write of its own.
func isWorthWriting(was, is *machinev1alpha1.DrainStatus) bool {
	if is == nil || equality.Semantic.DeepEqual(was, is) {
		return false
	}
	return was != nil || is.Stage != machinev1alpha1.DrainDeletingNode
}

// An inventory is the state of a deletion, with the objects that it was read from.
type inventory struct {
	deletion.State
	// unwatched means that there is a resource of a kind that is not watched.
	unwatched bool
	objects   map[deletion.Resource]vmObject
}

type vmObject struct {
	gvk  schema.GroupVersionKind
	meta *metav1.PartialObjectMetadata
}

// A lister finds the resources of a kind that a Machine controls.
type lister func(ctx context.Context, gvk schema.GroupVersionKind, m *machinev1alpha1.Machine) ([]metav1.PartialObjectMetadata, error)

// inventory reads the state of the Machine's deletion.
func (r *Reconciler) inventory(ctx context.Context, m *machinev1alpha1.Machine, list lister) (inventory, error) {
	o := inventory{objects: map[deletion.Resource]vmObject{}}
	o.Self, o.Now, o.DeletedAt = finalizer.StateOf(m), r.now(), m.GetDeletionTimestamp().Time
	settled := m.Status.DeepCopy()
	plan.SettleStatus(o.Now, settled)
	if d := settled.Deletion; d != nil {
		o.Stage, o.Since, o.NodeDeleted = d.Stage, d.Since.Time, d.NodeDeletedTime
	}
	o.Restored, o.ForceDelete = isRestored(m), isTrue(m, machinev1alpha1.AnnotationForceDelete)
	o.PassedOver = strings.Join(plan.InvalidSwitches(m.GetAnnotations()), "; ")
	o.Foreign = finalizer.Others(m)
	o.HadVM = mayHaveNode(m) || m.Status.Identity != nil || identity.IsImported(m)
	a := m.GetAnnotations()
	o.PreDrain, o.PreTerminate = machinev1alpha1.HooksIn(a, machinev1alpha1.HookPreDrain), machinev1alpha1.HooksIn(a, machinev1alpha1.HookPreTerminate)
	o.HookTimeout = m.Spec.Drain.HookTimeout.Duration
	kinds, optional, err := r.kindsToSearch(ctx, m)
	if err != nil {
		return o, err
	}
	for _, gvk := range kinds {
		r.search(ctx, m, &o, gvk, list)
	}
	for _, gvk := range r.optionalToSearch(m, &o, optional) {
		if !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
			r.search(ctx, m, &o, gvk, list)
		}
	}
	for _, companions := range [][]deletion.Resource{o.Companions, o.Dependents} {
		slices.SortStableFunc(companions, func(a, b deletion.Resource) int {
			return cmp.Or(cmp.Compare(a.Order, b.Order), strings.Compare(a.Name, b.Name))
		})
	}
	o.ProviderError, o.ResourcePaused = r.providerErrorOf(ctx, m, o)
	return o, nil
}

// providerErrorAfter is how long the provider of a released resource may take before the status has its error.
const providerErrorAfter = 10 * time.Second

// maxProviderError bounds the error of a provider in a status.
const maxProviderError = 512

// providerErrorOf returns the error by which the provider of the resource that the deletion waits for cannot delete it,
// empty if there is none, and whether an annotation keeps the provider from reconciling the resource. The texts that differ
// with each request are left out: each would be a write.
func (r *Reconciler) providerErrorOf(ctx context.Context, m *machinev1alpha1.Machine, o inventory) (message string, isPaused bool) {
	v, ok := o.Awaited(o.Stage)
	if !ok || !v.Deleting || v.Held {
		return "", false
	}
	read := r.read
	if gvk := o.objects[v].gvk; !r.watches.has(gvk) {
		read = r.readLive
	}
	obj, err := read(ctx, o.objects[v].gvk, types.NamespacedName{Namespace: m.GetNamespace(), Name: v.Name})
	if err != nil || obj == nil {
		return "", false
	}
	if xpmeta.IsPaused(obj) {
		return "", true
	}
	return text.Shorten(plan.Steady(plan.SyncErrorOf(plan.Object{Unstructured: obj})), maxProviderError), false
}

// search adds the resources of a kind to the inventory.
func (r *Reconciler) search(ctx context.Context, m *machinev1alpha1.Machine, o *inventory, gvk schema.GroupVersionKind, list lister) {
	items, err := list(ctx, gvk, m)
	if meta.IsNoMatchError(err) {
		return // The kind is gone, and with it all of its objects.
	}
	if err != nil {
		o.Unreadable = fmt.Sprintf("cannot list %s", gvk.GroupKind())
		r.record.Event(m, event.Warning(machinev1alpha1.EventVMUnreadable, fmt.Errorf("%s: %w", o.Unreadable, err)))
		return
	}
	o.unwatched = o.unwatched || len(items) > 0 && !r.watches.has(gvk)
	for i := range items {
		o.add(gvk, &items[i])
	}
}

// optionalToSearch returns the kinds of the optional companions that a Machine may have although its status does
// not refer to them: those that its VM was created with, and those that can certainly be read, because they were
// read before. If a restored Machine has no VM resource, these are all.
func (r *Reconciler) optionalToSearch(m *machinev1alpha1.Machine, o *inventory, optional map[string]schema.GroupVersionKind) []schema.GroupVersionKind {
	vm := o.vmOf()
	if vm == nil && o.Restored {
		return slices.Collect(maps.Values(optional))
	}
	out := slices.DeleteFunc(slices.Collect(maps.Values(optional)), func(gvk schema.GroupVersionKind) bool { return !r.watches.isIndexed(gvk) })
	if vm != nil {
		out = append(out, slices.Collect(maps.Values(namedBy(vm, optional)))...)
	}
	return out
}

// vmOf returns the VM resource of the Machine, nil if there is none.
func (o *inventory) vmOf() metav1.Object {
	if len(o.VMs) == 0 {
		return nil
	}
	return o.objects[o.VMs[0]].meta
}

func (o *inventory) add(gvk schema.GroupVersionKind, obj *metav1.PartialObjectMetadata) {
	v := readVM(gvk.Kind, obj)
	switch role := obj.GetAnnotations()[roleAnnotation]; {
	case machinev1alpha1.IsCompanion(role) && v.AfterVM:
		o.Dependents = append(o.Dependents, v)
	case machinev1alpha1.IsCompanion(role):
		o.Companions = append(o.Companions, v)
	case role == machinev1alpha1.ResourceVM:
		o.VMs = append(o.VMs, v)
	default:
		return // A resource of another step: the garbage collector deletes it.
	}
	o.objects[v] = vmObject{gvk: gvk, meta: obj}
}

// kindsToSearch returns the kinds of the VM and the companions of a Machine: those that its status refers to,
// and those of the pipeline that it follows. The optional companions that its status does not refer to are
// separate.
func (r *Reconciler) kindsToSearch(ctx context.Context, m *machinev1alpha1.Machine) (out []schema.GroupVersionKind, optional map[string]schema.GroupVersionKind, err error) {
	add := func(gvk schema.GroupVersionKind) {
		if gvk.Group != "" && gvk.Group != machinev1alpha1.Group && !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	for _, ref := range m.Status.ResourceRefs {
		if machinev1alpha1.IsInfrastructure(ref.Role) {
			add(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
		}
	}
	s, err := r.followed(ctx, m)
	if err != nil || s.revision == nil {
		return out, nil, err
	}
	steps, err := r.steps.StepsOf(s.revision)
	if err != nil {
		return out, nil, nil //nolint:nilerr // A pipeline that cannot be read composed nothing.
	}
	expected, optional := expectedKinds(m, steps)
	kinds := slices.Collect(maps.Values(expected))
	for _, gvk := range kinds {
		add(gvk)
	}
	_ = r.watchKinds(kinds) // A kind that cannot be watched is listed live.
	return out, optional, nil
}

// followed returns the revision that the Machine follows. If the status has none, as after a restore, it is the
// revision that a new Machine would follow.
func (r *Reconciler) followed(ctx context.Context, m *machinev1alpha1.Machine) (selection, error) {
	if m.Status.CompositionRevision == "" {
		return r.choose(ctx, m)
	}
	return r.pinned(ctx, m.Status.CompositionRevision)
}

func readVM(kind string, obj *metav1.PartialObjectMetadata) deletion.Resource {
	v := deletion.Resource{
		Kind: kind, Name: obj.GetName(),
		Held:      controllerutil.ContainsFinalizer(obj, machinev1alpha1.FinalizerDrain),
		Deleting:  obj.GetDeletionTimestamp() != nil,
		Uncertain: xpmeta.ExternalCreateIncomplete(obj),
		AfterVM:   plan.IsAfterVM(obj),
		Unmade:    controllerutil.ContainsFinalizer(obj, plan.FinalizerManaged) && !plan.WasCreationTried(obj),
		HeldBy:    strings.Join(finalizer.Others(obj, plan.FinalizerManaged), ", "),
	}
	// A companion without a number counts as one of the first.
	v.Order, _ = strconv.Atoi(obj.GetAnnotations()[machinev1alpha1.AnnotationOrder])
	return v
}

// cached lists from the cache. It may lack an object that was just created: see isIrrevocable. A kind that no
// pipeline composes is not watched: a status that refers to it can be forged.
func (r *Reconciler) cached(ctx context.Context, gvk schema.GroupVersionKind, m *machinev1alpha1.Machine) ([]metav1.PartialObjectMetadata, error) {
	if !r.watches.has(gvk) {
		return r.fresh(ctx, gvk, m)
	}
	list, err := r.labeled(ctx, gvk, m)
	if err != nil {
		return nil, err
	}
	var out []metav1.PartialObjectMetadata
	for i := range list {
		if metav1.IsControlledBy(&list[i], m) {
			out = append(out, *metadataOf(&list[i]))
		}
	}
	return out, nil
}

// metadataOf returns the metadata of an object.
func metadataOf(u *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	p := meta.AsPartialObjectMetadata(u)
	p.SetGroupVersionKind(u.GroupVersionKind())
	return p.DeepCopy()
}

// fresh lists from the API server.
func (r *Reconciler) fresh(ctx context.Context, gvk schema.GroupVersionKind, m *machinev1alpha1.Machine) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := r.live.List(ctx, list, client.InNamespace(m.GetNamespace()), client.MatchingLabels{machinev1alpha1.LabelMachine: m.GetName()}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return !metav1.IsControlledBy(&o, m) }), nil
}
