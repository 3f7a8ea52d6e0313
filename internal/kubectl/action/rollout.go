package action

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// AnnotationRestartedAt is the annotation of the template that kubectl rollout restart writes. The annotations
// of a template are part of its revision: a change rolls.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Pause returns the change that holds the rollouts of a MachineDeployment or NodePool. As in kubectl, it is an
// error if they are paused already.
func Pause(v *view.View, ref view.Ref) (Change, error) {
	paused, _, err := pausedBy(v, ref)
	switch {
	case err != nil:
		return Change{}, err
	case paused:
		return Change{}, fmt.Errorf("%s is already paused", ref)
	}
	return Change{Ref: ref, Done: "paused", Patch: patch(map[string]any{"spec": map[string]any{"paused": true}})}, nil
}

// Resume returns the change that continues the rollouts. It also removes the annotation
// cluster.x-k8s.io/paused, which holds rollouts as spec.paused does.
func Resume(v *view.View, ref view.Ref) (Change, error) {
	paused, annotated, err := pausedBy(v, ref)
	switch {
	case err != nil:
		return Change{}, err
	case !paused && !annotated:
		return Change{}, fmt.Errorf("%s is not paused", ref)
	}
	fields := map[string]any{"spec": map[string]any{"paused": false}}
	c := Change{Ref: ref, Done: "resumed"}
	if annotated {
		fields["metadata"] = map[string]any{"annotations": map[string]any{machinev1alpha1.AnnotationPaused: nil}}
		c.Note = fmt.Sprintf("The annotation %s was removed: the cluster-autoscaler scales the pool again.", machinev1alpha1.AnnotationPaused)
	}
	c.Patch = patch(fields)
	return c, nil
}

func pausedBy(v *view.View, ref view.Ref) (spec, annotated bool, err error) {
	switch ref.Kind {
	case view.NodePool:
		if p := v.Pool(ref.Namespace, ref.Name); p != nil {
			return p.Spec.Paused, false, nil
		}
	case view.MachineDeployment:
		if d := v.Deployment(ref.Namespace, ref.Name); d != nil {
			_, annotated := d.Annotations[machinev1alpha1.AnnotationPaused]
			return d.Spec.Paused, annotated, ofPool(d)
		}
	default:
		return false, false, fmt.Errorf("a %s has no rollout: name a MachineDeployment or a NodePool", ref.Kind)
	}
	return false, false, view.NotFound(ref)
}

// ofPool refuses a MachineDeployment of a NodePool: the pool would write its spec again.
func ofPool(d *machinev1alpha1.MachineDeployment) error {
	if by := metav1.GetControllerOf(d); by != nil && by.Kind == view.NodePool {
		return fmt.Errorf("%s is composed by the NodePool %q: change the pool", refOf(view.MachineDeployment, d), by.Name)
	}
	return nil
}

// Restart returns the change that replaces the Machines of an unchanged template: an annotation of the
// template, as kubectl rollout restart does.
func Restart(d *machinev1alpha1.MachineDeployment, now time.Time) (Change, error) {
	ref := refOf(view.MachineDeployment, d)
	if err := ofPool(d); err != nil {
		return Change{}, err
	}
	if isPaused(d) {
		return Change{}, fmt.Errorf("%s is paused: run kubectl drover rollout resume %s first", ref, ref)
	}
	if d.Spec.RollbackTo != nil {
		return Change{}, fmt.Errorf("%s has spec.rollbackTo: a change of the template waits until that is removed (kubectl drover rollout undo %s --release)", ref, ref)
	}
	return Change{Ref: ref, Done: "restarted", Patch: patch(map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{AnnotationRestartedAt: now.UTC().Format(time.RFC3339)}},
	}}})}, nil
}

// RestartOf a MachineDeployment or a NodePool.
func RestartOf(v *view.View, ref view.Ref, now time.Time) (Change, error) {
	if d := v.Deployment(ref.Namespace, ref.Name); ref.Kind == view.MachineDeployment && d != nil {
		return Restart(d, now)
	}
	if p := v.Pool(ref.Namespace, ref.Name); ref.Kind == view.NodePool && p != nil {
		return RestartPool(p, now)
	}
	return Change{}, view.NotFound(ref)
}

// RestartPool returns the change that replaces the Machines of a NodePool: spec.rollout.after, because a pool has no template.
func RestartPool(p *machinev1alpha1.NodePool, now time.Time) (Change, error) {
	ref := refOf(view.NodePool, p)
	if p.Spec.Paused {
		return Change{}, fmt.Errorf("%s is paused: run kubectl drover rollout resume %s first", ref, ref)
	}
	return Change{Ref: ref, Done: "restarted", Patch: patch(map[string]any{"spec": map[string]any{"rollout": map[string]any{
		"after": now.UTC().Format(time.RFC3339),
	}}})}, nil
}

func isPaused(d *machinev1alpha1.MachineDeployment) bool {
	_, annotated := d.Annotations[machinev1alpha1.AnnotationPaused]
	return d.Spec.Paused || annotated
}

// An Undo has the options of kubectl drover rollout undo.
type Undo struct {
	// ToRevision to roll back to, 0 for the one before the current one.
	ToRevision int64
	// Hold rolls back by spec.rollbackTo, which holds even if a GitOps tool writes the template again.
	Hold bool
	// Release removes spec.rollbackTo: the template is rolled out again.
	Release bool
}

// UndoRollout returns the change that rolls a MachineDeployment back to a revision. As kubectl does, it writes
// the revision into the template, unless the rollback is to be held.
func UndoRollout(d *machinev1alpha1.MachineDeployment, o Undo) (Change, error) {
	ref := refOf(view.MachineDeployment, d)
	if err := ofPool(d); err != nil {
		return Change{}, err
	}
	if o.Release {
		if d.Spec.RollbackTo == nil {
			return Change{}, fmt.Errorf("%s has no spec.rollbackTo to release", ref)
		}
		return Change{Ref: ref, Done: "released", Patch: patch(map[string]any{"spec": map[string]any{"rollbackTo": nil}})}, nil
	}
	if isPaused(d) {
		return Change{}, fmt.Errorf("cannot roll back %s while it is paused: run kubectl drover rollout resume %s first", ref, ref)
	}
	r, err := revision(d, o.ToRevision)
	if err != nil {
		return Change{}, err
	}
	if o.Hold {
		return Change{Ref: ref, Done: fmt.Sprintf("rolled back to revision %d", r.Revision), Patch: patch(map[string]any{"spec": map[string]any{"rollbackTo": map[string]any{"revision": r.Revision}}}),
			Note: fmt.Sprintf("A change of the template waits until it is released: kubectl drover rollout undo %s -n %s --release.", ref, ref.Namespace)}, nil
	}
	return Change{Ref: ref, Done: fmt.Sprintf("rolled back to revision %d", r.Revision), Patch: patch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{machinev1alpha1.AnnotationChangeCause: changeCause(r)}},
		"spec":     map[string]any{"template": templateOf(d, r), "rollbackTo": nil},
	})}, nil
}

// changeCause returns the change cause of a revision as the value of the annotation. Without one the annotation
// is removed: the cause of the current template is not the revision's.
func changeCause(r *machinev1alpha1.Revision) any {
	if r.ChangeCause == "" {
		return nil
	}
	return r.ChangeCause
}

// revision returns the revision to roll back to.
func revision(d *machinev1alpha1.MachineDeployment, number int64) (*machinev1alpha1.Revision, error) {
	ref, all := refOf(view.MachineDeployment, d), d.Status.Revisions
	if len(all) == 0 {
		return nil, fmt.Errorf("no rollout history found for %s", ref)
	}
	if number == 0 {
		for i := range slices.Backward(all[:len(all)-1]) {
			if !isTemplate(d, &all[i]) {
				return &all[i], nil
			}
		}
		return nil, fmt.Errorf("no revision before the current one of %s is kept: there are %s", ref, numbers(all))
	}
	i := slices.IndexFunc(all, func(r machinev1alpha1.Revision) bool { return r.Revision == number })
	switch {
	case i < 0:
		return nil, fmt.Errorf("unable to find revision %d of %s in its history: there are %s", number, ref, numbers(all))
	case isTemplate(d, &all[i]):
		return nil, fmt.Errorf("skipped the rollback: the template of %s is that of revision %d already", ref, number)
	}
	return &all[i], nil
}

func numbers(all []machinev1alpha1.Revision) string {
	texts := []string{}
	for _, r := range all {
		texts = append(texts, fmt.Sprint(r.Revision))
	}
	return strings.Join(texts, ", ")
}

// isTemplate reports whether a revision equals the template, whatever it was rolled out for.
func isTemplate(d *machinev1alpha1.MachineDeployment, r *machinev1alpha1.Revision) bool {
	t := d.Spec.Template
	same := func(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }
	return t.Spec.ClassRef.Rolling() == r.ClassRef.Rolling() && t.Spec.Version == r.Version && t.Spec.ClusterRef == r.ClusterRef &&
		same(t.Spec.FailureDomain, r.FailureDomain) && same(t.Metadata.Labels, r.Labels) && same(t.Metadata.Annotations, r.Annotations)
}

// templateOf returns a revision as a merge patch of the current template.
func templateOf(d *machinev1alpha1.MachineDeployment, r *machinev1alpha1.Revision) map[string]any {
	t := d.Spec.Template
	spec := map[string]any{"classRef": r.ClassRef, "version": r.Version, "clusterRef": nil, "failureDomain": nil}
	if r.ClusterRef != (machinev1alpha1.ClusterReference{}) {
		spec["clusterRef"] = r.ClusterRef
	}
	if r.FailureDomain != nil {
		spec["failureDomain"] = *r.FailureDomain
	}
	return map[string]any{"spec": spec, "metadata": map[string]any{"labels": mapPatch(t.Metadata.Labels, r.Labels), "annotations": mapPatch(t.Metadata.Annotations, r.Annotations)}}
}

// mapPatch returns the merge patch from one map to another. Keys that the latter lacks are removed.
func mapPatch[V any](from, to map[string]V) map[string]any {
	out := map[string]any{}
	for k := range from {
		out[k] = nil
	}
	for k, v := range to {
		out[k] = v
	}
	return out
}

// A HistoryEntry is a revision as rollout history shows it.
type HistoryEntry struct {
	machinev1alpha1.Revision `json:",inline"`
	Current                  bool `json:"current,omitempty"`
	// Of is the MachineDeployment of a NodePool that has the revision. It is empty in the history of one MachineDeployment.
	Of string `json:"of,omitempty"`
}

// HistoryOf a MachineDeployment or a NodePool, or one revision of it.
func HistoryOf(v *view.View, ref view.Ref, only int64) ([]HistoryEntry, error) {
	if d := v.Deployment(ref.Namespace, ref.Name); ref.Kind == view.MachineDeployment && d != nil {
		return History(d, only)
	}
	if p := v.Pool(ref.Namespace, ref.Name); ref.Kind == view.NodePool && p != nil {
		return HistoryOfPool(v, p, only)
	}
	return nil, view.NotFound(ref)
}

// History of a MachineDeployment, oldest first, or one revision of it.
func History(d *machinev1alpha1.MachineDeployment, only int64) ([]HistoryEntry, error) {
	var out []HistoryEntry
	for _, r := range d.Status.Revisions {
		if only == 0 || r.Revision == only {
			out = append(out, HistoryEntry{Revision: r, Current: r.Revision == d.Status.Revision})
		}
	}
	if only != 0 && len(out) == 0 {
		return nil, fmt.Errorf("unable to find revision %d of %s in its history: there are %s", only, refOf(view.MachineDeployment, d), numbers(d.Status.Revisions))
	}
	return out, nil
}

// HistoryOfPool is that of the MachineDeployments of a NodePool, one after the other. Each counts revisions by itself: only
// may be a revision that not all of them have.
func HistoryOfPool(v *view.View, p *machinev1alpha1.NodePool, only int64) ([]HistoryEntry, error) {
	var out []HistoryEntry
	var none error
	for _, d := range v.DeploymentsOf(p) {
		entries, err := History(d, only)
		if err != nil {
			none = err
			continue
		}
		for _, e := range entries {
			e.Of = d.Name
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		return nil, none
	}
	return out, nil
}
