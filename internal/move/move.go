package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// annotationMove is on objects that are being moved: on those of the source the installation
	// that they go to, on their copies the one that they come from.
	annotationMove = machinev1alpha1.Group + "/move"

	// annotationFrom stays on moved objects: its value is the installation that they came from.
	annotationFrom = machinev1alpha1.Group + "/moved-from"

	// annotationKinds of the copy of a Machine are the kinds of all VMs and companions of the move.
	annotationKinds = machinev1alpha1.Group + "/move-kinds"

	annotationPaused = xpmeta.AnnotationKeyReconciliationPaused
)

// interval between two reads of the objects that a step waits for.
const interval = time.Second

var definitionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}

// A Move of a namespace.
type Move struct {
	// Source is nil for a move from a directory.
	Source client.Client
	// Saved objects replace those of the Source.
	Saved *Objects
	// SourceIsGone means that no control cluster runs the Machines of the Saved objects any more.
	SourceIsGone bool

	Destination client.Client
	Namespace   string
	// Timeout of each step.
	Timeout time.Duration
	// Log is called with each action.
	Log func(format string, args ...any)

	from, to string // installations
	// every is the interval of the reads, the constant interval if it is zero.
	every time.Duration
}

// Run runs the move. After an error it may be run again.
func (m *Move) Run(ctx context.Context) error {
	if err := m.installations(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{m.check, m.pause, m.copy, m.letGo, m.takeOn}
	if m.Source == nil {
		steps = []func(context.Context) error{m.check, m.copy, m.takeOn}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	m.Log("the namespace %s has moved", m.Namespace)
	return nil
}

func (m *Move) installations(ctx context.Context) (err error) {
	if m.to, err = Installation(ctx, m.Destination); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	if m.Source == nil {
		return nil
	}
	if m.from, err = Installation(ctx, m.Source); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if m.from == m.to {
		return fmt.Errorf("the source and the destination are the same control cluster: both have the installation %s", m.to)
	}
	return nil
}

// Installation returns the ID of the installation of Drover in a control cluster.
func Installation(ctx context.Context, c client.Reader) (string, error) {
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(definitionKind)
	if err := c.Get(ctx, client.ObjectKey{Name: machinev1alpha1.DefinitionOfInstallation}, d); err != nil {
		return "", fmt.Errorf("cannot read the CompositeResourceDefinition %s: is the Configuration drover installed? %w", machinev1alpha1.DefinitionOfInstallation, err)
	}
	return string(d.GetUID()), nil
}

// objects returns the objects to copy.
func (m *Move) objects(ctx context.Context) (Objects, error) {
	if m.Source == nil {
		return *m.Saved, nil
	}
	return Read(ctx, m.Source, m.Namespace)
}

// pause pauses the objects of the source. Objects that are being deleted must be gone first.
func (m *Move) pause(ctx context.Context) error {
	return m.await(ctx, "the source does not rest", func(ctx context.Context) (string, error) {
		o, err := m.objects(ctx)
		if err != nil {
			return "", err
		}
		var waiting []string
		objects := o.All()
		// No loop over slices.Backward: go1.26 compiles it, in a method that is used as a value, to a closure on the heap
		// with a pointer to the stack that m is on, and the pointer is wrong once the stack has moved.
		slices.Reverse(objects)
		for _, obj := range objects {
			switch {
			case obj.GetDeletionTimestamp() != nil && obj.GetAnnotations()[annotationMove] == "":
				waiting = append(waiting, describe(obj)+" is being deleted")
				continue
			case obj.GetAnnotations()[annotationMove] != m.to || !xpmeta.IsPaused(obj):
				m.Log("pausing %s", describe(obj))
				if err := m.patch(ctx, m.Source, obj, func(is *unstructured.Unstructured) {
					xpmeta.AddAnnotations(is, map[string]string{annotationPaused: "true", annotationMove: m.to})
				}); err != nil {
					return "", err
				}
				waiting = append(waiting, describe(obj)+" is being paused")
			case obj.GetDeletionTimestamp() == nil && !rests(obj):
				waiting = append(waiting, describe(obj)+" is being paused")
			}
		}
		unsettled, err := m.unsettled(ctx)
		return strings.Join(append(waiting, unsettled...), ", "), err
	})
}

// rests reports whether the controller of an object has reported that it is paused.
func rests(obj *unstructured.Unstructured) bool {
	s := struct {
		Status xpv2.ConditionedStatus `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &s); err != nil {
		return false
	}
	return s.Status.GetCondition(xpv2.TypeSynced).Reason == xpv2.ReasonReconcilePaused
}

// unsettled returns the MachineGroups that are still being carried out: Machines may be created or deleted.
func (m *Move) unsettled(ctx context.Context) ([]string, error) {
	groups, err := list(ctx, m.Source, machinev1alpha1.MachineGroupGroupVersionKind, m.Namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, u := range groups {
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		if u.GetDeletionTimestamp() == nil && observed != u.GetGeneration() {
			out = append(out, describe(u)+" is being carried out")
		}
	}
	return out, nil
}

// copy copies the objects into the destination, paused.
func (m *Move) copy(ctx context.Context) error {
	o, err := m.objects(ctx)
	if err != nil {
		return err
	}
	resources, err := o.kinds()
	if err != nil {
		return err
	}
	var kinds []string
	for _, k := range resources {
		kinds = append(kinds, k.Kind+"."+k.Version+"."+k.Group)
	}
	for _, obj := range o.All() {
		if m.Source != nil && (obj.GetDeletionTimestamp() != nil || obj.GetAnnotations()[annotationMove] != m.to) {
			continue // It was copied before its deletion began.
		}
		is := copyOf(obj)
		xpmeta.AddAnnotations(is, map[string]string{annotationPaused: "true", annotationMove: m.origin(obj)})
		if len(kinds) > 0 && obj.GetKind() == machinev1alpha1.MachineGroupVersionKind.Kind {
			xpmeta.AddAnnotations(is, map[string]string{annotationKinds: strings.Join(kinds, ",")})
		}
		err := m.Destination.Create(ctx, is)
		switch {
		case err == nil:
			m.Log("copied %s", describe(obj))
		case !kerrors.IsAlreadyExists(err):
			return fmt.Errorf("destination: cannot create %s: %w", describe(obj), err)
		}
	}
	return nil
}

// origin returns the origin of a copy, which is never empty.
func (m *Move) origin(obj *unstructured.Unstructured) string {
	if m.from != "" {
		return m.from
	}
	if of := obj.GetAnnotations()[machinev1alpha1.AnnotationInstallation]; of != "" {
		return of
	}
	return "saved"
}

// letGo removes all objects in the source. The permission to delete VMs is removed first.
func (m *Move) letGo(ctx context.Context) error {
	o, err := m.objects(ctx)
	if err != nil {
		return err
	}
	for _, r := range o.Resources {
		policies, _, _ := unstructured.NestedStringSlice(r.Object, "spec", "managementPolicies")
		if slices.Equal(policies, []string{"Observe"}) {
			continue
		}
		m.Log("letting go of %s", describe(r))
		if err := m.patch(ctx, m.Source, r, func(is *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(is.Object, []string{"Observe"}, "spec", "managementPolicies")
		}); err != nil {
			return err
		}
	}
	// A VM resource is deleted while its Machine exists and is paused: no controller recreates it, and a restarted
	// move finds its kind.
	for _, part := range []func(Objects) []*unstructured.Unstructured{
		func(o Objects) []*unstructured.Unstructured { return o.Resources },
		func(o Objects) []*unstructured.Unstructured {
			return slices.Concat(o.Pools, o.Deployments, o.Sets, o.Machines)
		},
	} {
		if err := m.remove(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a part of the objects of the source, without their finalizers.
func (m *Move) remove(ctx context.Context, part func(Objects) []*unstructured.Unstructured) error {
	return m.await(ctx, "the source keeps objects", func(ctx context.Context) (string, error) {
		o, err := m.objects(ctx)
		if err != nil {
			return "", err
		}
		var left []string
		for _, obj := range part(o) {
			left = append(left, describe(obj))
			if obj.GetAnnotations()[annotationMove] != m.to {
				return "", fmt.Errorf("source: %s came after the others were moved: who creates Machines there? Delete it, and start the move again", describe(obj))
			}
			if obj.GetDeletionTimestamp() == nil {
				uid := obj.GetUID()
				if err := m.Source.Delete(ctx, obj.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
					return "", fmt.Errorf("source: cannot delete %s: %w", describe(obj), err)
				}
				continue
			}
			if err := m.patch(ctx, m.Source, obj, func(is *unstructured.Unstructured) { is.SetFinalizers(nil) }); err != nil {
				return "", err
			}
		}
		return strings.Join(left, ", "), nil
	})
}

// takeOn resumes the copies, VMs first: each level is resumed after the one below it is taken over.
func (m *Move) takeOn(ctx context.Context) error {
	return m.await(ctx, "the destination does not take over all", func(ctx context.Context) (string, error) {
		o, err := m.copies(ctx)
		if err != nil {
			return "", err
		}
		for _, level := range o.levels() {
			if len(level) == 0 {
				continue
			}
			if waiting, err := m.untaken(ctx, level[0].GetKind()); waiting != "" || err != nil {
				return waiting, err
			}
			var names []string
			for _, obj := range level {
				m.Log("taking on %s", describe(obj))
				names = append(names, describe(obj))
				if err := m.patch(ctx, m.Destination, obj, m.resume); err != nil {
					return "", err
				}
			}
			return strings.Join(names, ", "), nil
		}
		return m.untaken(ctx, "")
	})
}

func (m *Move) resume(is *unstructured.Unstructured) {
	a := is.GetAnnotations()
	a[annotationFrom] = a[annotationMove]
	delete(a, annotationPaused)
	delete(a, annotationMove)
	delete(a, annotationKinds)
	if isInfrastructure(is) && a[machinev1alpha1.AnnotationInstallation] != "" && (m.Source != nil || m.SourceIsGone) {
		a[machinev1alpha1.AnnotationInstallation] = m.to
	}
	is.SetAnnotations(a)
}

// copies returns the copies in the destination that are not taken over yet.
func (m *Move) copies(ctx context.Context) (Objects, error) {
	kinds, err := m.resourceKinds(ctx)
	if err != nil {
		return Objects{}, err
	}
	o, err := readFleet(ctx, m.Destination, m.Namespace)
	if err == nil {
		err = o.readResources(ctx, m.Destination, m.Namespace, kinds)
	}
	if err != nil {
		return o, err
	}
	for _, l := range []*[]*unstructured.Unstructured{&o.Resources, &o.Machines, &o.Sets, &o.Deployments, &o.Pools} {
		*l = slices.DeleteFunc(*l, func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[annotationMove] == "" })
	}
	return o, nil
}

// await repeats a function until it reports nothing to wait for. An error ends it.
func (m *Move) await(ctx context.Context, what string, done func(context.Context) (string, error)) error {
	waiting := ""
	err := wait.PollUntilContextTimeout(ctx, cmp.Or(m.every, interval), m.Timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		waiting, err = done(ctx)
		if kerrors.IsConflict(err) {
			waiting, err = err.Error(), nil // Another client wrote: the next attempt reads it.
		}
		return waiting == "" && err == nil, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s after %s: %s. The move can be started again", what, m.Timeout, waiting)
	}
	return err
}

// patch patches an object, unless it changed since it was read.
func (m *Move) patch(ctx context.Context, c client.Client, obj *unstructured.Unstructured, change func(*unstructured.Unstructured)) error {
	is := obj.DeepCopy()
	change(is)
	err := c.Patch(ctx, is, client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot change %s: %w", describe(obj), err)
	}
	return nil
}

func machineOf(u *unstructured.Unstructured) (*machinev1alpha1.Machine, error) {
	m := &machinev1alpha1.Machine{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, m); err != nil {
		return nil, fmt.Errorf("cannot read Machine %s: %w", u.GetName(), err)
	}
	return m, nil
}
