package handover

import (
	"fmt"
	"slices"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/move"
)

// pauseSet pauses the MachineSet of Drover: it would delete Machines that are more than its replicas, and create missing ones.
func pauseSet(w *World) []Step {
	if w.isTaken() {
		return nil
	}
	return w.pause(w.set())
}

func (w *World) pause(set *unstructured.Unstructured) []Step {
	if isPausedByUs(set) {
		return nil
	}
	return []Step{patch(set, annotated(set, map[string]*string{
		annotationPaused: ptr.To("true"), w.System.annotation(): ptr.To(w.newRecord(set).String()),
	}), "pause %s", describe(set))}
}

func isPausedByUs(set *unstructured.Unstructured) bool {
	return set.GetAnnotations()[annotationPaused] == "true" && recordOf(set) != nil
}

func unpausedSet(w *World) []string {
	if set := w.set(); set != nil && isPausedByUs(set) && !rests(set) {
		return []string{describe(set) + ": its condition Synced does not report the pause"}
	}
	return nil
}

// rests reports whether the controller of an object has reported that it is paused.
func rests(o *unstructured.Unstructured) bool {
	return conditionOf(o, "Synced")["reason"] == string(xpv2.ReasonReconcilePaused)
}

// isTaken reports whether each Machine of Drover has its Node, so that the set may go on.
func (w *World) isTaken() bool {
	return !slices.ContainsFunc(w.members(), func(m member) bool { return m.drover == nil || w.unclaimed(m) != "" })
}

func makeRoom(w *World) []Step {
	if w.isTaken() {
		return nil
	}
	return w.scale(len(w.unrelated()) + len(w.members()))
}

// scale sets the replicas of the MachineDeployment of Drover.
func (w *World) scale(n int) []Step {
	to := w.to()
	if intAt(to, "spec", "replicas") == int64(n) {
		return nil
	}
	after := to.DeepCopy()
	_ = unstructured.SetNestedField(after.Object, int64(n), "spec", "replicas")
	return []Step{patch(to, after, "scale %s to %d", describe(to), n)}
}

func withoutRoom(w *World) []string {
	if w.isTaken() {
		return nil
	}
	return w.unscaled()
}

// unscaled reports that the set of Drover does not have the replicas of its MachineDeployment yet.
func (w *World) unscaled() []string {
	want, set := intAt(w.to(), "spec", "replicas"), w.set()
	if is := intAt(set, "spec", "replicas"); is != want {
		return []string{fmt.Sprintf("%s: spec.replicas is %d, and has to become %d", describe(set), is, want)}
	}
	return nil
}

func createVMs(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.vm == nil && m.hasVM {
			out = append(out, create(w.vmOf(m), "create %s %s for %s", w.System.vmKind(w).Kind, m.name, describe(m.origin())))
		}
	}
	return out
}

// vmOf returns the VirtualMachine of a member, as docs/recovery.md imports one.
func (w *World) vmOf(m member) *unstructured.Unstructured {
	class := w.class()
	forProvider, _, _ := unstructured.NestedMap(class.Object, "spec", "forProvider")
	ref, _, _ := unstructured.NestedMap(class.Object, "spec", "providerConfigRef")
	vm := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"managementPolicies": []any{"Observe", "Delete"}, "providerConfigRef": ref, "forProvider": forProvider,
	}}}
	vm.SetGroupVersionKind(w.System.vmKind(w))
	vm.SetNamespace(w.Namespace)
	vm.SetName(m.name)
	vm.SetLabels(map[string]string{machinev1alpha1.LabelMachine: m.name})
	vm.SetAnnotations(map[string]string{
		xpmeta.AnnotationKeyExternalName: m.id(), move.AnnotationRole: machinev1alpha1.ResourceVM,
		machinev1alpha1.AnnotationNodeName: m.node(), machinev1alpha1.AnnotationInstallation: w.Installation,
	})
	return vm
}

// unseenVMs lists the VMs that their provider has not found: their Machines would fail.
func unseenVMs(w *World) []string {
	var out []string
	for _, m := range w.members() {
		if m.vm == nil || m.drover != nil {
			continue
		}
		if is := w.System.reported(w, m); is != m.providerID() {
			message, _ := conditionOf(m.vm, "Synced")["message"].(string)
			out = append(out, fmt.Sprintf("%s: its providerID is %q, and has to become %q: %s", describe(m.vm), is, m.providerID(), message))
		}
	}
	return out
}

func createMachines(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.drover == nil && m.vm != nil {
			out = append(out, create(w.machineOf(m), "create Machine %s for Node %s", m.name, m.node()))
		}
	}
	return out
}

// machineOf returns the Machine of Drover of a member: the template of its set, with the providerID.
func (w *World) machineOf(m member) *unstructured.Unstructured {
	set := w.set()
	spec, _, _ := unstructured.NestedMap(set.Object, "spec", "template", "spec")
	delete(spec, "infrastructureRef")
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	_ = unstructured.SetNestedField(out.Object, m.providerID(), "spec", "providerID")
	out.SetGroupVersionKind(machinev1alpha1.MachineGroupVersionKind)
	out.SetNamespace(w.Namespace)
	out.SetName(m.name)
	l, _, _ := unstructured.NestedStringMap(set.Object, "spec", "template", "metadata", "labels")
	selector, _, _ := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	out.SetLabels(labels.Merge(l, selector))
	a, _, _ := unstructured.NestedStringMap(set.Object, "spec", "template", "metadata", "annotations")
	out.SetAnnotations(a)
	return out
}

func unclaimedMachines(w *World) []string {
	var out []string
	for _, m := range w.members() {
		if m.drover != nil && w.unclaimed(m) != "" {
			out = append(out, w.unclaimed(m))
		}
	}
	return out
}

// unclaimed returns why the Machine of a member does not count as taken over, "" if it does. One that the set controls does: what
// becomes of it later is the set's decision.
func (w *World) unclaimed(m member) string {
	phase, node := stringAt(m.drover, "status", "phase"), stringAt(m.drover, "status", "nodeRef", "name")
	if metav1.GetControllerOf(m.drover) != nil || phase == string(machinev1alpha1.MachineRunning) && node == m.node() {
		return ""
	}
	valid, _ := conditionOf(m.drover, machinev1alpha1.ConditionValid)["message"].(string)
	return fmt.Sprintf("Machine %s: its phase is %q and its Node %q, and have to become Running and %q: %s", m.name, phase, node, m.node(), valid)
}

func resumeSet(w *World) []Step {
	set := w.set()
	if set == nil || recordOf(set) == nil {
		return nil
	}
	return []Step{patch(set, annotated(set, w.forgotten(map[string]*string{annotationPaused: nil})), "resume %s", describe(set))}
}

func unadopted(w *World) []string {
	var out []string
	for _, m := range w.members() {
		if m.drover != nil && !metav1.IsControlledBy(m.drover, w.set()) {
			out = append(out, fmt.Sprintf("Machine %s: %s has not adopted it", m.name, describe(w.set())))
		}
	}
	return out
}
