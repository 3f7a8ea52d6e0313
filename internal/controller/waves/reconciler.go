package waves

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/waves"
)

const (
	// pace is the time between two reconciles at least: during a rollout of a fleet, MachineDeployments change all the time.
	pace = time.Second
	// page is how many MachineDeployments the API server returns at a time.
	page = 250
)

type reconciler struct {
	// client reads from the cache, and writes.
	client client.Client
	// live reads from the API server.
	live   client.Reader
	record event.Recorder
	now    func() time.Time
	// last reconcile.
	last time.Time
}

// Reconcile all policies and turns.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if left := r.last.Add(pace).Sub(r.now()); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	policies, turns := &machinev1alpha1.RolloutPolicyList{}, &machinev1alpha1.RolloutTurnList{}
	if err := r.client.List(ctx, policies); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.client.List(ctx, turns); err != nil {
		return reconcile.Result{}, err
	}
	if len(policies.Items)+len(turns.Items) == 0 {
		return reconcile.Result{}, nil
	}
	r.last = r.now()
	o := waves.Observed{Turns: map[types.UID]*machinev1alpha1.RolloutTurn{}}
	for i := range policies.Items {
		if p := &policies.Items[i]; p.DeletionTimestamp == nil {
			o.Policies = append(o.Policies, p)
		}
	}
	for i := range turns.Items {
		t := &turns.Items[i]
		if by := metav1.GetControllerOfNoCopy(t); by != nil && t.DeletionTimestamp == nil {
			o.Turns[by.UID] = t
		}
	}
	var err error
	if o.Members, err = r.members(ctx, r.client); err != nil {
		return reconcile.Result{}, err
	}
	d := waves.Plan(r.now(), o)
	if d.Begins {
		if o.Members, err = r.members(ctx, r.live, client.Limit(page)); err != nil {
			return reconcile.Result{}, err
		}
		d = waves.Plan(r.now(), o)
	}
	if err := r.write(ctx, o, d); err != nil {
		if kerrors.IsConflict(err) {
			// The cache soon has the newer version.
			return reconcile.Result{RequeueAfter: pace}, nil
		}
		return reconcile.Result{}, err
	}
	if d.Next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(pace, d.Next.Sub(r.now()))}, nil
}

// write the states of policies, and then the answers that follow from them.
func (r *reconciler) write(ctx context.Context, o waves.Observed, d waves.Decision) error {
	for _, p := range o.Policies {
		s, changed := d.Policies[p.Name]
		if !changed {
			continue
		}
		p = p.DeepCopy()
		p.Status = s
		if err := r.client.Status().Update(ctx, p); client.IgnoreNotFound(err) != nil {
			return err
		}
		for _, e := range d.Events[p.Name] {
			r.record.Event(p, event.Event{Type: event.TypeWarning, Reason: event.Reason(e.Reason), Message: e.Message})
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(d.Answers)) {
		t := o.Turns[uid].DeepCopy()
		t.Status = d.Answers[uid]
		if err := r.client.Status().Update(ctx, t); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// members are all MachineDeployments. Those that are being deleted have no rollout. A limit is for the API server: a cache would
// return no more than that.
func (r *reconciler) members(ctx context.Context, from client.Reader, limit ...client.ListOption) ([]waves.Member, error) {
	pools := &metav1.PartialObjectMetadataList{}
	pools.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind(machinev1alpha1.NodePoolGroupVersionKind.Kind + "List"))
	if err := r.client.List(ctx, pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	labels := map[types.UID]map[string]string{}
	for i := range pools.Items {
		labels[pools.Items[i].UID] = pools.Items[i].Labels
	}
	var out []waves.Member
	list := &machinev1alpha1.MachineDeploymentList{}
	for {
		opts := append(slices.Clone(limit), client.UnsafeDisableDeepCopy)
		if list.Continue != "" {
			opts = append(opts, client.Continue(list.Continue))
		}
		if err := from.List(ctx, list, opts...); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.DeletionTimestamp == nil {
				out = append(out, memberOf(d, labels))
			}
		}
		// A cache returns all at once, and sets a Continue that it refuses.
		if len(limit) == 0 || list.Continue == "" {
			return out, nil
		}
	}
}

// memberOf a MachineDeployment, by the labels of NodePools by their UIDs.
func memberOf(d *machinev1alpha1.MachineDeployment, pools map[types.UID]map[string]string) waves.Member {
	m := waves.Member{Namespace: d.Namespace, Name: d.Name, UID: d.UID, Labels: d.Labels, Cluster: deployment.Template(d).Spec.ClusterRef}
	if by := metav1.GetControllerOfNoCopy(d); by != nil && by.Kind == machinev1alpha1.NodePoolGroupVersionKind.Kind {
		m.Labels = pools[by.UID]
	}
	m.State, m.Completed = deployment.MemberState(d)
	return m
}
