package terminator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan/deletion"
)

// afterConflict is the delay after a conflict.
const afterConflict = 200 * time.Millisecond

// A reporter writes the status of a kind of parents while they are being deleted.
type reporter struct {
	client client.Client // writes
	live   client.Reader
	views  client.Reader // cache
	record event.Recorder
	now    func() time.Time
	// machines returns the Machines of a parent, from a cache.
	machines machinesFunc
	kind     parentKind
}

// A parentKind reads and writes the status of one of the kinds.
type parentKind interface {
	empty() client.Object
	observe(client.Object) deletion.Observed
	apply(client.Object, deletion.Decision)
}

// finalizerComposite is Crossplane's. It ends when the dependents of the object are gone.
const finalizerComposite = "composite.apiextensions.crossplane.io"

// report writes the status if it has changed. It returns the delay until the next report, 0 if only
// an event requires one. The argument collected names the owner that no longer exists, empty if the
// deletion is not held.
func (r *reporter) report(ctx context.Context, key types.NamespacedName, collected string) (time.Duration, error) {
	obj := r.kind.empty()
	if err := r.live.Get(ctx, key, obj); err != nil || obj.GetDeletionTimestamp() == nil {
		return 0, client.IgnoreNotFound(err)
	}
	machines, err := r.machines(ctx, obj)
	if err != nil {
		return 0, err
	}
	o := r.kind.observe(obj)
	o.Finalizers = finalizer.Others(obj, finalizerComposite)
	o.Generation, o.Machines, o.Collected, o.IsRoot = obj.GetGeneration(), machines, collected, collected != ""
	if !o.IsRoot {
		if o.IsRoot, err = r.isRoot(ctx, obj); err != nil {
			return 0, err
		}
	}
	d := deletion.Plan(r.now(), o)
	was, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return 0, fmt.Errorf("cannot copy %T", obj)
	}
	r.kind.apply(obj, d)
	if equality.Semantic.DeepEqual(was, obj) {
		return d.CallAgain, nil
	}
	// Crossplane writes conditions too: its newer writes must not be overwritten.
	patch, err := withoutEmptyMessages(obj, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return 0, err
	}
	err = r.client.Status().Patch(ctx, obj, patch)
	switch {
	case kerrors.IsConflict(err):
		return afterConflict, nil
	case err != nil:
		return 0, client.IgnoreNotFound(err)
	}
	for _, e := range d.Events {
		if e.Warning {
			r.record.Event(obj, event.Event{Type: event.TypeWarning, Reason: event.Reason(e.Reason), Message: e.Message})
			continue
		}
		r.record.Event(obj, event.Normal(event.Reason(e.Reason), e.Message))
	}
	return d.CallAgain, nil
}

// withoutEmptyMessages returns a merge patch whose conditions have no empty messages. Crossplane's
// type of a condition omits an empty message, and metav1's does not. If one is written here,
// Crossplane writes again to remove it.
func withoutEmptyMessages(obj client.Object, p client.Patch) (client.Patch, error) {
	data, err := p.Data(obj)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("cannot decode patch: %w", err)
	}
	conditions, _, err := unstructured.NestedSlice(patch, "status", "conditions")
	if err != nil || len(conditions) == 0 {
		return p, err
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["message"] == "" {
			delete(c, "message")
		}
	}
	if err := unstructured.SetNestedSlice(patch, conditions, "status", "conditions"); err != nil {
		return nil, err
	}
	data, err = json.Marshal(patch)
	return client.RawPatch(types.MergePatchType, data), err
}

// isRoot reports whether no MachineDeployment or NodePool that controls the object is being deleted.
func (r *reporter) isRoot(ctx context.Context, obj client.Object) (bool, error) {
	by := metav1.GetControllerOfNoCopy(obj)
	kinds := []schema.GroupVersionKind{v1alpha1.MachineDeploymentGroupVersionKind, v1alpha1.NodePoolGroupVersionKind}
	i := slices.IndexFunc(kinds, func(k schema.GroupVersionKind) bool {
		return by != nil && by.Kind == k.Kind && by.APIVersion == k.GroupVersion().String()
	})
	if i < 0 {
		return true, nil
	}
	owner := finalizer.NewMetadata(kinds[i])
	err := r.views.Get(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: by.Name}, owner)
	if kerrors.IsNotFound(err) {
		return false, nil
	}
	return owner.DeletionTimestamp == nil, err
}

// pools is the kind NodePool.
type pools struct{}

func (pools) empty() client.Object { return &v1alpha1.NodePool{} }

func (pools) observe(obj client.Object) deletion.Observed {
	p, ok := obj.(*v1alpha1.NodePool)
	if !ok {
		return deletion.Observed{}
	}
	return deletion.Observed{Replicas: p.Status.DesiredReplicas, Conditions: p.Status.Conditions}
}

func (pools) apply(obj client.Object, is deletion.Decision) {
	p, ok := obj.(*v1alpha1.NodePool)
	if !ok {
		return
	}
	s := &p.Status
	s.ObservedGeneration, s.Conditions = p.Generation, is.Conditions
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.TerminatingReplicas = is.Replicas, is.Ready, is.Available, is.Terminating
	s.UpdatedReplicas, s.UnhealthyReplicas = min(s.UpdatedReplicas, is.Replicas), 0
	// Each MachineDeployment reports its own failure domain.
	s.FailureDomains = nil
}

// deployments is the kind MachineDeployment.
type deployments struct{}

func (deployments) empty() client.Object { return &v1alpha1.MachineDeployment{} }

func (deployments) observe(obj client.Object) deletion.Observed {
	d, ok := obj.(*v1alpha1.MachineDeployment)
	if !ok {
		return deletion.Observed{}
	}
	return deletion.Observed{Replicas: d.Spec.Replicas, MinReadySeconds: d.Spec.MinReadySeconds, Conditions: d.Status.Conditions}
}

func (deployments) apply(obj client.Object, is deletion.Decision) {
	d, ok := obj.(*v1alpha1.MachineDeployment)
	if !ok {
		return
	}
	s := &d.Status
	s.ObservedGeneration, s.Conditions = d.Generation, is.Conditions
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.TerminatingReplicas = is.Replicas, is.Ready, is.Available, is.Terminating
	s.UpdatedReplicas, s.UnavailableReplicas = min(s.UpdatedReplicas, is.Replicas), max(0, d.Spec.Replicas-is.Available)
	// No Machine is remediated or created any more.
	s.UnhealthyReplicas, s.PreservedFailedReplicas, s.Exhausted = 0, 0, nil
}

// sets is the kind MachineSet.
type sets struct{}

func (sets) empty() client.Object { return &v1alpha1.MachineSet{} }

func (sets) observe(obj client.Object) deletion.Observed {
	s, ok := obj.(*v1alpha1.MachineSet)
	if !ok {
		return deletion.Observed{}
	}
	return deletion.Observed{Replicas: s.Spec.Replicas, MinReadySeconds: s.Spec.MinReadySeconds, Conditions: s.Status.Conditions}
}

func (sets) apply(obj client.Object, is deletion.Decision) {
	set, ok := obj.(*v1alpha1.MachineSet)
	if !ok {
		return
	}
	s := &set.Status
	s.ObservedGeneration, s.DecidedGeneration, s.Conditions = set.Generation, set.Generation, is.Conditions
	s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.TerminatingReplicas = is.Replicas, is.Ready, is.Available, is.Terminating
	s.UpdatedReplicas, s.UpdatedAvailableReplicas = min(s.UpdatedReplicas, is.Replicas), min(s.UpdatedAvailableReplicas, is.Available)
	s.StartingReplicas, s.UnhealthyReplicas, s.ReplaceableReplicas, s.RebootableReplicas, s.PreservedFailedReplicas, s.MarkedReplicas = 0, 0, 0, 0, 0, 0
	s.Exhausted, s.Backoff = nil, nil
}
