package handover

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// The controllers are stopped. The order of the phases holds although they start again: after each step no MachineSet deletes or
// creates a Machine, and each VM has its Machine. So a MachineSet may create none from the first step to the last, and has at no
// time more Machines than replicas.

func (mcm) taking() []phase { return takingFromMCM }

func (mcm) givingBack() []phase { return givingBackToMCM }

// takingFromMCM are the phases of a handover to Drover.
var takingFromMCM = []phase{
	{"hold the MachineSets of machine-controller-manager", holdSets, nil},
	{"pause the MachineSet of Drover", pauseSet, unpausedSet},
	{"make room", makeRoom, withoutRoom},
	{"detach the Machines of machine-controller-manager", detachFromMCM, nil},
	{"scale machine-controller-manager to zero", emptySets, nil},
	{"free the Nodes", freeNodes, nil},
	{"create the VM resources", createVMs, unseenVMs},
	{"create the Machines of Drover", createMachines, unclaimedMachines},
	{"resume the MachineSet of Drover", resumeSet, unadopted},
}

// givingBackToMCM are the phases of the way back.
var givingBackToMCM = []phase{
	{"pause the MachineSet of Drover", pauseSetAgain, unpausedSet},
	{"release the VMs", releaseVMs, unreleased},
	{"scale down", giveRoom, withoutRoomToGive},
	{"remove the VM resources", removeVMs, nil},
	{"clear the Nodes", clearNodes, nil},
	{"remove the Machines of Drover", removeMachines, nil},
	{"bind the Nodes", bindNodes, nil},
	{"give machine-controller-manager its replicas", refillSets, nil},
	{"attach the Machines of machine-controller-manager", attachToMCM, nil},
	{"resume the MachineSet of Drover", resumeSet, nil},
	{"release the MachineSets of machine-controller-manager", releaseSets, nil},
}

// holdSets records the MachineDeployment and its sets, and keeps the sets from creating Machines in place of those that leave.
func holdSets(w *World) []Step {
	var out []Step
	for _, o := range w.theirOwners() {
		if recordOf(o) != nil {
			continue
		}
		after := annotated(o, w.remembered(o, nil))
		if o.GetKind() == "MachineSet" {
			after = labeled(after, labelScaleUpDisabled, ptr.To("true"))
		}
		out = append(out, patch(o, after, "hold %s", describe(o)))
	}
	return out
}

// detachFromMCM takes the Machines from their sets and from their Nodes.
func detachFromMCM(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		if recordOf(m.machine) != nil {
			continue
		}
		after := annotated(m.machine, w.remembered(m.machine, nil))
		after.SetLabels(w.System.detached(w, m.machine))
		after.SetOwnerReferences(slices.DeleteFunc(m.machine.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.Kind == "MachineSet" }))
		out = append(out, patch(m.machine, after, "detach %s from its MachineSet and its Node", describe(m.machine)))
	}
	return out
}

// emptySets scales the MachineDeployment and its sets to zero, as they have no Machines: they would create new ones.
func emptySets(w *World) []Step {
	var out []Step
	for _, o := range w.theirOwners() {
		if intAt(o, "spec", "replicas") != 0 {
			out = append(out, scaled(o, 0))
		}
	}
	return out
}

func scaled(o *unstructured.Unstructured, n int64) Step {
	after := o.DeepCopy()
	_ = unstructured.SetNestedField(after.Object, n, "spec", "replicas")
	return patch(o, after, "scale %s to %d", describe(o), n)
}

// freeNodes takes the finalizer from the Nodes: Drover could not delete them.
func freeNodes(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		n := w.nodeOf(m)
		if n == nil || !hasFinalizer(n, finalizerNode) || recordOf(m.machine) == nil || stringAt(n, "spec", "providerID") != m.providerID() {
			continue
		}
		after := n.DeepCopy()
		controllerutil.RemoveFinalizer(after, finalizerNode)
		out = append(out, patch(n, after, "take the finalizer of machine-controller-manager from Node %s", n.GetName()))
	}
	return out
}

func hasFinalizer(o client.Object, finalizer string) bool {
	return controllerutil.ContainsFinalizer(o, finalizer)
}

// bindNodes gives the Nodes the finalizer that they had. One that is being deleted cannot get it. If the controllers were started
// meanwhile, they marked the Nodes as ones that are not theirs.
func bindNodes(w *World) []Step {
	var out []Step
	for _, m := range w.members() {
		n, r := w.nodeOf(m), recordOf(m.machine)
		if n == nil || r == nil || stringAt(n, "spec", "providerID") != r.ProviderID {
			continue
		}
		after := n
		if _, ok := n.GetAnnotations()[annotationUnmanaged]; ok {
			after = annotated(after, map[string]*string{annotationUnmanaged: nil})
		}
		if r.Finalizer && !hasFinalizer(n, finalizerNode) && n.GetDeletionTimestamp() == nil {
			after = after.DeepCopy()
			controllerutil.AddFinalizer(after, finalizerNode)
		}
		if after != n {
			out = append(out, patch(n, after, "give Node %s the keys of machine-controller-manager that it had", n.GetName()))
		}
	}
	return out
}

// refillSets gives the MachineDeployment and its sets their replicas, from the top: a set that has more than its MachineDeployment would
// be scaled down again, and delete the Machines that come back.
func refillSets(w *World) []Step {
	var out []Step
	for _, o := range w.theirOwners() {
		if r := recordOf(o); r != nil && r.Replicas != nil && intAt(o, "spec", "replicas") != *r.Replicas {
			out = append(out, scaled(o, *r.Replicas))
		}
	}
	return out
}

// attachToMCM gives the Machines the owners and labels that they had, and also those whose VM is gone: machine-controller-manager
// finds that, and replaces them.
func attachToMCM(w *World) []Step {
	var out []Step
	for _, o := range w.theirs() {
		r := recordOf(o)
		if r == nil {
			continue
		}
		after := annotated(o, w.forgotten(nil))
		l := maps.Clone(r.Labels)
		if l == nil {
			l = map[string]string{}
		}
		for k, v := range o.GetLabels() {
			if _, had := l[k]; !had {
				l[k] = v
			}
		}
		after.SetLabels(l)
		after.SetOwnerReferences(r.OwnerReferences)
		out = append(out, patch(o, after, "attach %s to its MachineSet and its Node", describe(o)))
	}
	return out
}

// releaseSets lets the sets create Machines, and the MachineDeployment last, which keeps its record until the rest is done.
func releaseSets(w *World) []Step {
	var out []Step
	for _, o := range append(w.sets(), w.from()) {
		if recordOf(o) == nil {
			continue
		}
		after := annotated(o, w.forgotten(nil))
		if o.GetKind() == "MachineSet" {
			after = labeled(after, labelScaleUpDisabled, nil)
		}
		out = append(out, patch(o, after, "release %s", describe(o)))
	}
	return out
}
