package conformance

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// ConsoleAccount is an Account whose provider reports the consoles of VMs.
type ConsoleAccount interface {
	Account
	// Write writes a line to the console of a VM. At a cloud whose VMs write to their consoles
	// themselves, it does nothing.
	Write(id, line string)
	// ConsoleReads returns how often the cloud showed the console of a VM to the provider. If the
	// console is a part of the cloud's record of the VM, it returns 1 as long as the record has
	// one.
	ConsoleReads(ctx context.Context, id string) (int, error)
}

// cannot returns the cases that a cloud cannot have, by name, with the reason. It derives some of
// them from the Composition, such as whether the provider reports consoles.
func cannot(c Cloud) map[string]string {
	out := map[string]string{}
	maps.Copy(out, c.Cannot())
	file := "apis/machine/compositions/machine-" + labelOf(c) + ".yaml"
	if s, ok := c.(*simulated); ok && s.Composition != "" {
		file = s.Composition
	}
	b, err := os.ReadFile(filepath.Join(kit.Root(), file))
	if err == nil && !bytes.Contains(b, []byte("\n          console: ")) {
		out[CaseConsole] = "The Composition has no `status.console`: the provider reports none"
	}
	if err == nil && !bytes.Contains(b, []byte("path: spec.managementPolicies\n")) {
		out[CasePoliciesOff] = "The provider has management policies unless an argument disables them, so that the Composition does not ask for them"
	}
	if err == nil && !bytes.Contains(b, []byte("\n          reboot: true\n")) {
		out[CaseReboot] = "The Composition has no `virtualMachine.reboot`: the provider cannot reboot VMs, so that a request fails, and health replaces a Machine at once"
	}
	if s, ok := c.(*simulated); (!ok || s.VM().Interrupted == nil) && !showsInterruption(c) {
		out[CaseSpot] = "The cloud has no spot VMs, or deletes one that it takes back: then the case `Lost` has it"
	}
	if s, ok := c.(*simulated); !ok {
		out[CaseMissing] = "The provider of the VM reports that it is gone: the case `Lost` has it"
	} else if !s.hasAPI() {
		if out[CaseOrphan] == "" {
			out[CaseOrphan] = "The suite has no fake of the cloud's API for provider-inventory"
		}
		out[CaseMissing] = out[CaseOrphan]
	}
	if s, ok := c.(*simulated); ok && s.Description.FailedAllocation == nil {
		out[CaseAllocation] = "The cloud refuses a VM that it has no room for, or it waits for room: the case `CapacityExhausted` has it"
	}
	if c.Backing() != played {
		out[CaseSlowCloud] = "Drover's own provider looks every few seconds at a VM that is not Ready, whatever its poll interval"
	}
	for name, reason := range c.Cannot() {
		out[name] = reason
	}
	return out
}

// notes returns remarks on cases that a cloud has only with a limitation or a difference, by name.
func notes(c Cloud) map[string]string {
	out := map[string]string{}
	if l, ok := c.(interface{ Leaks() int }); ok && l.Leaks() > 0 {
		out[CaseRestart] = "One VM is left at the cloud, because the provider never recorded its name. It takes no pods. The OrphanCollector reports it"
		if c.Backing() == played {
			out[CaseRestart] = "One VM is left at the cloud, because the provider forgets the name that the cloud gave it (crossplane/upjet#561). It takes no pods. The OrphanCollector reports it"
		}
		if !hasInventory(c) {
			out[CaseRestart] += ", which the suite does not show. " + cannot(c)[CaseOrphan]
		}
		if c.Cannot()[CaseOrphan] != "" && c.Backing() == played {
			out[CaseRestart] = "One VM is left at the cloud, because the provider forgets the name that the cloud gave it (crossplane/upjet#561). It takes no pods. Nothing reports it: " + c.Cannot()[CaseOrphan]
		}
	}
	if lacksSoftReboot(c) {
		out[CaseReboot] = "The cloud has no soft reboot: it is refused, and the VM is reset at once"
	}
	if _, ok := c.(*realOpenStack); ok {
		out[string(fn.ErrorThrottled)] = atGateway
		out[CaseThrottling] = atGateway
		out[CaseRestart] = atGateway
	}
	if _, ok := c.(*terraformOpenStack); ok {
		out[CaseAllocation] = "The Terraform provider keeps Nova's reason to itself: the Machine is Failed at once, with an error of the class `Transient`, and its VM is deleted with it"
	}
	if s, ok := c.(*simulated); ok && s.FailedAllocation != nil && s.FailedAllocation.Stays && hasInventory(c) {
		out[CaseAllocation] = "The provider does not show that the VM is in the state Failed. The inventory does: the Machine is Failed after two looks, long before its `creationTimeout`, with the reason `VMFailed`, and its VM is deleted"
	} else if ok && s.FailedAllocation != nil && s.FailedAllocation.Stays {
		out[CaseAllocation] = "The provider does not show that the VM is in the state Failed, and the suite has no inventory that does: the Machine is Failed after its `creationTimeout`, with the reason `JoinTimeout`, and its VM is deleted"
	}
	return out
}

// hasInventory reports whether an inventory shows the VMs of the cloud in the suite.
func hasInventory(c Cloud) bool { return cannot(c)[CaseOrphan] == "" }

// console tests that the console of a VM that does not join is read once the VM is late, and that
// of a VM that joins is never read.
func console(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	a, ok := w.account.(ConsoleAccount)
	if !ok {
		t.Fatalf("the Composition of %s has status.console, and its Account is no ConsoleAccount", c.Provider())
	}
	const line = "Kernel panic - not syncing: VFS: Unable to mount root fs"
	// User data without a kubelet: its VM runs and never joins.
	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "own", Labels: map[string]string{machinev1alpha1.LabelUserData: "true"}},
		StringData: map[string]string{"userData": "#cloud-config\nwrite_files: [{path: /etc/token, content: <<BOOTSTRAP_TOKEN>>}]\n"},
	}
	w.Create(t, own)
	class := w.class.DeepCopy()
	class.ObjectMeta = metav1.ObjectMeta{Namespace: w.Namespace, Name: "own"}
	class.Spec.OperatingSystem, class.Spec.Kubelet = machinev1alpha1.OperatingSystem{}, machinev1alpha1.Kubelet{}
	class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: own.Name}}
	w.Create(t, class)

	joins := w.lone(t, "joins")
	hangs := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "hangs"}, Spec: w.MachineSpec(kit.NewVersion)}
	hangs.Spec.ClassRef.Name = class.Name
	w.Create(t, hangs)
	isJoining := func(m *machinev1alpha1.Machine) string {
		if c := meta.FindStatusCondition(m.Status.Conditions, machinev1alpha1.ConditionInfrastructureReady); c == nil || c.Status != metav1.ConditionTrue {
			return "its VM does not run"
		}
		return ""
	}
	w.await(t, hangs, isJoining)
	id := w.vm(t, hangs).ID
	a.Write(id, line)
	if n, err := a.ConsoleReads(t.Context(), id); n > 0 || err != nil {
		t.Errorf("the console of a Machine is read %d times before it is late: %v", n, err)
	}
	w.await(t, joins, isRunning)
	patience.Eventually(t, func(ctx context.Context) string {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(hangs), hangs); err != nil {
			return err.Error()
		}
		return reported(hangs.Status.Conditions, machinev1alpha1.ConditionNodeReady, "its console ends with: ")
	}, w.describe)
	if n, err := a.ConsoleReads(t.Context(), id); n == 0 || err != nil {
		t.Errorf("the Machine has a console that was never read: %v", err)
	}
	if s := w.shownConsole(t, hangs); s == "" {
		t.Error("the status of the VM has no console")
	}
	if n, err := a.ConsoleReads(t.Context(), w.vm(t, joins).ID); n > 0 || err != nil {
		t.Errorf("the console of a Machine that joined is read %d times: %v", n, err)
	}
	if s := w.shownConsole(t, joins); s != "" {
		t.Errorf("the status of a VM that joined has the console %q", s)
	}
	w.end(t, joins, hangs, own)
}

// shownConsole returns the console in the status of a Machine's VM resource.
func (w *world) shownConsole(t *testing.T, m *machinev1alpha1.Machine) string {
	t.Helper()
	s, _, err := unstructured.NestedString(w.vmResource(t, m).Object, "status", "atProvider", "console")
	must(t, err)
	return s
}

// vmResource returns the VM resource of a Machine.
func (w *world) vmResource(t *testing.T, m *machinev1alpha1.Machine) *unstructured.Unstructured {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	kind := w.account.VMKind()
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	must(t, w.Client.List(t.Context(), l, client.InNamespace(m.Namespace)))
	for _, o := range l.Items {
		if metav1.IsControlledBy(&o, m) {
			return &o
		}
	}
	t.Fatalf("Machine %s has no %s", m.Name, kind.Kind)
	return nil
}
