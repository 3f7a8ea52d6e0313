package handover

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterapi "github.com/drover-dev/drover/apis/clusterapi/v1alpha1"
)

func (capi) taking() []phase { return taking }

func (capi) givingBack() []phase { return givingBack }

// taking are the phases of a handover to Drover.
var taking = []phase{
	{"pause Cluster API", pauseOwners, unpausedOwners},
	{"pause the MachineSet of Drover", pauseSet, unpausedSet},
	{"make room", makeRoom, withoutRoom},
	{"share the Cluster", share, nil},
	{"label the InfraMachines", labelInfraMachines, nil},
	{"detach the Machines of Cluster API", detach, nil},
	{"create the VirtualMachines", createVMs, unseenVMs},
	{"create the Machines of Drover", createMachines, unclaimedMachines},
	{"resume the MachineSet of Drover", resumeSet, unadopted},
}

// givingBack are the phases of the way back.
var givingBack = []phase{
	{"pause the MachineSet of Drover", pauseSetAgain, unpausedSet},
	{"release the VMs", releaseVMs, unreleased},
	{"scale down", giveRoom, withoutRoomToGive},
	{"remove the VirtualMachines", removeVMs, nil},
	{"clear the Nodes", clearNodes, nil},
	{"remove the Machines of Drover", removeMachines, nil},
	{"attach the Machines of Cluster API", attach, nil},
	{"take the labels from the InfraMachines", unlabelInfraMachines, nil},
	{"stop sharing the Cluster", unshare, nil},
	{"resume the MachineSet of Drover", resumeSet, nil},
	{"resume Cluster API", resumeOwners, nil},
}

// pauseOwners pauses the MachineDeployment, its sets and Machines for Cluster API, from the top.
func pauseOwners(w *World) []Step {
	var out []Step
	for _, o := range slices.Concat([]*unstructured.Unstructured{w.from()}, w.sets(), w.machines()) {
		if recordOf(o) != nil {
			continue
		}
		out = append(out, patch(o, annotated(o, w.remembered(o, map[string]*string{annotationPausedCAPI: ptr.To("true")})), "pause %s for Cluster API", describe(o)))
	}
	return out
}

// unpausedOwners lists the objects whose controllers have not reported the pause: a reconcile that began before may still act.
func unpausedOwners(w *World) []string {
	var out []string
	for _, o := range slices.Concat([]*unstructured.Unstructured{w.from()}, w.sets(), w.machines()) {
		if !w.Stopped && conditionOf(o, "Paused")["status"] != "True" {
			out = append(out, fmt.Sprintf("%s: its condition Paused is not True", describe(o)))
		}
	}
	return out
}

// share lets provider-clusterapi use the Cluster beside Cluster API's own controllers.
func share(w *World) []Step {
	c := w.cluster()
	if c.GetLabels()[clusterapi.LabelShared] == "true" || c.GetLabels()[clusterapi.LabelKept] == "true" {
		return nil
	}
	after := labeled(annotated(c, map[string]*string{clusterapi.AnnotationImported: ptr.To(record{From: w.From, To: w.To}.String())}), clusterapi.LabelShared, ptr.To("true"))
	return []Step{patch(c, after, "share %s with Drover", describe(c))}
}

func labelInfraMachines(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.infra != nil && m.infra.GetLabels()[clusterapi.LabelVirtualMachine] == "" {
			out = append(out, patch(m.infra, labeled(m.infra, clusterapi.LabelVirtualMachine, ptr.To(m.id())), "label %s", describe(m.infra)))
		}
	}
	return out
}

// detach takes the Machines of Cluster API from their sets, and keeps them until their InfraMachines are gone.
func detach(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.infra == nil || m.machine.GetLabels()[clusterapi.LabelVirtualMachine] == m.id() {
			continue
		}
		after := annotated(m.machine, map[string]*string{clusterapi.AnnotationStandsFor: ptr.To(clusterapi.StandsFor(clusterapi.VirtualMachineGroupVersionKind.Kind, w.Namespace, m.name))})
		after.SetLabels(labels.Merge(w.System.detached(w, m.machine), map[string]string{clusterapi.LabelVirtualMachine: m.id()}))
		c := w.cluster()
		after.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: c.GetAPIVersion(), Kind: c.GetKind(), Name: c.GetName(), UID: c.GetUID()}})
		controllerutil.AddFinalizer(after, clusterapi.FinalizerMachine)
		out = append(out, patch(m.machine, after, "detach %s from its MachineSet", describe(m.machine)))
	}
	return out
}

// attach gives the Machines of Cluster API the owners and labels that they had.
func attach(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		r := recordOf(m.machine)
		if _, ok := m.machine.GetLabels()[clusterapi.LabelVirtualMachine]; r == nil || !ok {
			continue
		}
		after := annotated(m.machine, map[string]*string{clusterapi.AnnotationStandsFor: nil})
		l := maps.Clone(m.machine.GetLabels())
		delete(l, clusterapi.LabelVirtualMachine)
		maps.Copy(l, r.Labels)
		after.SetLabels(l)
		after.SetOwnerReferences(r.OwnerReferences)
		controllerutil.RemoveFinalizer(after, clusterapi.FinalizerMachine)
		out = append(out, patch(m.machine, after, "attach %s to its MachineSet", describe(m.machine)))
	}
	return out
}

func unlabelInfraMachines(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if m.infra == nil || recordOf(m.machine) == nil {
			continue
		}
		if _, ok := m.infra.GetLabels()[clusterapi.LabelVirtualMachine]; ok {
			out = append(out, patch(m.infra, labeled(m.infra, clusterapi.LabelVirtualMachine, nil), "take the label from %s", describe(m.infra)))
		}
	}
	return out
}

// unshare takes the label from a Cluster that the import shared, once no Machine in it is Drover's.
func unshare(w *World) []Step {
	c := w.cluster()
	if c == nil || recordOf(c) == nil || slices.ContainsFunc(w.list(coreGroup, "Machine"), func(o *unstructured.Unstructured) bool {
		l := o.GetLabels()
		return l[labelCluster] == c.GetName() && l[clusterapi.LabelVirtualMachine]+l[clusterapi.LabelBootstrap] != ""
	}) {
		return nil
	}
	return []Step{patch(c, labeled(annotated(c, map[string]*string{clusterapi.AnnotationImported: nil}), clusterapi.LabelShared, nil), "stop sharing %s with Drover", describe(c))}
}

// resumeOwners gives the objects of Cluster API the pause that they had: the Machines first, so that their set has them when it
// goes on, and the MachineDeployment last, which keeps its record until the rest is done.
func resumeOwners(w *World) []Step {
	var out []Step
	objects := w.machines()
	objects = append(objects, w.sets()...)
	for _, o := range append(objects, w.from()) {
		if r := recordOf(o); r != nil {
			out = append(out, patch(o, annotated(o, map[string]*string{annotationPausedCAPI: r.Paused, clusterapi.AnnotationImported: nil}), "give %s the pause that it had", describe(o)))
		}
	}
	return out
}
