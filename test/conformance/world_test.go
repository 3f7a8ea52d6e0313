package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// interval is the time between two reads.
const interval = 200 * time.Millisecond

// A world is a namespace with a class of a cloud, and an account at the cloud.
type world struct {
	kit.Fleet
	cloud   Cloud
	account Account
	class   *machinev1alpha1.MachineClass
}

// newWorld returns a world. If the test fails, the log has its state.
func newWorld(t *testing.T, c Cloud) *world {
	t.Helper()
	p, err := installed(c)
	must(t, err)
	f := p.NewFleet(t)
	f.Provider = labelOf(c)
	w := &world{Fleet: f, cloud: c, account: c.Account(t, f)}
	w.class = w.account.Class(t)
	w.Create(t, w.class.DeepCopy())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.describe(context.Background()))
		}
	})
	return w
}

// deployment returns a MachineDeployment of the class, which rolls with a surge of one Machine.
func (w *world) deployment(name string, replicas int32) *machinev1alpha1.MachineDeployment {
	md := w.Deployment(name, replicas, 1, 0)
	md.Spec.Template.Spec.ClassRef.Name = w.class.Name
	return md
}

// lone creates a Machine without a set.
func (w *world) lone(t *testing.T, name string) *machinev1alpha1.Machine {
	t.Helper()
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	m.Spec = w.MachineSpec(kit.NewVersion)
	m.Spec.ClassRef.Name = w.class.Name
	w.Create(t, m)
	return m
}

// await reads a Machine until ok returns "" for it.
func (w *world) await(t *testing.T, m *machinev1alpha1.Machine, ok func(*machinev1alpha1.Machine) string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
			return err.Error()
		}
		if s := ok(m); s != "" {
			return fmt.Sprintf("Machine %s: %s: %+v", m.Name, s, m.Status)
		}
		return ""
	})
}

func isRunning(m *machinev1alpha1.Machine) string {
	if m.Status.Phase != machinev1alpha1.MachineRunning {
		return "is not Running"
	}
	return ""
}

// node returns the Node of a Machine.
func (w *world) node(t *testing.T, m *machinev1alpha1.Machine) *corev1.Node {
	t.Helper()
	n := &corev1.Node{}
	must(t, w.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: m.Status.NodeRef.Name}, n))
	return n
}

// vm returns the VM of a Machine at the cloud.
func (w *world) vm(t *testing.T, m *machinev1alpha1.Machine) VM {
	t.Helper()
	vms, err := w.account.VMs(t.Context())
	must(t, err)
	vms = slices.DeleteFunc(vms, func(vm VM) bool {
		if vm.Name != "" {
			return vm.Name != names.OfMachine(m.Name, m.UID)
		}
		return vm.Tags[machinev1alpha1.TagMachineUID] != string(m.UID)
	})
	if len(vms) != 1 {
		t.Fatalf("%d VMs have the UID of Machine %s in their tags, or its name: %+v", len(vms), m.Name, vms)
	}
	return vms[0]
}

// noVMs returns the VMs of the account as a text, "" if there are none.
func (w *world) noVMs(ctx context.Context) string {
	vms, err := w.account.VMs(ctx)
	if err != nil {
		return err.Error()
	}
	if len(vms) > 0 {
		return fmt.Sprintf("VMs %+v", vms)
	}
	return ""
}

// nothing returns the VMs and companions of the account as a text, "" if there are none.
func (w *world) nothing(ctx context.Context) string {
	if a, ok := w.account.(CompanionAccount); ok {
		if things, _ := a.Beside(ctx); len(things) > 0 {
			return fmt.Sprintf("there is %v", things)
		}
	}
	return w.noVMs(ctx)
}

// end deletes the objects of a case, and waits until neither the clusters nor the cloud have
// anything of it.
func (w *world) end(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		must(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), o)))
	}
	patience.Eventually(t, w.nothing)
	if a, ok := w.account.(CompanionAccount); ok {
		if _, torn := a.Beside(t.Context()); len(torn) > 0 {
			t.Errorf("not in their order: %v", torn)
		}
	}
	w.AwaitNothing(t)
}

// gone returns "" if a Machine does not exist, else an explanation.
func (w *world) gone(ctx context.Context, m *machinev1alpha1.Machine) string {
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(m), &machinev1alpha1.Machine{}); !apierrors.IsNotFound(err) {
		return fmt.Sprintf("Machine %s is there: %v", m.Name, err)
	}
	return ""
}

// The result is "" if the condition is False and its reason and message contain all texts.
func reported(conditions []metav1.Condition, typ string, texts ...string) string {
	c := meta.FindStatusCondition(conditions, typ)
	if c == nil || c.Status != metav1.ConditionFalse {
		return "condition " + typ + " is not False"
	}
	for _, text := range texts {
		if !strings.Contains(c.Reason+": "+c.Message, text) {
			return fmt.Sprintf("condition %s does not contain %q: %s: %s", typ, text, c.Reason, c.Message)
		}
	}
	return ""
}

// describe returns the state of the world. The most useful part comes last, since a log may keep
// only its end.
func (w *world) describe(ctx context.Context) string {
	b := &strings.Builder{}
	guests, err := w.Cloud.ListVMs(ctx, listAll)
	for _, g := range guests {
		if strings.HasPrefix(g.Tags["guest"], w.cloud.Provider()+"/") {
			console, _ := w.Cloud.Console(ctx, g.ID)
			fmt.Fprintf(b, "guest %s %s:\n%s\n", g.Name, g.State, lastLines(string(console), 10))
		}
	}
	if err != nil {
		fmt.Fprintln(b, err)
	}
	vms, err := w.account.VMs(ctx)
	for _, vm := range vms {
		fmt.Fprintf(b, "VM %s %v\n", vm.ID, vm.Tags)
	}
	if err != nil {
		fmt.Fprintln(b, err)
	}
	l := &unstructured.UnstructuredList{}
	kind := w.account.VMKind()
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := w.Client.List(ctx, l, client.InNamespace(w.Namespace)); err != nil {
		fmt.Fprintln(b, err)
	}
	for _, o := range l.Items {
		fmt.Fprintf(b, "%s %s deleted=%v finalizers=%v annotations=%v\n  %v\n", o.GetKind(), o.GetName(), o.GetDeletionTimestamp(), o.GetFinalizers(), o.GetAnnotations(), o.Object["status"])
	}
	b.WriteString(w.Describe(ctx))
	return b.String()
}

func lastLines(s string, most int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
