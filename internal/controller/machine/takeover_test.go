package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/controller/machine/nodekeeper/nodetest"
	"github.com/drover-dev/drover/internal/names"
)

// formerNode is the name of the Node of the former Machine m, with the UID uid-before.
var formerNode = names.OfMachine("m", "uid-before")

// waitingVM is a VM resource without a Machine. Its VM was created for the former Machine m.
func waitingVM(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	v := aVM()
	v.SetName(formerNode)
	v.SetUID("uid-of-vm")
	v.SetOwnerReferences(nil)
	v.SetFinalizers(nil)
	v.SetAnnotations(map[string]string{
		"crossplane.io/external-name": "vm-1", v1alpha1.AnnotationMachineUID: "uid-before",
		v1alpha1.AnnotationNodeName: formerNode, v1alpha1.AnnotationInstallation: "here",
	})
	_ = unstructured.SetNestedMap(v.Object, map[string]any{"id": nodetest.ID, "state": "Running"}, "status", "atProvider")
	_ = unstructured.SetNestedMap(v.Object, map[string]any{"size": "small", "disk": int64(20)}, "spec", "forProvider")
	for _, c := range changes {
		c(v)
	}
	return v
}

func ownedBefore(v *unstructured.Unstructured) {
	o := owner()
	o[0].UID = "uid-before"
	v.SetOwnerReferences(o)
}

func annotatedWith(key, value string) func(*unstructured.Unstructured) {
	return func(v *unstructured.Unstructured) {
		a := v.GetAnnotations()
		delete(a, key)
		if value != "" {
			a[key] = value
		}
		v.SetAnnotations(a)
	}
}

// restored returns a world with a Machine without a status, and with other objects.
func restored(t *testing.T, machine func(*v1alpha1.Machine), objs ...client.Object) *world {
	t.Helper()
	m := aMachine(false, v1alpha1.FinalizerTerminator)
	m.Spec.Version, m.Status = "v1.35.4", v1alpha1.MachineStatus{}
	if machine != nil {
		machine(m)
	}
	w := newWorld(t, append([]client.Object{m, aClass(), revision("machine-cloud", 1)}, objs...)...)
	w.script = drover(t)
	return w
}

func hadVM(m *v1alpha1.Machine) { m.Spec.ProviderID = ptr.To(nodetest.ID) }

// joinBefore adds the Node that joined for the former Machine.
func (w *world) joinBefore() {
	w.join(nodetest.Joined(formerNode, "uid-of-node", "uid-before", nodetest.ID))
}

func onFormerNode(p *corev1.Pod) { p.Spec.NodeName = formerNode }

func (w *world) steps(n int) {
	w.t.Helper()
	for range n {
		w.step()
	}
}

func (w *world) tokens() []string {
	return slices.DeleteFunc(nodetest.Writes(w.target), func(s string) bool { return !strings.HasPrefix(s, "create secrets") })
}

func TestAMachineTakesOverTheVMThatWaitsForIt(t *testing.T) {
	cases := map[string]struct {
		machine func(*v1alpha1.Machine)
		vm      *unstructured.Unstructured
	}{
		"WithoutAnOwner":                      {nil, waitingVM()},
		"OfAMachineOfItsNameThatIsGone":       {nil, waitingVM(ownedBefore)},
		"ThatNamesNoUIDButThatOfItsOwner":     {hadVM, waitingVM(ownedBefore, annotatedWith(v1alpha1.AnnotationMachineUID, "uid-before"))},
		"OfAMachineThatHadAVM":                {hadVM, waitingVM()},
		"OfAnInstallationThatIsGone":          {nil, waitingVM(annotatedWith(v1alpha1.AnnotationInstallation, "gone"))},
		"AfterALostAnswer":                    {nil, waitingVM(func(v *unstructured.Unstructured) { v.SetOwnerReferences(owner()) })},
		"WhoseStatusWasRestoredWithTheObject": {func(m *v1alpha1.Machine) { m.Status.ProviderID = nodetest.ID }, waitingVM()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := restored(t, tc.machine, tc.vm)
			w.joinBefore()
			w.steps(3)
			m, v := w.machine(), w.get(vmKind, formerNode)
			if !metav1.IsControlledBy(v, m) || !slices.Contains(v.GetFinalizers(), v1alpha1.FinalizerDrain) || w.servers() != 1 {
				t.Errorf("owners %v, finalizers %v, %d VMs", v.GetOwnerReferences(), v.GetFinalizers(), w.servers())
			}
			if got := m.Status.NodeRef; got == nil || got.Name != formerNode || m.Status.Phase != v1alpha1.MachineRunning {
				t.Errorf("Node %+v, phase %s", got, m.Status.Phase)
			}
			if got := m.Status.Identity; got == nil || *got != (v1alpha1.MachineIdentity{UID: "uid-before", NodeName: formerNode}) {
				t.Errorf("identity %+v", got)
			}
			if got := w.tokens(); len(got) > 0 {
				t.Errorf("join tokens: %v", got)
			}
			w.wantRest("it has its VM")
			w.restart()
			w.steps(2)
			w.wantRest("after a restart")
		})
	}
}

// TestAVMThatDroverDidNotMakeIsTakenOver: the VM resource names its Node, whose kubelet registered
// without an identity.
func TestAVMThatDroverDidNotMakeIsTakenOver(t *testing.T) {
	imported := func() *unstructured.Unstructured {
		return waitingVM(annotatedWith(v1alpha1.AnnotationMachineUID, ""), annotatedWith(v1alpha1.AnnotationNodeName, "legacy-1"))
	}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"WithTheNodeOfItsVM":               {nodetest.Joined("legacy-1", "uid-of-node", "", nodetest.ID), true},
		"NotWithTheNodeOfAnotherVM":        {nodetest.Joined("legacy-1", "uid-of-node", "", "aws:///a/other"), false},
		"NotWithANodeWithoutAProviderID":   {nodetest.Joined("legacy-1", "uid-of-node", "", ""), false},
		"NotWithTheNodeOfAnotherMachine":   {nodetest.Joined("legacy-1", "uid-of-node", "uid-before", nodetest.ID), false},
		"NotWithANodeOfAnotherName":        {nodetest.Joined("legacy-2", "uid-of-node", "", nodetest.ID), false},
		"NotWithTheNodeThatItWouldHaveHad": {nodetest.Joined(names.OfMachine("m", "uid-m"), "uid-of-node", "uid-m", nodetest.ID), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := restored(t, nil, imported())
			w.join(tc.node)
			w.steps(3)
			if got := w.machine().Status.NodeRef; (got != nil) != tc.want {
				t.Errorf("Node %+v", got)
			}
			if got := w.nodeWrites(); (len(got) > 0) != tc.want {
				t.Errorf("writes %v", got)
			}
		})
	}
}

func TestAMachineTakesOverTheCompanionsOfItsVM(t *testing.T) {
	card := func(changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
		c := waitingVM(changes...)
		c.SetGroupVersionKind(cardKind)
		c.SetName(formerNode + "-card")
		c.SetUID("uid-of-card")
		c.SetAnnotations(map[string]string{roleAnnotation: v1alpha1.ResourceCompanionPrefix + "card"})
		return c
	}
	withCards := func(r *unstructured.Unstructured) {
		steps, _, _ := unstructured.NestedSlice(r.Object, "spec", "pipeline")
		input := steps[0].(map[string]any)["input"].(map[string]any)
		input["companions"] = []any{map[string]any{"name": "card", "apiVersion": cardKind.GroupVersion().String(), "kind": cardKind.Kind}}
		_ = unstructured.SetNestedSlice(r.Object, steps, "spec", "pipeline")
	}
	m := aMachine(false, v1alpha1.FinalizerTerminator)
	m.Status = v1alpha1.MachineStatus{}
	w := newWorld(t, m, aClass(), revision("machine-cloud", 1, withCards), waitingVM(), card(ownedBefore))
	w.script = drover(t)
	w.steps(2)
	for _, obj := range []*unstructured.Unstructured{w.get(vmKind, formerNode), w.get(cardKind, formerNode+"-card")} {
		if !metav1.IsControlledBy(obj, w.machine()) || !slices.Contains(obj.GetFinalizers(), v1alpha1.FinalizerDrain) {
			t.Errorf("%s: owners %v, finalizers %v", obj.GetKind(), obj.GetOwnerReferences(), obj.GetFinalizers())
		}
	}
	if i, j := slices.Index(w.roles(), v1alpha1.ResourceCompanionPrefix+"card"), slices.Index(w.roles(), v1alpha1.ResourceVM); i < 0 || j < 0 {
		t.Errorf("the status refers to %v", w.machine().Status.ResourceRefs)
	}
}

func (w *world) roles() []string {
	var out []string
	for _, ref := range w.machine().Status.ResourceRefs {
		out = append(out, ref.Role)
	}
	return out
}

func TestAVMThatIsNotItsOwnIsNotTakenOver(t *testing.T) {
	other := func(changes ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
		o := aMachine(false, v1alpha1.FinalizerTerminator)
		o.Namespace, o.UID = "other", "uid-before"
		for _, c := range changes {
			c(o)
		}
		return o
	}
	cases := map[string]struct {
		objects []client.Object
		reason  string
		message string
	}{
		"OneOfAnotherInstallation": {
			[]client.Object{waitingVM(annotatedWith(v1alpha1.AnnotationInstallation, "elsewhere"))}, v1alpha1.ReasonVMOfAnotherInstallation,
			`is of installation "elsewhere" of Drover, and this is "here". If that one is gone and runs nowhere any more: kubectl -n crossplane-system patch configmap drover-installations --type=merge -p '{"data":{"elsewhere":"Lost"}}'`,
		},
		"OneOfNoInstallation":    {[]client.Object{waitingVM(annotatedWith(v1alpha1.AnnotationInstallation, ""))}, v1alpha1.ReasonVMNotIdentified, `if no other control cluster runs its VM, set it to "here"`},
		"OneThatNamesNoNode":     {[]client.Object{waitingVM(annotatedWith(v1alpha1.AnnotationNodeName, ""))}, v1alpha1.ReasonVMNotIdentified, "lacks the annotation machine.drover.dev/node-name"},
		"OneThatNamesNoVM":       {[]client.Object{waitingVM(annotatedWith("crossplane.io/external-name", ""))}, v1alpha1.ReasonVMNotIdentified, "lacks the annotation crossplane.io/external-name"},
		"ACopyOfTheVMOfAMachine": {[]client.Object{waitingVM(), other()}, v1alpha1.ReasonVMNotIdentified, "stands for the VM of the Machine other/m, which exists"},
		"OneOfTwo":               {[]client.Object{waitingVM(), waitingVM(func(v *unstructured.Unstructured) { v.SetName("w") })}, v1alpha1.ReasonVMNotIdentified, "Server " + formerNode + " and w all wait for this Machine"},
		"NoneAlthoughItHadOne":   {nil, v1alpha1.ReasonRestoredWithoutVM, "restore the resource, or delete the Machine. No other VM is made for it"},
		"OneThatIsOfAnotherName": {[]client.Object{waitingVM(func(v *unstructured.Unstructured) { v.SetLabels(map[string]string{v1alpha1.LabelMachine: "n"}) })}, v1alpha1.ReasonRestoredWithoutVM, ""},
		"OneThatAnotherOwns": {[]client.Object{waitingVM(func(v *unstructured.Unstructured) {
			ownedBefore(v)
			o := v.GetOwnerReferences()
			o[0].Name = "n"
			v.SetOwnerReferences(o)
		})}, v1alpha1.ReasonRestoredWithoutVM, ""},
		"OneThatIsNotAVM":         {[]client.Object{waitingVM(annotatedWith(roleAnnotation, "mine"))}, v1alpha1.ReasonRestoredWithoutVM, ""},
		"OneOfAForgedIdentityToo": {[]client.Object{waitingVM(annotatedWith(v1alpha1.AnnotationInstallation, "elsewhere"))}, v1alpha1.ReasonVMOfAnotherInstallation, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := restored(t, func(m *v1alpha1.Machine) {
				hadVM(m)
				m.Status.Identity = &v1alpha1.MachineIdentity{UID: "uid-before", NodeName: formerNode}
			}, tc.objects...)
			w.joinBefore()
			w.steps(2)
			m := w.machine()
			c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionValid)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
				t.Errorf("condition %+v", c)
			}
			if m.Status.ObservedGeneration != m.Generation {
				t.Errorf("observed generation %d of %d", m.Status.ObservedGeneration, m.Generation)
			}
			owned := slices.ContainsFunc(tc.objects, func(o client.Object) bool {
				v, ok := o.(*unstructured.Unstructured)
				return ok && metav1.IsControlledBy(w.get(vmKind, v.GetName()), m)
			})
			vms := len(slices.DeleteFunc(slices.Clone(tc.objects), func(o client.Object) bool { _, ok := o.(*v1alpha1.Machine); return ok }))
			if owned || w.servers() != vms || m.Status.NodeRef != nil || len(w.nodeWrites()) > 0 || len(w.tokens()) > 0 {
				t.Errorf("owned %t, %d VMs, Node %v, writes to the target %v", owned, w.servers(), m.Status.NodeRef, nodetest.Writes(w.target))
			}
		})
	}
}

func TestAForgedIdentityIsNotTakenForTheMachinesOwn(t *testing.T) {
	w := living(t)
	w.steps(2)
	w.provide("id", nodetest.ID)
	w.join(nodetest.Joined(formerNode, "uid-of-node", "uid-before", ""))
	m := w.machine()
	m.Status.Identity = &v1alpha1.MachineIdentity{UID: "uid-before", NodeName: formerNode}
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.steps(3)
	if m := w.machine(); m.Status.Identity != nil || m.Status.NodeRef != nil || len(w.nodeWrites()) > 0 {
		t.Errorf("identity %v, Node %v, writes %v", m.Status.Identity, m.Status.NodeRef, w.nodeWrites())
	}
}

func TestTheNodeOfAVMThatWasTakenOverIsDrained(t *testing.T) {
	for name, between := range map[string]func(*world){"": func(*world) {}, "AfterARestart": (*world).restart} {
		t.Run(name, func(t *testing.T) {
			w := restored(t, hadVM, waitingVM())
			w.podsStay()
			w.joinBefore()
			w.join(nodetest.PodOn("a", onFormerNode))
			w.steps(3)
			if err := w.client.Delete(t.Context(), w.machine()); err != nil {
				t.Fatal(err)
			}
			between(w)
			w.steps(2)
			if !w.hasNode(formerNode) || !slices.Contains(w.get(vmKind, formerNode).GetFinalizers(), v1alpha1.FinalizerDrain) {
				t.Error("the Node is gone, or the VM released, although a pod is left")
			}
			w.podGone("a")
			w.steps(3)
			if w.hasNode(formerNode) || slices.Contains(w.get(vmKind, formerNode).GetFinalizers(), v1alpha1.FinalizerDrain) {
				t.Error("the Node is there, or the VM held, although no pod is left")
			}
		})
	}
}

// withoutLists fails each list.
type withoutLists struct{ client.Reader }

func (withoutLists) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no right")
}

// TestAMachineThatTookOverAVMWaitsUntilItCanBeSeen: only the VM resource proves which Node is the
// Machine's, and a process that has just started has not seen it.
func TestAMachineThatTookOverAVMWaitsUntilItCanBeSeen(t *testing.T) {
	w := restored(t, hadVM, waitingVM())
	w.podsStay()
	w.joinBefore()
	w.join(nodetest.PodOn("a", onFormerNode))
	w.steps(3)
	if err := w.client.Delete(t.Context(), w.machine()); err != nil {
		t.Fatal(err)
	}
	w.restart()
	readable := w.r.resources
	w.r.resources = withoutLists{readable}
	w.steps(2)
	m := w.machine()
	if d := m.Status.Deletion; d != nil && d.Stage.IsPastNode() || m.Status.Identity == nil {
		t.Errorf("deletion %+v, identity %v", d, m.Status.Identity)
	}
	if op := m.Status.LastOperation; op == nil || !strings.Contains(op.Description, "Waiting for Node "+formerNode+": cannot list Server") {
		t.Errorf("operation %+v", op)
	}
	w.r.resources = readable
	w.steps(2)
	if !w.hasNode(formerNode) || !slices.Contains(w.get(vmKind, formerNode).GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("the Node is gone, or the VM released, although a pod is left")
	}
	w.podGone("a")
	w.steps(3)
	if w.hasNode(formerNode) || slices.Contains(w.get(vmKind, formerNode).GetFinalizers(), v1alpha1.FinalizerDrain) {
		t.Error("the Node is there, or the VM held, although no pod is left")
	}
}

// collectVM deletes a VM resource as the garbage collector does, and has the controller observe that.
func (w *world) collectVM(name string) {
	w.t.Helper()
	v := w.get(vmKind, name)
	if err := w.client.Delete(w.t.Context(), v); err != nil {
		w.t.Fatal(err)
	}
	v = w.get(vmKind, name)
	woken(w.t, func(q queue) {
		w.r.watches.handler(vmKind).Update(w.t.Context(), updated{ObjectOld: v, ObjectNew: v}, q)
	})
}

func TestAMachineInheritsTheVMOfAResourceThatTheGarbageCollectorDeletes(t *testing.T) {
	held := func(v *unstructured.Unstructured) {
		ownedBefore(v)
		v.SetFinalizers([]string{"provider", v1alpha1.FinalizerDrain})
		annotatedWith(roleAnnotation, v1alpha1.ResourceVM)(v)
	}
	heir := names.OfMachine("m", "uid-m")
	t.Run("ThatLives", func(t *testing.T) {
		w := restored(t, hadVM, waitingVM(held))
		w.joinBefore()
		w.collectVM(formerNode)
		w.steps(3)
		v, m := w.get(vmKind, heir), w.machine()
		policies, _, _ := unstructured.NestedStringSlice(v.Object, "spec", managementPolicies)
		if !slices.Equal(policies, []string{"Observe", "Delete"}) || v.GetAnnotations()["crossplane.io/external-name"] != "vm-1" || !metav1.IsControlledBy(v, m) {
			t.Errorf("heir %v", v.Object)
		}
		if old := w.get(vmKind, formerNode); slices.Contains(old.GetFinalizers(), v1alpha1.FinalizerDrain) {
			t.Errorf("finalizers of the heldResource %v", old.GetFinalizers())
		}
		if id := m.Status.Identity; id == nil || id.UID != "uid-before" || id.NodeName != formerNode {
			t.Errorf("identity %+v", id)
		}
	})
	t.Run("ThatIsHeldItself", func(t *testing.T) {
		m := ofSet("set-before", func(m *v1alpha1.Machine) { hadVM(m); m.Status = v1alpha1.MachineStatus{} })
		w := newWorld(t, m, aClass(), revision("machine-cloud", 1), waitingVM(held))
		w.script = drover(t)
		w.podsStay()
		w.joinBefore()
		w.join(nodetest.PodOn("a", onFormerNode))
		w.collectVM(formerNode)
		w.steps(3)
		if got := w.machine().Status.Deletion; got == nil || got.Stage != v1alpha1.DeletionHeld {
			t.Fatalf("deletion %+v", got)
		}
		if !metav1.IsControlledBy(w.get(vmKind, heir), w.machine()) || len(w.nodeWrites()) > 0 {
			t.Errorf("owners %v, writes %v", w.get(vmKind, heir).GetOwnerReferences(), w.nodeWrites())
		}
		m = w.machine()
		m.SetAnnotations(map[string]string{v1alpha1.AnnotationConfirmDeletion: "true"})
		w.update(m)
		w.steps(2)
		w.podGone("a")
		w.steps(3)
		if w.hasNode(formerNode) || slices.Contains(w.get(vmKind, heir).GetFinalizers(), v1alpha1.FinalizerDrain) {
			t.Error("the Node is there, or the VM held, after a user confirmed the deletion")
		}
	})
	t.Run("ThatWasHeldBeforeTheResourceCame", func(t *testing.T) {
		m := ofSet("set-before", func(m *v1alpha1.Machine) { hadVM(m); m.Status = v1alpha1.MachineStatus{} })
		w := newWorld(t, m, aClass(), revision("machine-cloud", 1))
		w.script = drover(t)
		w.steps(2)
		if got := w.machine(); got.Status.Deletion == nil || got.Status.Deletion.Stage != v1alpha1.DeletionHeld || !slices.Contains(got.Finalizers, v1alpha1.FinalizerTerminator) {
			t.Fatalf("deletion %+v, finalizers %v", got.Status.Deletion, got.Finalizers)
		}
		if err := w.client.Create(t.Context(), waitingVM(held)); err != nil {
			t.Fatal(err)
		}
		w.collectVM(formerNode)
		w.steps(2)
		if v := w.get(vmKind, heir); !metav1.IsControlledBy(v, w.machine()) {
			t.Errorf("owners %v", v.GetOwnerReferences())
		}
	})
	t.Run("UnlessItMayStillRunElsewhere", func(t *testing.T) {
		w := restored(t, hadVM, waitingVM(held, annotatedWith(v1alpha1.AnnotationInstallation, "elsewhere")))
		w.collectVM(formerNode)
		w.steps(2)
		c := meta.FindStatusCondition(w.machine().Status.Conditions, v1alpha1.ConditionValid)
		if c == nil || c.Reason != v1alpha1.ReasonVMOfAnotherInstallation || w.servers() != 1 || !slices.Contains(w.get(vmKind, formerNode).GetFinalizers(), v1alpha1.FinalizerDrain) {
			t.Errorf("condition %+v, %d VMs", c, w.servers())
		}
	})
	t.Run("ButNotIfItHasAVM", func(t *testing.T) {
		w := living(t)
		w.steps(2)
		v := waitingVM(held)
		if err := w.client.Create(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		w.collectVM(formerNode)
		w.steps(2)
		if got := w.get(vmKind, heir).GetAnnotations()["crossplane.io/external-name"]; got != "" || w.servers() != 2 {
			t.Errorf("external name %q, %d VMs", got, w.servers())
		}
	})
}

func TestAResourceWithoutAnOwnerWakesTheMachineOfItsLabel(t *testing.T) {
	w := restored(t, hadVM)
	got := woken(t, func(q queue) { w.r.watches.handler(vmKind).Create(t.Context(), created{Object: waitingVM()}, q) })
	if !slices.Equal(got, []string{"m"}) {
		t.Errorf("woken: %v", got)
	}
}
