package machinegroup

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
	"github.com/drover-dev/drover/internal/stored"
)

// atOnce is how many Machines of a group are written in parallel.
const atOnce = 8

type reconciler struct {
	client client.Client // reads from caches
	live   client.Reader
	pace   *pace
	// releases are Machines that are gone, until a status has them.
	releases *releases
}

// Reconcile carries out a group.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	g := &v1alpha1.MachineGroup{}
	if err := r.client.Get(ctx, req.NamespacedName, g); err != nil {
		r.pace.forget(req.NamespacedName)
		r.releases.forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOfNoCopy(g)
	if g.DeletionTimestamp != nil || owner == nil || stored.Faults(g) != "" { // A group without some of its fields would be another one.
		return reconcile.Result{}, nil
	}
	seen, err := r.look(ctx, g, owner.UID)
	if err != nil {
		return reconcile.Result{}, err
	}

	p := group.PlanOf(g, owner.UID, seen.machines)
	if p.Creates() {
		if old, err := r.isOld(ctx, g); err != nil || old {
			return reconcile.Result{RequeueAfter: afterConflict}, err
		}
		if ending, err := r.isEnding(ctx, g.Namespace, owner); err != nil || ending {
			return reconcile.Result{}, err
		}
	}
	created, err := r.write(ctx, g, p)
	seen.pending[v1alpha1.MachineProvisioning] += len(created)
	err = errors.Join(errors.Join(p.Errors...), err)
	// Checking whether a Machine is gone costs a live read, so it is only done for a status that is
	// written now.
	o := group.Outcome{Created: created, Gone: p.Missing, Released: r.releases.of(req.NamespacedName), Digest: seen.digest, Err: err}
	assumed := group.Status(g, p, o)
	if equality.Semantic.DeepEqual(g.Status, assumed) {
		r.releases.reported(req.NamespacedName, o.Released)
		return reconcile.Result{}, err
	}
	if wait := r.delay(g, assumed, seen.pending); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	gone, lerr := r.gone(ctx, g.Namespace, p.Missing)
	err = errors.Join(err, lerr)
	o.Gone, o.Err = gone, err
	if wait, serr := r.report(ctx, g, group.Status(g, p, o), seen.pending); serr != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, errors.Join(err, serr)
	}
	r.releases.reported(req.NamespacedName, o.Released)
	return reconcile.Result{}, err
}

// isOld reports whether a group changed since it was observed. A stale group might create a Machine
// again that was created and deleted meanwhile.
func (r *reconciler) isOld(ctx context.Context, g *v1alpha1.MachineGroup) (bool, error) {
	now, err := r.metadata(ctx, v1alpha1.MachineGroupGroupVersionKind, client.ObjectKeyFromObject(g))
	return kerrors.IsNotFound(err) || now.ResourceVersion != g.ResourceVersion, client.IgnoreNotFound(err)
}

// isEnding reports whether the set of a group is being deleted, or is gone. The function may have
// ordered Machines from a view in which other Machines were already being deleted and the set was
// not.
func (r *reconciler) isEnding(ctx context.Context, namespace string, owner *metav1.OwnerReference) (bool, error) {
	set, err := r.metadata(ctx, v1alpha1.MachineSetGroupVersionKind, types.NamespacedName{Namespace: namespace, Name: owner.Name})
	if kerrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && (set.DeletionTimestamp != nil || set.UID != owner.UID), err
}

// metadata returns the metadata of an object, read live from the API server.
func (r *reconciler) metadata(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	return m, r.live.Get(ctx, key, m)
}

// A sight is an observation of Machines.
type sight struct {
	// machines by name that the group names, or that its set controls.
	machines map[string]*v1alpha1.Machine
	// pending counts the pending Machines among those that the set controls.
	pending pendingCounts
	// digest of the Machines that the set observes.
	digest string
}

func (r *reconciler) look(ctx context.Context, g *v1alpha1.MachineGroup, owner types.UID) (sight, error) {
	list := &v1alpha1.MachineList{}
	err := r.client.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingFields{byController: string(owner)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return sight{}, err
	}
	machines, ours := map[string]*v1alpha1.Machine{}, make([]*v1alpha1.Machine, 0, len(list.Items))
	for i := range list.Items {
		ours = append(ours, &list.Items[i])
		machines[list.Items[i].Name] = &list.Items[i]
	}
	names := append([]string{}, g.Spec.Delete...)
	for _, member := range g.Spec.Machines {
		names = append(names, member.Name)
	}
	for _, name := range names {
		if machines[name] != nil {
			continue
		}
		m := &v1alpha1.Machine{}
		if err := r.client.Get(ctx, types.NamespacedName{Namespace: g.Namespace, Name: name}, m); err == nil {
			machines[name] = m
		} else if !kerrors.IsNotFound(err) {
			return sight{}, err
		}
	}
	others, err := r.others(ctx, g, owner)
	if err != nil {
		return sight{}, err
	}
	digest, err := group.Digest(owner, slices.Concat(ours, others))
	return sight{machines, countPending(ours), digest}, err
}

// others returns the Machines that the set's selector matches and that the set does not control.
func (r *reconciler) others(ctx context.Context, g *v1alpha1.MachineGroup, owner types.UID) ([]*v1alpha1.Machine, error) {
	if len(g.Spec.MatchLabels) == 0 {
		return nil, nil
	}
	list := &v1alpha1.MachineList{}
	err := r.client.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingLabels(g.Spec.MatchLabels), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	var out []*v1alpha1.Machine
	for i := range list.Items {
		if by := metav1.GetControllerOfNoCopy(&list.Items[i]); by == nil || by.UID != owner {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

// write carries out the plan, and returns the names of the Machines that it created. Deletions come
// first, because replacements are created after them. A Machine that cannot be written does not delay
// the rest of its kind of action.
func (r *reconciler) write(ctx context.Context, g *v1alpha1.MachineGroup, p group.Plan) ([]string, error) {
	err := each(p.Delete, func(m *v1alpha1.Machine) error {
		// Package finalizer expects a deletion in the foreground.
		return client.IgnoreNotFound(r.client.Delete(ctx, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}},
			client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: &m.UID}))
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var created []string
	err = each(p.Apply, func(ch group.Change) error {
		there, err := r.isThere(ctx, g.Namespace, ch)
		if err != nil {
			return err
		}
		if !there {
			if err := apply(ctx, r.client, g, ch); err != nil {
				return err
			}
		}
		if ch.Existing == nil {
			mu.Lock()
			defer mu.Unlock()
			created = append(created, ch.Name)
		}
		return nil
	})
	return created, err
}

// isThere reports whether a Machine exists that is to be created: this process, or one before it, created it and did not report
// that, and the cache does not have it yet. The template may have changed since then. Applied here, it would change a Machine whose
// VM is of the earlier one, although the set has not decided to update it in place.
func (r *reconciler) isThere(ctx context.Context, namespace string, ch group.Change) (bool, error) {
	if ch.Existing != nil {
		return false, nil
	}
	_, err := r.metadata(ctx, v1alpha1.MachineGroupVersionKind, types.NamespacedName{Namespace: namespace, Name: ch.Name})
	return err == nil, client.IgnoreNotFound(err)
}

// each calls do with all elements, several in parallel, and returns all errors.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	work := errgroup.Group{}
	work.SetLimit(atOnce)
	for i, one := range all {
		work.Go(func() error { errs[i] = do(one); return nil })
	}
	_ = work.Wait()
	return errors.Join(errs...)
}

// gone returns the names that the API server does not know.
func (r *reconciler) gone(ctx context.Context, namespace string, names []string) ([]string, error) {
	var gone []string
	for _, name := range names {
		_, err := r.metadata(ctx, v1alpha1.MachineGroupVersionKind, types.NamespacedName{Namespace: namespace, Name: name})
		switch {
		case kerrors.IsNotFound(err):
			gone = append(gone, name)
		case err != nil:
			return nil, err
		}
	}
	return gone, nil
}
