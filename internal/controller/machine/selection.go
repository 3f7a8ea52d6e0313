package machine

import (
	"context"
	"fmt"
	"maps"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

// labelComposition is the label of a CompositionRevision that names its Composition.
const labelComposition = "crossplane.io/composition-name"

// A selection is the CompositionRevision that a Machine follows.
type selection struct {
	// revision is nil if there is a problem.
	revision *unstructured.Unstructured
	// problem that a user can fix.
	problem *plan.Problem
	// pin means that the policy is Manual and the Machine names no revision yet.
	pin bool
}

// choose selects the CompositionRevision that the Machine follows, as Crossplane does for composite resources.
// By default it is one of the Composition for the provider of its class. One for another provider is refused:
// the class would choose an account and fields of another cloud, which its author may not use.
func (r *Reconciler) choose(ctx context.Context, m *machinev1alpha1.Machine) (selection, error) {
	chosen, err := r.selected(ctx, m)
	if err != nil || chosen.revision == nil {
		return chosen, err
	}
	problem, err := r.foreign(ctx, m, chosen.revision)
	if err != nil || problem != nil {
		return selection{problem: problem}, err
	}
	return chosen, nil
}

// foreign returns a problem if the Machine's class is of another provider than a revision. A Machine keeps the
// Composition that it follows: its class may have been deleted and created again.
func (r *Reconciler) foreign(ctx context.Context, m *machinev1alpha1.Machine, revision *unstructured.Unstructured) (*plan.Problem, error) {
	if r.compositionOf(ctx, m.Status.CompositionRevision) == revision.GetLabels()[labelComposition] {
		return nil, nil
	}
	class, _, err := r.classOf(ctx, m)
	if err != nil || class == nil {
		return nil, err
	}
	return plan.ForeignComposition(class, revision), nil
}

// selected returns what the Machine selects, of whatever provider it is.
func (r *Reconciler) selected(ctx context.Context, m *machinev1alpha1.Machine) (selection, error) {
	s := machinev1alpha1.CompositionSelection{}
	if m.Spec.Crossplane != nil {
		s = *m.Spec.Crossplane
	}
	isManual := s.CompositionUpdatePolicy == machinev1alpha1.CompositionUpdateManual
	if isManual && s.CompositionRevisionRef != nil {
		return r.manual(ctx, s.CompositionRevisionRef.Name)
	}
	where, problem, err := r.compositionsFor(ctx, m, s)
	if err != nil || problem != nil {
		return selection{problem: problem}, err
	}
	if s.CompositionRevisionSelector != nil {
		where.labels = labels.Merge(where.labels, s.CompositionRevisionSelector.MatchLabels)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(revisionKind.GroupVersion().WithKind(revisionKind.Kind + "List"))
	if err := r.resources.List(ctx, list, client.MatchingLabels(where.labels), client.UnsafeDisableDeepCopy); err != nil {
		return selection{}, fmt.Errorf("cannot list CompositionRevisions: %w", err)
	}
	revision := latest(list.Items)
	if revision == nil {
		return selection{problem: &plan.Problem{Reason: machinev1alpha1.ReasonCompositionNotFound, Message: where.notFound}}, nil
	}
	return selection{revision: revision, pin: isManual}, nil
}

// manual selects the revision with a name, which must be one of Machines.
func (r *Reconciler) manual(ctx context.Context, name string) (selection, error) {
	s, err := r.pinned(ctx, name)
	if err == nil && s.revision != nil && !plan.ComposesMachines(s.revision) {
		return selection{problem: &plan.Problem{
			Reason:  machinev1alpha1.ReasonCompositionNotFound,
			Message: fmt.Sprintf("spec.crossplane.compositionRevisionRef.name: the CompositionRevision %q does not compose Machines", name),
		}}, nil
	}
	return s, err
}

func (r *Reconciler) pinned(ctx context.Context, name string) (selection, error) {
	revision := &unstructured.Unstructured{}
	revision.SetGroupVersionKind(revisionKind)
	err := r.resources.Get(ctx, types.NamespacedName{Name: name}, revision, client.UnsafeDisableDeepCopy)
	if kerrors.IsNotFound(err) {
		return selection{problem: &plan.Problem{
			Reason:  machinev1alpha1.ReasonCompositionNotFound,
			Message: fmt.Sprintf("spec.crossplane.compositionRevisionRef.name: there is no CompositionRevision %q", name),
		}}, nil
	}
	return selection{revision: revision}, err
}

// A compositionQuery selects revisions by labels: a revision has the labels of its Composition.
type compositionQuery struct {
	labels map[string]string
	// notFound is the message if nothing is selected.
	notFound string
}

func (r *Reconciler) compositionsFor(ctx context.Context, m *machinev1alpha1.Machine, s machinev1alpha1.CompositionSelection) (compositionQuery, *plan.Problem, error) {
	switch {
	case s.CompositionRef != nil:
		return compositionQuery{
			labels:   map[string]string{labelComposition: s.CompositionRef.Name},
			notFound: fmt.Sprintf("spec.crossplane.compositionRef.name: there is no Composition %q of Machines with a revision", s.CompositionRef.Name),
		}, nil, nil
	case s.CompositionSelector != nil:
		return compositionQuery{
			labels:   maps.Clone(s.CompositionSelector.MatchLabels),
			notFound: fmt.Sprintf("spec.crossplane.compositionSelector.matchLabels: there is no Composition of Machines with the labels %s", labels.Set(s.CompositionSelector.MatchLabels)),
		}, nil, nil
	}
	class, problem, err := r.classOf(ctx, m)
	switch {
	case err != nil:
		return compositionQuery{}, nil, err
	case class != nil:
		return compositionQuery{
			labels:   map[string]string{machinev1alpha1.LabelProvider: class.Spec.Provider},
			notFound: plan.NoComposition(class).Message,
		}, nil, nil
	}
	// A Machine keeps its Composition when its class is deleted or no longer serves its namespace.
	if before := r.compositionOf(ctx, m.Status.CompositionRevision); before != "" {
		return compositionQuery{
			labels:   map[string]string{labelComposition: before},
			notFound: fmt.Sprintf("there is no revision of the Composition %q, which the Machine followed", before),
		}, nil, nil
	}
	return compositionQuery{}, problem, nil
}

// classOf returns the class of the Machine, or the problem if there is none that serves its namespace.
func (r *Reconciler) classOf(ctx context.Context, m *machinev1alpha1.Machine) (*machinev1alpha1.MachineClass, *plan.Problem, error) {
	const field = "spec.classRef.name"
	ref := m.Spec.ClassRef
	cluster, class := &machinev1alpha1.ClusterMachineClass{}, &machinev1alpha1.MachineClass{}
	var err error
	if ref.IsCluster() {
		err = r.client.Get(ctx, types.NamespacedName{Name: ref.Name}, cluster)
	} else {
		err = r.client.Get(ctx, types.NamespacedName{Namespace: m.GetNamespace(), Name: ref.Name}, class)
	}
	switch {
	case kerrors.IsNotFound(err):
		return nil, plan.NoClass(m, field), nil
	case err != nil:
		return nil, nil, err
	case !ref.IsCluster():
		return class, nil, nil
	}
	if problem := plan.Admit(cluster, m, field); problem != nil {
		return nil, problem, nil
	}
	return cluster.AsMachineClass(), nil, nil
}

// compositionOf returns the Composition of a revision, empty if the revision does not exist.
func (r *Reconciler) compositionOf(ctx context.Context, revision string) string {
	if revision == "" {
		return ""
	}
	s, err := r.pinned(ctx, revision)
	if err != nil || s.revision == nil {
		return ""
	}
	return s.revision.GetLabels()[labelComposition]
}

// latest returns the latest revision of Machines. If several Compositions match, it is one of the first by
// name, so that the same view gives the same result.
func latest(revisions []unstructured.Unstructured) *unstructured.Unstructured {
	var best *unstructured.Unstructured
	for i := range revisions {
		candidate := &revisions[i]
		if !plan.ComposesMachines(candidate) {
			continue
		}
		if best == nil || isPreferred(candidate, best) {
			best = candidate
		}
	}
	return best
}

func isPreferred(a, b *unstructured.Unstructured) bool {
	ofA, ofB := a.GetLabels()[labelComposition], b.GetLabels()[labelComposition]
	if ofA != ofB {
		return ofA < ofB
	}
	return revisionNumber(a) > revisionNumber(b)
}

func revisionNumber(revision *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(revision.Object, "spec", "revision")
	return n
}
