package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/advice"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/deletion"
)

// stagesOfDeletion are the stages that a user can shorten, with the reason that has the advice.
var stagesOfDeletion = map[machinev1alpha1.DeletionStage]string{
	machinev1alpha1.DeletionHeld:              machinev1alpha1.ReasonDeletionHeld,
	machinev1alpha1.DeletionPreDrainHooks:     machinev1alpha1.ReasonWaitingForHooks,
	machinev1alpha1.DeletionPreTerminateHooks: machinev1alpha1.ReasonWaitingForHooks,
	machinev1alpha1.DeletionDraining:          machinev1alpha1.ReasonDrainBlocked,
	machinev1alpha1.DeletionPaused:            machinev1alpha1.ReasonDeletionPaused,
}

// slowAfter is how long the cloud may take to delete something before that is a finding.
const slowAfter = 10 * time.Minute

// annotationPaused is Crossplane's own annotation.
const annotationPaused = "crossplane.io/paused"

// ofDeletion returns the finding that blocks the deletion of a Machine.
func ofDeletion(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) []Finding {
	d := m.Status.Deletion
	if d == nil {
		return nil
	}
	if m.Annotations[annotationPaused] == "true" {
		return []Finding{pausedDeletion(m, ref)}
	}
	if f, ok := ofCloud(m, ref, now); ok {
		return []Finding{f}
	}
	if d.Stage == machinev1alpha1.DeletionDetachingVolumes {
		return []Finding{detaching(m, ref)}
	}
	reason, ok := stagesOfDeletion[d.Stage]
	if !ok || d.Stage == machinev1alpha1.DeletionPaused || d.Stage == machinev1alpha1.DeletionDraining && len(d.Pods) == 0 {
		return nil
	}
	if deletion.IsEvictionRefused(d.Pods) {
		reason = machinev1alpha1.ReasonEvictionRefused
	}
	a := advice.For(view.MachineSet, reason)
	f := Finding{Subjects: []view.Ref{ref}, Reason: reason, Meaning: a.Meaning, Do: a.Do, Since: d.Since}
	switch d.Stage {
	case machinev1alpha1.DeletionHeld:
		f.Cause, f.NeedsUser = "the MachineSet that controlled the Machine does not exist; nothing is drained or deleted", true
		f.Commands = []string{fmt.Sprintf("kubectl annotate %s -n %s %s=true", ref, ref.Namespace, machinev1alpha1.AnnotationConfirmDeletion)}
	case machinev1alpha1.DeletionDraining:
		f.Cause, f.Until = podsOf(d.Pods), drainEnd(m)
		f.Do = fmt.Sprintf("Correct the PodDisruptionBudget or move the pods. To delete the pods without regard to budgets, set the annotation %s=true on the Machine.", machinev1alpha1.AnnotationForceDrain)
		f.NeedsUser = isMisconfigured(f.Cause)
		if slices.ContainsFunc(d.Pods, func(p machinev1alpha1.DrainedPod) bool { return p.Cause != "" }) {
			f.NeedsUser = f.NeedsUser || reason == machinev1alpha1.ReasonEvictionRefused
			f.Do = fmt.Sprintf("Correct what refuses the evictions in the target cluster: the admission webhook or policy that the message names, or Drover's right to create pods/eviction. To delete the pods without evictions, set the annotation %s=true on the Machine.", machinev1alpha1.AnnotationForceDrain)
		}
		f.Commands = []string{fmt.Sprintf("kubectl drover drain %s -n %s --force", ref, ref.Namespace)}
	default:
		prefix := machinev1alpha1.HookPreDrain
		if d.Stage == machinev1alpha1.DeletionPreTerminateHooks {
			prefix = machinev1alpha1.HookPreTerminate
		}
		f.Cause = "hooks: " + strings.Join(d.Hooks, ", ")
		for _, hook := range d.Hooks {
			f.Commands = append(f.Commands, fmt.Sprintf("kubectl annotate %s -n %s %s%s-", ref, ref.Namespace, prefix, hook))
		}
		if timeout := m.Spec.Drain.HookTimeout.Duration; timeout > 0 {
			f.Until = ptr.To(metav1.NewTime(d.Since.Add(timeout)))
		}
	}
	return []Finding{f}
}

// detaching returns the finding of volumes that are not detached yet. It ends by itself.
func detaching(m *machinev1alpha1.Machine, ref view.Ref) Finding {
	d := m.Status.Deletion
	f := Finding{
		Subjects: []view.Ref{ref}, Reason: string(d.Stage), Since: d.Since,
		Cause:   strings.TrimSuffix("volumes are attached to the Node: "+strings.Join(attached(m), ", "), ": "),
		Meaning: "The deletion waits until the volumes of the Node are detached.",
		Do: fmt.Sprintf("If a volume stays, look at its VolumeAttachment in the target cluster and at its CSI driver. To delete the Node without waiting, set the annotation %s=true on the Machine.",
			machinev1alpha1.AnnotationSkipDrain),
		Commands: []string{fmt.Sprintf("kubectl drover drain %s -n %s --skip", ref, ref.Namespace)},
	}
	if timeout := m.Spec.Drain.VolumeDetachTimeout.Duration; timeout > 0 {
		f.Until = ptr.To(metav1.NewTime(d.Since.Add(timeout)))
	}
	return f
}

// attached returns the volumes that are still attached to the Node, the first ten of them.
func attached(m *machinev1alpha1.Machine) []string {
	var out []string
	if m.Status.Drain != nil {
		for _, v := range m.Status.Drain.Volumes {
			out = append(out, fmt.Sprintf("%s (%s)", v.Name, v.State))
		}
	}
	const most = 10
	if left := len(out) - most; left > 0 {
		out = append(out[:most], fmt.Sprintf("and %d more", left))
	}
	return out
}

// pausedDeletion returns the finding of a deletion that an annotation holds, at any stage.
func pausedDeletion(m *machinev1alpha1.Machine, ref view.Ref) Finding {
	a := advice.For(view.MachineSet, machinev1alpha1.ReasonDeletionPaused)
	return Finding{
		Subjects: []view.Ref{ref}, Reason: machinev1alpha1.ReasonDeletionPaused, Meaning: a.Meaning, Do: a.Do, Since: m.Status.Deletion.Since, NeedsUser: true,
		Cause:    fmt.Sprintf("the annotation %s holds the deletion", annotationPaused),
		Commands: []string{fmt.Sprintf("kubectl annotate %s -n %s %s-", ref, ref.Namespace, annotationPaused)},
	}
}

// passedOver returns the finding of annotations of a Machine that is being deleted, and that have no effect because of their
// value. Before the deletion, the condition AnnotationsValid has it.
func passedOver(m *machinev1alpha1.Machine, ref view.Ref) []Finding {
	wrong := plan.InvalidSwitches(m.Annotations)
	if len(wrong) == 0 {
		return nil
	}
	a := advice.For(view.Machine, machinev1alpha1.ReasonAnnotationInvalid)
	return []Finding{{
		Subjects: []view.Ref{ref}, Reason: machinev1alpha1.ReasonAnnotationInvalid, Cause: strings.Join(wrong, "; "),
		Meaning: a.Meaning, Do: a.Do, NeedsUser: true,
	}}
}

// ofCloud returns the finding of a deletion that waits for finalizers of other controllers, or for a provider that
// reports an error or takes long.
func ofCloud(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) (Finding, bool) {
	d, cause := m.Status.Deletion, ""
	if op := m.Status.LastOperation; op != nil {
		cause = op.Description
	}
	f := Finding{Subjects: []view.Ref{ref}, Cause: cause, Since: d.Since}
	isOfProvider := d.Stage == machinev1alpha1.DeletionDeletingDependents || d.Stage == machinev1alpha1.DeletionDeletingVM || d.Stage == machinev1alpha1.DeletionDeletingCompanions
	_, missing := plan.MissingConfigIn(cause)
	switch isSlow := now.Sub(d.Since.Time) >= slowAfter; {
	case len(d.Finalizers) > 0:
		f.Reason, f.NeedsUser = machinev1alpha1.ReasonWaitingForFinalizers, d.Stage != machinev1alpha1.DeletionDeletingNode
	case isOfProvider && strings.Contains(cause, "its annotation "+annotationPaused):
		f.Reason, f.NeedsUser = machinev1alpha1.ReasonDeletionPaused, true
		f.Meaning, f.Do = advice.For(view.MachineSet, f.Reason).Meaning, "Remove the annotation "+annotationPaused+" of the resource that the message names."
		return f, true
	case isOfProvider && missing != "":
		f.Reason, f.NeedsUser = string(fn.ErrorProviderConfigNotFound), true
	case isOfProvider && (isSlow || strings.Contains(cause, "its provider reports: ")):
		f.Reason, f.NeedsUser = machinev1alpha1.ReasonVMNotDeleted, isSlow
	default:
		return f, false
	}
	a := advice.For(view.MachineSet, f.Reason)
	f.Meaning, f.Do = a.Meaning, a.Do
	if isOfProvider {
		f.Do += fmt.Sprintf(" If nothing of it exists at the cloud, set the annotation %s=true on the Machine.", machinev1alpha1.AnnotationForceDelete)
		f.Commands = []string{fmt.Sprintf("kubectl get managed -n %s", ref.Namespace)}
	}
	return f, true
}

// podsOf a blocked drain, each with its reason.
func podsOf(pods []machinev1alpha1.DrainedPod) string {
	texts := make([]string, 0, len(pods))
	for _, p := range pods {
		texts = append(texts, fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, p.Reason))
	}
	return strings.Join(texts, "; ")
}

// drainEnd is when a drain is forced, nil if that is not known.
func drainEnd(m *machinev1alpha1.Machine) *metav1.Time {
	d := m.Status.Drain
	if d == nil || m.Spec.Drain.Timeout.Duration == 0 {
		return nil
	}
	end := metav1.NewTime(d.StartTime.Add(m.Spec.Drain.Timeout.Duration))
	return &end
}
