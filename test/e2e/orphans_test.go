package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// TestOrphans has one collector, because there is one installation. It covers all VMs that the
// collector must find and all that it must leave alone.
func TestOrphans(t *testing.T) {
	f := raisedFleet(t)
	all := f.Census(t)
	c := newCollector(t, f)
	fleet := f.Deployment("bystanders", 2, 1, 0)
	f.Create(t, fleet)
	f.AwaitDeployment(t, fleet.Name)
	foreign := c.foreignVM(t)

	t.Run("OneThatAForceRemovedFinalizerLeftIsReported", func(t *testing.T) {
		orphan := c.tearOut(t, "reported")
		c.awaitReported(t, orphan)
		f.Throughout(t, func(ctx context.Context) string { return c.hasVMs(ctx, orphan, foreign) })
		reportsInOrderIn(t, f, metav1.NamespaceDefault, "OrphanCollector/"+c.name, "OrphanFound: ")
	})
	t.Run("WhileListsFailNothingIsDeleted", func(t *testing.T) {
		c.withoutLists(t, localcloud.FaultListFails)
	})
	t.Run("WhileListsLackSomethingNothingIsDeleted", func(t *testing.T) {
		c.withoutLists(t, localcloud.FaultListIncomplete)
	})
	t.Run("WithThePolicyDeleteItIsDeleted", func(t *testing.T) {
		c.set(t, `{"spec":{"policy":"Delete"}}`)
		c.awaitNone(t)
		reportsInOrderIn(t, f, metav1.NamespaceDefault, "OrphanCollector/"+c.name, "OrphanFound: ", "OrphanAdopted: ", "DeletingOrphan: ", "OrphanGone: ")
	})
	t.Run("AVMWhoseCreationWasNeverAnsweredIsReplacedAndDeleted", func(t *testing.T) {
		census := f.Census(t)
		c.fault(t, localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost, Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}}})
		f.Patch(t, fleet, `{"spec":{"replicas":3}}`)
		must(t, f.Launcher(t.Context(), "restart", "crossplane"))
		must(t, f.Launcher(t.Context(), "restart", "provider-drover"))
		f.AwaitDeployment(t, fleet.Name)
		c.awaitNone(t)
		// One of them was the VM of the replaced Machine.
		census.Done(t, 4)
	})
	t.Run("AMachineWhoseCreationWasNeverAnsweredIsNotStuck", func(t *testing.T) {
		m := &member{f: f, name: "lone"}
		c.fault(t, localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost, Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagMachine: m.name}}})
		m.create(t, nil)
		patience.Eventually(t, func(ctx context.Context) string { return m.is(ctx, machinev1alpha1.MachineFailed) }, f.Describe)
		if got := m.machine(t).Status.FailureReason; got != machinev1alpha1.FailureCreateUnknown {
			t.Errorf("it failed for %s", got)
		}
		// As long as the Machine exists, the collector must not delete its VM.
		f.Throughout(t, func(ctx context.Context) string {
			if vms := m.vms(ctx); len(vms) != 1 {
				return fmt.Sprintf("VMs %+v", vms)
			}
			return ""
		})
		m.delete(t)
		patience.Eventually(t, m.gone, f.Describe)
		c.awaitNone(t)
	})
	t.Run("ARestartOfAllInTheMiddleChangesNothing", func(t *testing.T) {
		orphans := []string{c.tearOut(t, "restarted-a"), c.tearOut(t, "restarted-b")}
		// Two orphans of a fleet of three exceed the limit unless they are confirmed.
		c.set(t, fmt.Sprintf(`{"spec":{"confirmedOrphans":[%q,%q]}}`, orphans[0], orphans[1]))
		for _, component := range []string{"crossplane", "function-drover", "provider-drover", "provider-local"} {
			must(t, f.Launcher(t.Context(), "restart", component))
		}
		c.awaitNone(t)
		if s := c.hasVMs(t.Context(), orphans...); s == "" {
			t.Errorf("%v are there", orphans)
		}
	})
	t.Run("OfMoreThanMayBeDeletedOnlyConfirmedOnesAre", func(t *testing.T) {
		c.set(t, `{"spec":{"policy":"Report"}}`)
		orphans := []string{c.tearOut(t, "many-a"), c.tearOut(t, "many-b")}
		patience.Eventually(t, func(ctx context.Context) string {
			if o, err := c.get(ctx); err != nil || o.Status.Orphans != 2 {
				return fmt.Sprintf("want two orphans: %+v, error %v", o.Status, err)
			}
			return ""
		}, c.describe)
		// Other tests have VMs too, so a fifth of all VMs may be more than these two.
		c.set(t, `{"spec":{"policy":"Delete","maxOrphans":1}}`)
		c.awaitCondition(t, "True", "TooManyOrphans")
		f.Throughout(t, func(ctx context.Context) string { return c.hasVMs(ctx, orphans...) })
		c.set(t, fmt.Sprintf(`{"spec":{"confirmedOrphans":[%q]}}`, orphans[0]))
		c.awaitNone(t)
		c.set(t, `{"spec":{"maxOrphans":null}}`)
	})
	t.Run("AVMOfAFormerInstallationIsDeletedWhenThatIsKnownToBeGone", func(t *testing.T) {
		const former = "f0f0f0f0-0000-4000-8000-000000000000"
		vm := c.vmOf(t, former)
		c.set(t, fmt.Sprintf(`{"spec":{"formerInstallations":[%q]}}`, former))
		c.awaitCondition(t, "True", "InstallationNotGone")
		f.Throughout(t, func(ctx context.Context) string { return c.hasVMs(ctx, vm) })
		record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machinev1alpha1.NamespaceOfInstallations, Name: machinev1alpha1.ConfigMapOfInstallations}}
		patience.Eventually(t, func(ctx context.Context) string {
			o, err := c.get(ctx)
			must(t, err)
			if err := f.Client.Get(ctx, client.ObjectKeyFromObject(record), record); err != nil || !strings.HasPrefix(record.Data[o.Status.Installation], "Current since ") {
				return fmt.Sprintf("the record of installations is %v, error %v", record.Data, err)
			}
			return ""
		})
		f.PatchIn(t, f.Control, record, fmt.Sprintf(`{"data":{%q:"Lost, in a test"}}`, former))
		c.set(t, `{"metadata":{"annotations":{"example.org/look":"again"}}}`)
		c.awaitNone(t)
		if s := c.hasVMs(t.Context(), vm); s == "" {
			t.Errorf("VM %s is there", vm)
		}
	})
	t.Run("OneWhoseNodeIsReadyIsNeverDeleted", func(t *testing.T) {
		vm, node := c.tearOutWithItsNode(t, "in-use")
		c.set(t, fmt.Sprintf(`{"spec":{"policy":"Delete","confirmedOrphans":[%q]}}`, vm))
		// The status does not name the Node until the collector has looked for it.
		patience.Eventually(t, func(ctx context.Context) string {
			o, err := c.get(ctx)
			if err != nil {
				return err.Error()
			}
			if got := o.Status.VirtualMachines; len(got) != 1 || got[0].Node != node || !got[0].NodeReady || !strings.Contains(got[0].Message, "drain the Node and delete it") {
				return fmt.Sprintf("want the Node %s: %+v", node, got)
			}
			return ""
		}, c.describe)
		c.awaitCondition(t, "True", "OrphansInUse")
		f.Throughout(t, func(ctx context.Context) string { return c.hasVMs(ctx, vm) })
		must(t, f.Cluster.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}))
		c.awaitNone(t)
	})

	t.Run("NodesOfVMsThatJoinedTooLateAreSwept", func(t *testing.T) {
		patience.Eventually(t, func(ctx context.Context) string {
			machines, err := f.Machines(ctx)
			if err != nil {
				return err.Error()
			}
			uids := map[string]bool{}
			for _, m := range machines {
				uids[string(m.UID)] = true
			}
			joined := &corev1.NodeList{}
			if err := f.Cluster.Client.List(ctx, joined, client.HasLabels{clusterv1alpha1.LabelJoinToken}); err != nil {
				return err.Error()
			}
			for _, n := range joined.Items {
				if uids[n.Labels[clusterv1alpha1.LabelJoinToken]] {
					continue
				}
				if strings.HasPrefix(n.Name, fleet.Name) || strings.HasPrefix(n.Name, "lone-") {
					return fmt.Sprintf("the Node %s is there: %+v", n.Name, n.Status.Conditions)
				}
			}
			return ""
		})
	})

	if s := c.hasVMs(t.Context(), foreign); s != "" {
		t.Errorf("of another installation: %s", s)
	}
	everyMachineHasItsNode(t, f, 3)
	// Three bystanders and one whose creation was never answered, the lone one, and six that were
	// torn out.
	all.Done(t, 11)
	must(t, f.Cloud.DeleteVM(t.Context(), foreign))
	c.delete(t)
	f.DeleteDeployment(t, fleet.Name)
}

// A collector of orphans with short times, for a test.
type collector struct {
	f    kit.Fleet
	name string
	key  client.ObjectKey
}

func newCollector(t *testing.T, f kit.Fleet) *collector {
	t.Helper()
	c := &collector{f: f, name: f.Namespace, key: client.ObjectKey{Name: f.Namespace}}
	o := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
	o.Spec.Namespace = f.Namespace
	o.Spec.GracePeriod.Duration = 10 * time.Minute
	o.Spec.Interval.Duration = time.Second
	f.Create(t, o)
	// For the collector, ten minutes pass within three seconds.
	go f.Age(t.Context(), "local.drover.dev", f.Namespace, o.Spec.GracePeriod.Duration-3*time.Second)
	c.awaitCondition(t, "False", "NoOrphans")
	return c
}

func (c *collector) get(ctx context.Context) (*machinev1alpha1.OrphanCollector, error) {
	o := &machinev1alpha1.OrphanCollector{}
	return o, c.f.Client.Get(ctx, c.key, o)
}

func (c *collector) set(t *testing.T, patch string) {
	t.Helper()
	o, err := c.get(t.Context())
	must(t, err)
	c.f.Patch(t, o, patch)
}

func (c *collector) fault(t *testing.T, f localcloud.Fault) string {
	t.Helper()
	made, err := c.f.Cloud.CreateFault(t.Context(), f)
	must(t, err)
	return made.ID
}

func (c *collector) awaitCondition(t *testing.T, status, reason string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o, err := c.get(ctx)
		if err != nil {
			return err.Error()
		}
		if found := meta.FindStatusCondition(o.Status.Conditions, "OrphansFound"); found == nil || string(found.Status) != status || found.Reason != reason {
			return fmt.Sprintf("want OrphansFound %s for %s: %+v", status, reason, o.Status)
		}
		return ""
	}, c.describe)
}

func (c *collector) awaitReported(t *testing.T, orphan string) {
	t.Helper()
	c.awaitCondition(t, "True", "Reported")
	o, err := c.get(t.Context())
	must(t, err)
	if len(o.Status.VirtualMachines) != 1 || o.Status.VirtualMachines[0].ExternalName != orphan || o.Status.Orphans != 1 {
		t.Errorf("want %s: %+v", orphan, o.Status)
	}
}

// awaitNone waits until each VM of the namespace has a Machine, and the collector reports no
// orphan.
func (c *collector) awaitNone(t *testing.T) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := c.f.Machines(ctx)
		if err != nil {
			return err.Error()
		}
		of := map[string]bool{}
		for _, m := range machines {
			of[string(m.UID)] = true
		}
		vms, err := c.f.VMs(ctx)
		if err != nil {
			return err.Error()
		}
		for _, vm := range vms {
			if !of[vm.Tags[machinev1alpha1.TagMachineUID]] {
				return fmt.Sprintf("VM %s of Machine %s is an orphan", vm.ID, vm.Tags[machinev1alpha1.TagMachine])
			}
		}
		if adopted, err := c.adopted(ctx); err != nil || len(adopted) > 0 {
			return fmt.Sprintf("the collector has %v, error %v", adopted, err)
		}
		return ""
	}, c.describe, c.f.Describe)
	c.awaitCondition(t, "False", "NoOrphans")
}

// adopted returns the adopted VM resources.
func (c *collector) adopted(ctx context.Context) ([]string, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachineList"})
	err := c.f.Client.List(ctx, l, client.InNamespace(c.f.Namespace), client.HasLabels{machinev1alpha1.LabelOrphanCollector})
	var names []string
	for _, o := range l.Items {
		names = append(names, o.GetName())
	}
	return names, err
}

func (c *collector) describe(ctx context.Context) string {
	ctx = context.WithoutCancel(ctx)
	o, err := c.get(ctx)
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: "local.drover.dev", Version: "v1alpha1", Kind: "VirtualMachineInventoryList"})
	_ = c.f.Client.List(ctx, l, client.InNamespace(c.f.Namespace))
	return fmt.Sprintf("collector %+v, error %v; inventories %+v", o.Status, err, l.Items)
}

// hasVMs reports which of the VMs is missing in the cloud.
func (c *collector) hasVMs(ctx context.Context, ids ...string) string {
	vms, err := c.f.Cloud.ListVMs(ctx, localcloud.ListVMsOptions{})
	if err != nil {
		return err.Error()
	}
	for _, id := range ids {
		if !slices.ContainsFunc(vms, func(vm localcloud.VM) bool { return vm.ID == id }) {
			return fmt.Sprintf("VM %s is gone", id)
		}
	}
	return ""
}

// foreignVM creates a VM of another installation in the same account, for a Machine that does not
// exist in this installation.
func (c *collector) foreignVM(t *testing.T) string { return c.vmOf(t, "another") }

func (c *collector) vmOf(t *testing.T, installation string) string {
	t.Helper()
	vm, err := c.f.Cloud.CreateVM(t.Context(), localcloud.CreateVMRequest{
		Name: installation, Image: localcloud.ImageUbuntu2404, Size: localcloud.SizeSmall,
		Tags: map[string]string{
			machinev1alpha1.TagInstallation: installation, machinev1alpha1.TagCluster: "default",
			machinev1alpha1.TagNamespace: c.f.Namespace + "-elsewhere", machinev1alpha1.TagMachine: "foreign", machinev1alpha1.TagMachineUID: "f0f0f0f0",
		},
	})
	must(t, err)
	return vm.ID
}

// tearOut creates a Machine and removes all its finalizers. It returns the orphaned VM.
func (c *collector) tearOut(t *testing.T, name string) string {
	t.Helper()
	m := running(t, c.f, name)
	vms := m.vms(t.Context())
	if len(vms) != 1 {
		t.Fatalf("VMs %+v", vms)
	}
	resource := m.vmResource(t)
	kubectl(t, c.f, "patch", "virtualmachines.local.drover.dev", resource, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/stuck"}]`)
	m.delete(t)
	m.awaitStage(t, machinev1alpha1.DeletionDeletingVM)
	// The stage is reported before it begins. If the VM resource is not being deleted yet, its
	// provider would add its finalizer again, and delete the VM.
	patience.Eventually(t, func(context.Context) string {
		if at := kubectl(t, c.f, "get", "virtualmachines.local.drover.dev", resource, "-o", "jsonpath={.metadata.deletionTimestamp}"); at == "" {
			return "the VM resource is not being deleted"
		}
		return ""
	})
	kubectl(t, c.f, "patch", "virtualmachines.local.drover.dev", resource, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	patience.Eventually(t, m.gone, c.f.Describe)
	return vms[0].ID
}

// tearOutWithItsNode creates a Machine and removes its finalizer while its Node is Ready. It
// returns the VM and the name of the Node.
func (c *collector) tearOutWithItsNode(t *testing.T, name string) (vm, node string) {
	t.Helper()
	m := running(t, c.f, name)
	vms := m.vms(t.Context())
	if len(vms) != 1 {
		t.Fatalf("VMs %+v", vms)
	}
	node = m.machine(t).Status.NodeRef.Name
	// The Node of a paused Machine is not drained.
	c.f.Patch(t, m.machine(t), `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
	m.delete(t)
	c.f.Patch(t, m.machine(t), `{"metadata":{"finalizers":null}}`)
	patience.Eventually(t, m.gone, c.f.Describe)
	return vms[0].ID, node
}

// withoutLists makes all lists of the installation's VMs fail for a while, with the policy
// Delete, and then sets the policy to Report again.
func (c *collector) withoutLists(t *testing.T, kind localcloud.FaultKind) {
	t.Helper()
	o, err := c.get(t.Context())
	must(t, err)
	before, err := c.f.Cloud.ListVMs(t.Context(), localcloud.ListVMsOptions{})
	must(t, err)
	var ids []string
	for _, vm := range before {
		if vm.Tags[machinev1alpha1.TagNamespace] == c.f.Namespace {
			ids = append(ids, vm.ID)
		}
	}
	fault := c.fault(t, localcloud.Fault{Kind: kind, Count: 10000, Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagInstallation: o.Status.Installation}}})
	c.awaitCondition(t, "Unknown", "InventoryUnavailable")
	c.set(t, `{"spec":{"policy":"Delete"}}`)
	c.f.Throughout(t, func(ctx context.Context) string {
		if adopted, err := c.adopted(ctx); err != nil || len(adopted) > 0 {
			return fmt.Sprintf("the collector has %v, error %v", adopted, err)
		}
		return c.hasVMs(ctx, ids...)
	})
	c.set(t, `{"spec":{"policy":"Report"}}`)
	must(t, c.f.Cloud.DeleteFault(t.Context(), fault))
	c.awaitCondition(t, "True", "Reported")
}

func (c *collector) delete(t *testing.T) {
	t.Helper()
	o, err := c.get(t.Context())
	must(t, err)
	must(t, c.f.Client.Delete(t.Context(), o))
	patience.Eventually(t, func(ctx context.Context) string {
		if _, err := c.get(ctx); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Sprintf("the collector is there: %v", err)
		}
		return ""
	})
}
