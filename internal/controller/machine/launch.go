package machine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/internal/plan"
)

// launch applies the desired resources that differ from those that exist, and deletes those that are not
// desired any more. isCurrent means that the API server has just accepted a write to the Machine.
func (r *Reconciler) launch(ctx context.Context, f *facts, d decision, isCurrent bool) error {
	desired := d.Desired.GetResources()
	for _, role := range slices.Sorted(maps.Keys(desired)) {
		want, err := compose(f.machine, role, desired[role])
		if err != nil {
			return err
		}
		if err := r.watchKinds([]schema.GroupVersionKind{want.GroupVersionKind()}); err != nil {
			return err
		}
		observed := f.observed[role]
		if observed == nil && !isCurrent {
			if err := r.checkAlive(ctx, f.machine); err != nil {
				return err
			}
			isCurrent = true
		}
		if !needsApply(observed, want) {
			continue
		}
		if err := r.apply(ctx, want, observed); err != nil {
			return fmt.Errorf("cannot apply %s %q (%s): %w", want.GetKind(), want.GetName(), role, err)
		}
	}
	if err := r.releaseDeletedDependents(ctx, f); err != nil {
		return err
	}
	if err := r.discardRefused(ctx, f, d); err != nil {
		return err
	}
	return r.discard(ctx, f, desired)
}

// discardRefused deletes the VM resource whose instance type the cloud refused. The refusal is in the status by now, and
// another resource is created for the next instance type when this one is gone.
//
// There is never a second VM. crossplane-runtime writes the begin of a creation to the resource first, by the version that
// it read, and the resource is deleted by the version that the refusal was read from: of both, the API server accepts one.
// A resource that is being deleted is not created any more, and what exists of its VM is deleted before the resource.
func (r *Reconciler) discardRefused(ctx context.Context, f *facts, d decision) error {
	seen := f.observed[machinev1alpha1.ResourceVM]
	if seen == nil || d.vm.Discard == "" || seen.GetUID() != d.vm.Discard {
		return nil
	}
	if err := r.checkAlive(ctx, f.machine); err != nil {
		return err
	}
	if seen.GetDeletionTimestamp() == nil {
		uid, version := seen.GetUID(), seen.GetResourceVersion()
		if err := r.client.Delete(ctx, seen.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version}); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	now, err := r.readLive(ctx, seen.GroupVersionKind(), client.ObjectKeyFromObject(seen))
	if err != nil || now == nil || now.GetUID() != seen.GetUID() || now.GetDeletionTimestamp() == nil || !isHeld(now) {
		return err
	}
	return release(ctx, r.client, now.GroupVersionKind(), now, r.now())
}

// releaseDeletedDependents lets the provider delete the companions that depend on the VM and that a user
// deleted. When they are gone, the pipeline composes them again. The API server must confirm that the Machine is
// not being deleted: the garbage collector deletes the companions of such a Machine before its Node is drained.
func (r *Reconciler) releaseDeletedDependents(ctx context.Context, f *facts) error {
	var errs []error
	for role, obj := range f.observed {
		if !isDeletedDependent(role, obj) {
			continue
		}
		if err := r.checkAlive(ctx, f.machine); err != nil {
			return err
		}
		change := release
		if !isHeld(obj) {
			change = forget
		}
		errs = append(errs, change(ctx, r.client, obj.GroupVersionKind(), obj, r.now()))
	}
	return errors.Join(errs...)
}

// isDeletedDependent reports whether a companion that depends on the VM is being deleted, and its provider needs
// a permission for that: to delete it, or to forget a creation whose end was not recorded.
func isDeletedDependent(role string, obj *unstructured.Unstructured) bool {
	return machinev1alpha1.IsCompanion(role) && plan.IsAfterVM(obj) && obj.GetDeletionTimestamp() != nil &&
		(isHeld(obj) || xpmeta.ExternalCreateIncomplete(obj))
}

// isLaunched reports whether launch has nothing to do.
func (f *facts) isLaunched(d decision) (bool, error) {
	desired := d.Desired.GetResources()
	for role, res := range desired {
		want, err := compose(f.machine, role, res)
		if err != nil {
			return false, err
		}
		if needsApply(f.observed[role], want) {
			return false, nil
		}
	}
	for role, obj := range f.observed {
		if isDiscarded(desired, role, obj) || isDeletedDependent(role, obj) || role == machinev1alpha1.ResourceVM && obj.GetUID() == d.vm.Discard {
			return false, nil
		}
	}
	return true, nil
}

// checkAlive fails unless the Machine exists and is not being deleted, so that nothing is created for it
// otherwise.
func (r *Reconciler) checkAlive(ctx context.Context, m *machinev1alpha1.Machine) error {
	now, err := r.lookAt(ctx, m)
	if err == nil && now.GetDeletionTimestamp() != nil {
		return errMachineChanged
	}
	return err
}

// lookAt reads a Machine from the API server. It fails if the Machine does not exist.
func (r *Reconciler) lookAt(ctx context.Context, m *machinev1alpha1.Machine) (*metav1.PartialObjectMetadata, error) {
	now := finalizer.NewMetadata(machineKind)
	err := r.live.Get(ctx, client.ObjectKeyFromObject(m), now)
	if kerrors.IsNotFound(err) || err == nil && now.GetUID() != m.GetUID() {
		return nil, errMachineChanged
	}
	return now, err
}

// discard deletes the resources that the pipeline does not desire any more, except for the VM and its
// companions: the deletion of their Machine deletes these, and discardRefused a VM resource without a VM.
func (r *Reconciler) discard(ctx context.Context, f *facts, desired map[string]*fnv1.Resource) error {
	var errs []error
	for role, obj := range f.observed {
		if !isDiscarded(desired, role, obj) {
			continue
		}
		uid := obj.GetUID()
		errs = append(errs, client.IgnoreNotFound(r.client.Delete(ctx, obj.DeepCopy(), client.Preconditions{UID: &uid})))
	}
	return errors.Join(errs...)
}

func isDiscarded(desired map[string]*fnv1.Resource, role string, obj *unstructured.Unstructured) bool {
	_, isDesired := desired[role]
	return !isDesired && !machinev1alpha1.IsInfrastructure(role) && obj.GetDeletionTimestamp() == nil
}

func (r *Reconciler) apply(ctx context.Context, want, observed *unstructured.Unstructured) error {
	if observed != nil {
		// With a UID the API server refuses to recreate a resource that is gone.
		want.SetUID(observed.GetUID())
	}
	if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(want), fieldOwner, client.ForceOwnership); err != nil {
		return err
	}
	want.SetManagedFields(nil)
	r.written.put(want)
	return nil
}

// compose returns a resource as it is applied: in the Machine's namespace, controlled by the Machine, with a
// deterministic name.
func compose(m *machinev1alpha1.Machine, role string, res *fnv1.Resource) (*unstructured.Unstructured, error) {
	raw, err := res.GetResource().MarshalJSON()
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &u.Object); err != nil {
		return nil, err
	}
	if ns := u.GetNamespace(); ns != "" && ns != m.GetNamespace() {
		return nil, fmt.Errorf("resource %q of the pipeline: metadata.namespace: invalid value %q: must be empty or the Machine's, %q", role, ns, m.GetNamespace())
	}
	delete(u.Object, "status")
	u.SetNamespace(m.GetNamespace())
	u.SetName(nameOf(m, role, u))
	owner := metav1.NewControllerRef(m, machineKind)
	u.SetOwnerReferences([]metav1.OwnerReference{*owner})
	u.SetLabels(labels.Merge(u.GetLabels(), labels.Set{labelComposite: m.GetName()}))
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{roleAnnotation: role}))
	hash, err := hashOf(u)
	if err != nil {
		return nil, err
	}
	u.SetAnnotations(labels.Merge(u.GetAnnotations(), labels.Set{machinev1alpha1.AnnotationAppliedHash: hash}))
	return u, nil
}

func nameOf(m *machinev1alpha1.Machine, role string, u *unstructured.Unstructured) string {
	if u.GetName() != "" {
		return u.GetName()
	}
	return names.OfCompanion(m.GetName(), m.GetUID(), role)
}

func hashOf(u *unstructured.Unstructured) (string, error) {
	b, err := json.Marshal(u.Object)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8]), nil
}

// needsApply reports whether a desired resource differs from the one that exists. It does not if the existing
// resource has all desired fields, and no field was desired before that is not desired now, by the hash of the
// last apply. A spec that is exactly the desired one needs no apply, whatever the hash is.
func needsApply(observed, want *unstructured.Unstructured) bool {
	switch {
	case observed == nil:
		return true
	case observed.GetDeletionTimestamp() != nil:
		return false // Its spec cannot matter any more.
	}
	was, is := normal(observed.Object), normal(want.Object)
	wantMeta, _ := is["metadata"].(map[string]any)
	annotations, _ := wantMeta["annotations"].(map[string]any)
	hash := annotations[machinev1alpha1.AnnotationAppliedHash]
	delete(annotations, machinev1alpha1.AnnotationAppliedHash)
	delete(wantMeta, "uid")
	if !covers(was, is) {
		return true
	}
	return observed.GetAnnotations()[machinev1alpha1.AnnotationAppliedHash] != hash && !equal(was["spec"], is["spec"])
}

// normal returns a copy with numbers as in JSON.
func normal(raw map[string]any) map[string]any {
	return runtime.DeepCopyJSON(raw)
}

// covers reports whether an object has all desired fields.
func covers(is, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		m, ok := is.(map[string]any)
		if !ok {
			return is == nil && len(w) == 0
		}
		for k, v := range w {
			if !covers(m[k], v) {
				return false
			}
		}
		return true
	case []any:
		l, ok := is.([]any)
		if !ok {
			return is == nil && len(w) == 0
		}
		if len(l) < len(w) {
			return false
		}
		return coversList(l, w)
	}
	return equal(is, want)
}

// coversList compares the lists that the API server merges, such as finalizers and owner references. It ignores
// their order and additional items.
func coversList(is, want []any) bool {
	for _, w := range want {
		if !slices.ContainsFunc(is, func(i any) bool { return covers(i, w) }) {
			return false
		}
	}
	return true
}

// equal compares JSON values. A number may be an int64 in one and a float64 in the other.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k, v := range x {
			if w, there := y[k]; !there || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equal)
	}
	if x, ok := number(a); ok {
		y, isNumber := number(b)
		return isNumber && x == y
	}
	return a == b
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
