package terminator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// listTimeout bounds the wait for a cache of VMs that never fills, for want of rights.
const listTimeout = 3 * time.Second

// Reasons of events.
const (
	reasonUnreadable  event.Reason = "VMUnreadable"
	reasonHookTimeout event.Reason = "HookTimeout"
	reasonForced      event.Reason = "ForceDeleted"
)

// machines reconciles Machines.
type machines struct {
	client      client.Client // writes
	live        client.Reader
	views       client.Reader // caches of Machines and of VMs
	workerNodes client.Reader // cache
	kinds       *vmKinds
	record      event.Recorder
	now         func() time.Time
	told        told
}

// Reconcile a Machine.
func (r *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &Machine{}
	if err := r.views.Get(ctx, req.NamespacedName, m); err != nil {
		if kerrors.IsNotFound(err) {
			r.told.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	r.told.recall(m)
	unlearned := r.kinds.learn(ctx, m)
	if unlearned != nil {
		r.record.Event(m, event.Warning(reasonUnreadable, unlearned))
	}
	if m.GetDeletionTimestamp() == nil {
		return reconcile.Result{}, take(ctx, r.client, v1alpha1.MachineGroupVersionKind, m, selfOf(m).next(true))
	}

	o, err := r.look(ctx, m, r.cached, unlearned)
	if err != nil {
		return reconcile.Result{}, err
	}
	p := plan(o.machineState)
	if p.irrevocable() {
		// A WorkerNode or VM may be so new that the cache lacks it.
		if o, err = r.look(ctx, m, r.fresh, unlearned); err != nil {
			return reconcile.Result{}, err
		}
		p = plan(o.machineState)
	}
	return reconcile.Result{RequeueAfter: p.again}, r.execute(ctx, m, o, p, unlearned)
}

func (r *machines) execute(ctx context.Context, m *Machine, o observed, p machinePlan, unlearned error) error {
	errs := []error{unlearned}
	for name, annotations := range p.pass {
		errs = append(errs, passTo(ctx, r.client, m.GetNamespace(), name, annotations))
	}
	for _, wn := range p.collect {
		errs = append(errs, collect(ctx, r.client, m.GetNamespace(), wn))
	}
	if len(p.timedOut) > 0 {
		r.record.Event(m, event.Warning(reasonHookTimeout, fmt.Errorf("the deletion goes on, although it is held by %s: that took longer than %s", strings.Join(p.timedOut, ", "), o.hookTimeout)))
	}
	for _, v := range p.release {
		errs = append(errs, release(ctx, r.client, o.objects[v].gvk, o.objects[v].meta, r.now()))
	}
	for _, v := range p.forget {
		errs = append(errs, forget(ctx, r.client, o.objects[v].gvk, o.objects[v].meta))
	}
	for _, v := range p.abandon {
		r.record.Event(m, event.Warning(reasonForced, fmt.Errorf("%s %s is let go without its provider, as %s asks: if its VM still exists, nobody deletes it any more; look for the tag %s=%s", v.kind, v.name, v1alpha1.AnnotationForceDelete, v1alpha1.TagMachineUID, m.GetUID())))
		errs = append(errs, abandon(ctx, r.client, o.objects[v].gvk, o.objects[v].meta))
	}
	errs = append(errs,
		r.told.tell(ctx, r.client, m, p.operation, p.deletion, metav1.NewTime(r.now())),
		take(ctx, r.client, v1alpha1.MachineGroupVersionKind, m, p.step))
	return errors.Join(errs...)
}

// observed is a state, and the objects that it was made from.
type observed struct {
	machineState
	objects map[vm]vmObject
}

type vmObject struct {
	gvk  schema.GroupVersionKind
	meta *metav1.PartialObjectMetadata
}

// A lister finds what a Machine owns.
type lister interface {
	workerNodesOf(ctx context.Context, m *Machine) ([]workerNode, error)
	vmsOf(ctx context.Context, gvk schema.GroupVersionKind, m *Machine) ([]metav1.PartialObjectMetadata, error)
}

func (r *machines) look(ctx context.Context, m *Machine, from func() lister, unlearned error) (observed, error) {
	o := observed{objects: map[vm]vmObject{}}
	o.self = selfOf(m)
	a := m.GetAnnotations()
	o.now = r.now()
	if t := m.GetDeletionTimestamp(); t != nil {
		o.deletedAt = t.Time
	}
	if d := m.Status.Deletion; d != nil {
		o.stage, o.since = d.Stage, d.Since.Time
	}
	o.skipDrain, o.forceDrain, o.forceDelete = yes(a, v1alpha1.AnnotationSkipDrain), yes(a, v1alpha1.AnnotationForceDrain), yes(a, v1alpha1.AnnotationForceDelete)
	o.preDrain, o.preTerminate = v1alpha1.HooksIn(a, v1alpha1.HookPreDrain), v1alpha1.HooksIn(a, v1alpha1.HookPreTerminate)
	o.hookTimeout = m.Spec.Drain.HookTimeout.Duration
	l := from()
	var err error
	if o.workerNodes, err = l.workerNodesOf(ctx, m); err != nil {
		return o, fmt.Errorf("cannot list the WorkerNodes of the Machine: %w", err)
	}
	if unlearned != nil {
		o.unreadable = unlearned.Error()
	}
	for _, gvk := range r.kinds.all() {
		items, err := l.vmsOf(ctx, gvk, m)
		if err != nil {
			o.unreadable = fmt.Sprintf("cannot list %s", gvk.GroupKind())
			r.record.Event(m, event.Warning(reasonUnreadable, fmt.Errorf("%s: %w", o.unreadable, err)))
			continue
		}
		for i := range items {
			v := readVM(gvk.Kind, &items[i])
			if v1alpha1.IsCompanion(items[i].GetAnnotations()[annotationResourceName]) {
				o.companions = append(o.companions, v)
			} else {
				o.vms = append(o.vms, v)
			}
			o.objects[v] = vmObject{gvk: gvk, meta: &items[i]}
		}
	}
	slices.SortStableFunc(o.companions, func(a, b vm) int { return cmp.Or(cmp.Compare(a.order, b.order), strings.Compare(a.name, b.name)) })
	return o, nil
}

func readVM(kind string, obj *metav1.PartialObjectMetadata) vm {
	v := vm{
		kind: kind, name: obj.GetName(),
		held:      controllerutil.ContainsFinalizer(obj, v1alpha1.FinalizerDrain),
		deleting:  obj.GetDeletionTimestamp() != nil,
		uncertain: meta.ExternalCreateIncomplete(obj),
	}
	// One without a number is made like the first.
	v.order, _ = strconv.Atoi(obj.GetAnnotations()[v1alpha1.AnnotationOrder])
	return v
}

func (r *machines) cached() lister { return cachedLister{r} }
func (r *machines) fresh() lister  { return freshLister{r} }

type cachedLister struct{ *machines }

func (l cachedLister) workerNodesOf(ctx context.Context, m *Machine) ([]workerNode, error) {
	list := &clusterv1alpha1.WorkerNodeList{}
	if err := l.workerNodes.List(ctx, list, client.InNamespace(m.GetNamespace()), client.MatchingFields{byOwner: string(m.GetUID())}); err != nil {
		return nil, err
	}
	var out []workerNode
	for i := range list.Items {
		wn := &list.Items[i]
		out = append(out, readWorkerNode(wn))
	}
	return out, nil
}

func (l cachedLister) vmsOf(ctx context.Context, gvk schema.GroupVersionKind, m *Machine) ([]metav1.PartialObjectMetadata, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return owned(ctx, l.views, gvk, v1alpha1.LabelMachine, m)
}

type freshLister struct{ *machines }

func (l freshLister) workerNodesOf(ctx context.Context, m *Machine) ([]workerNode, error) {
	items, err := owned(ctx, l.live, clusterv1alpha1.WorkerNodeGroupVersionKind, v1alpha1.LabelMachine, m)
	var out []workerNode
	for i := range items {
		out = append(out, newWorkerNode(&items[i]))
	}
	return out, err
}

func (l freshLister) vmsOf(ctx context.Context, gvk schema.GroupVersionKind, m *Machine) ([]metav1.PartialObjectMetadata, error) {
	return owned(ctx, l.live, gvk, v1alpha1.LabelMachine, m)
}

// stageOf a drain in a Machine's deletion.
var stageOf = map[clusterv1alpha1.DrainStage]v1alpha1.DeletionStage{
	clusterv1alpha1.DrainWaitingForHooks:  v1alpha1.DeletionPreDrainHooks,
	clusterv1alpha1.DrainEvictingPods:     v1alpha1.DeletionDraining,
	clusterv1alpha1.DrainDetachingVolumes: v1alpha1.DeletionDetachingVolumes,
	clusterv1alpha1.DrainDeletingNode:     v1alpha1.DeletionDeletingNode,
}

// newWorkerNode is what its metadata tells.
func newWorkerNode(o client.Object) workerNode {
	a := o.GetAnnotations()
	return workerNode{
		name: o.GetName(), uid: o.GetUID(),
		created: o.GetCreationTimestamp().Time, deleting: o.GetDeletionTimestamp() != nil,
		skipDrain: yes(a, v1alpha1.AnnotationSkipDrain), forceDrain: yes(a, v1alpha1.AnnotationForceDrain),
	}
}

func readWorkerNode(wn *clusterv1alpha1.WorkerNode) workerNode {
	out := newWorkerNode(wn)
	if c := wn.GetCondition(xpv1.TypeSynced); out.deleting && c.Status == corev1.ConditionFalse {
		out.trouble = c.Message
	}
	d := wn.Status.AtProvider.Drain
	if d == nil || !out.deleting {
		return out
	}
	out.stage, out.hooks = stageOf[d.Stage], d.Hooks
	if d.StageSince != nil {
		out.since = d.StageSince.Time
	}
	for _, p := range d.Pods {
		if p.Reason != clusterv1alpha1.ReasonPodTerminating {
			out.pods = append(out.pods, v1alpha1.DrainedPod(p))
		}
	}
	return out
}

func yes(annotations map[string]string, key string) bool { return annotations[key] == "true" }
