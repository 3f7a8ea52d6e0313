package terminator

import (
	"context"
	"errors"
	"fmt"
	"time"

	xpv1 "github.com/crossplane/crossplane-runtime/v2/apis/common/v1"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
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

const reasonUnreadable event.Reason = "VMUnreadable"

// machines reconciles Machines.
type machines struct {
	client      client.Client // writes
	live        client.Reader
	views       client.Reader // caches of Machines and of VMs
	workerNodes client.Reader // cache
	kinds       *vmKinds
	record      event.Recorder
	now         func() time.Time
}

// Reconcile a Machine.
func (r *machines) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	m := &Machine{}
	if err := r.views.Get(ctx, req.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
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
	return reconcile.Result{}, r.execute(ctx, m, o, p, unlearned)
}

func (r *machines) execute(ctx context.Context, m *Machine, o observed, p machinePlan, unlearned error) error {
	errs := []error{unlearned}
	for _, name := range p.skip {
		errs = append(errs, skipDrain(ctx, r.client, m.GetNamespace(), name))
	}
	for _, v := range p.release {
		errs = append(errs, release(ctx, r.client, o.objects[v].gvk, o.objects[v].meta, r.now()))
	}
	errs = append(errs,
		tell(ctx, r.client, m, p.operation, metav1.NewTime(r.now())),
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
	o.skipDrain = m.GetAnnotations()[v1alpha1.AnnotationSkipDrain] == "true"
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
			v := vm{kind: gvk.Kind, name: items[i].GetName(), held: controllerutil.ContainsFinalizer(&items[i], v1alpha1.FinalizerDrain)}
			o.vms = append(o.vms, v)
			o.objects[v] = vmObject{gvk: gvk, meta: &items[i]}
		}
	}
	return o, nil
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
		out = append(out, workerNode{name: wn.GetName(), skipDrain: wn.GetAnnotations()[v1alpha1.AnnotationSkipDrain] == "true", blocked: blocked(wn)})
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
		out = append(out, workerNode{name: items[i].GetName(), skipDrain: items[i].GetAnnotations()[v1alpha1.AnnotationSkipDrain] == "true"})
	}
	return out, err
}

func (l freshLister) vmsOf(ctx context.Context, gvk schema.GroupVersionKind, m *Machine) ([]metav1.PartialObjectMetadata, error) {
	return owned(ctx, l.live, gvk, v1alpha1.LabelMachine, m)
}

// blocked returns what keeps a WorkerNode: an error, or the first pod that the drain
// cannot evict.
func blocked(wn *clusterv1alpha1.WorkerNode) string {
	if c := wn.GetCondition(xpv1.TypeSynced); wn.GetDeletionTimestamp() != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	d := wn.Status.AtProvider.Drain
	if d == nil {
		return ""
	}
	for _, p := range d.Pods {
		if p.Reason != clusterv1alpha1.ReasonPodTerminating {
			return fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, p.Reason)
		}
	}
	return ""
}
