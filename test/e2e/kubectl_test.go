package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	kubectlcollect "github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/internal/names"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var recordViews = flag.String("record-views", "", "a folder in which the views of the faults are saved, as internal/kubectl/diagnosis/testdata/views")

// A diagnosis is a fault, and the report of kubectl drover that it must cause.
type diagnosis struct {
	// cause the fault. The result is an object whose report "why" must explain the fault, in
	// addition to the MachineDeployment.
	cause func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) (why string)
	// change the MachineDeployment before it is created.
	change func(f kit.Fleet, md *machinev1alpha1.MachineDeployment)
	// cure ends the fault, nil if endFault does.
	cure func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment)
	// texts of the cause and of the fix, and early those while the fault may still end by itself.
	texts, early []string
	// exit code of status.
	exit int
}

// allFaults of fleets, each in a separate namespace.
func allFaults() map[string]diagnosis {
	out := maps.Clone(faults)
	for _, more := range []map[string]diagnosis{faultsOfTheCloud, faultsOfConfigurations, faultsOfNodes} {
		maps.Copy(out, more)
	}
	return out
}

// inShort are the faults of the short form: one for each way in which a cause reaches a view. The recorded views of all
// faults are rendered by the tests of internal/kubectl/diagnosis.
var inShort = map[string]bool{"WrongImage": true, "UnknownField": true, "MissingConfiguration": true, "BlockedBudget": true, "TargetDown": true}

// faults of what a user wrote, and of fleets.
var faults = map[string]diagnosis{
	"Quota": {
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			refuse := &refusal{Fleet: f}
			refuse.refuseVMs(t, localcloud.CodeQuotaExceeded, 0)
			f.Create(t, md)
			awaitReason(t, f, md, "ReplicaFailure", "QuotaExceeded")
			return "ma/" + onlyMachine(t, f).Name
		},
		texts: []string{"QuotaExceeded", "not now", "Raise the quota at the cloud"}, exit: 2,
	},
	"WrongImage": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClassRef.Name = "wrong"
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, f.Class("wrong", "local", `{"image":"ubuntu-99.04","size":"small"}`))
			f.Create(t, md)
			awaitReason(t, f, md, "ReplicaFailure", "InvalidRequest")
			return "ma/" + onlyMachine(t, f).Name
		},
		texts: []string{"InvalidRequest", "ubuntu-99.04", "Create a class with correct spec.forProvider"}, exit: 3,
	},
	"UnknownField": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClassRef.Name = "misspelt"
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, f.Class("misspelt", "local", `{"image":"ubuntu-24.04","size":"small","flavour":"sweet"}`))
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "ForProviderInvalid")
			return ""
		},
		texts: []string{"ForProviderInvalid", "forProvider.flavour", "Create a class with the correct fields and name it in classRef: a class is immutable"}, exit: 3,
	},
	"MissingClass": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClassRef.Name = "absent"
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "ClassNotFound")
			return ""
		},
		texts: []string{"ClassNotFound", "absent", "Create the class, or name another one in spec.classRef"}, exit: 3,
	},
	"MissingCredentials": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			pc := &clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target"}}
			pc.Spec.Credentials = clusterv1alpha1.Credentials{
				Source: clusterv1alpha1.CredentialsSecret, SecretRef: &clusterv1alpha1.SecretKeySelector{Name: "absent", Key: "kubeconfig"},
			}
			f.Create(t, pc)
			f.Create(t, md)
			awaitFrozen(t, f, md, "TargetUnreachable")
			return ""
		},
		texts: []string{"CredentialsMissing", "absent", "Create the Secret that spec.credentials names"}, exit: 3,
	},
	"BlockedBudget": {
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			m := blockedMember(t, f)
			m.delete(t)
			m.awaitBlocked(t, "misconfigured")
			return "ma/" + m.name
		},
		texts: []string{"-held", "the PodDisruptionBudget", "maxUnavailable is 0", machinev1alpha1.AnnotationForceDrain}, exit: 3,
	},
	"BlockedParent": {
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			m := blockedMember(t, f)
			must(t, f.Client.Delete(t.Context(), md, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			m.awaitBlocked(t, "misconfigured")
			awaitReason(t, f, md, "Reconciling", "DrainBlocked")
			return "ma/" + m.name
		},
		texts: []string{"-held", "PodDisruptionBudget", machinev1alpha1.AnnotationForceDrain}, exit: 3,
	},
	"KubeletNeverStarts": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.AutoPreserveFailedMachineMax = 1
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			neverBoot(t, f, 1000)
			f.Create(t, md)
			name := awaitJoining(t, f)
			timeOut(t, f, name)
			awaitPreserved(t, f, name, machinev1alpha1.FailureJoinTimeout)
			return "ma/" + name
		},
		texts: []string{"JoinTimeout", "last milestone: VMRunning", "Read the console of the VM"}, exit: 3,
	},
	"NodeWithoutProviderID": {
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			neverBoot(t, f, 1000)
			f.Create(t, md)
			m := awaitOnlyMachine(t, f)
			// A kubelet registers with the right name, but with neither the providerID nor the
			// label.
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: names.OfMachine(m.Name, m.UID)}}
			must(t, f.Cluster.Client.Create(t.Context(), n))
			t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), n) })
			patience.Eventually(t, func(ctx context.Context) string {
				return answered(ctx, f, &machinev1alpha1.MachineList{}, "NodeIdentified", []string{"NodeUnproven"})
			}, f.Describe)
			return "ma/" + m.Name
		},
		texts: []string{"NodeUnproven", "cluster.drover.dev/join-token", "providerID of the VM"}, exit: 3,
	},
	"TooManyUnhealthy": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Replicas = 3
			md.Spec.Template.Spec.Health.Timeout = metav1.Duration{Duration: 5 * time.Second}
			md.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromInt32(1))
			md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(0))
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			all := slices.Sorted(maps.Keys(machineNames(t, f)))
			strike(t, f, localcloud.FaultKubeletStops, all...)
			awaitFailed(t, f, 2)
			awaitReason(t, f, md, "Stalled", "TooManyUnhealthy")
			return "ma/" + all[0]
		},
		texts: []string{"unhealthy", "maxUnhealthy"}, exit: 3,
	},
	"MissingCluster": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ClusterProviderConfig", Name: "absent"}
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "ClusterNotFound")
			awaitReason(t, f, md, "Stalled", "ClusterNotFound")
			return ""
		},
		texts: []string{"ClusterNotFound", `there is no ClusterProviderConfig "absent"`, "Create the configuration, or name another one"}, exit: 3,
	},
	"MissingConfiguration": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClassRef.Name = "unconfigured"
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			class := f.Class("unconfigured", "local", `{"image":"ubuntu-24.04","size":"small"}`)
			class.Spec.ProviderConfigRef.Name = "absent"
			f.Create(t, class)
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "ProviderConfigNotFound")
			awaitReason(t, f, md, "Stalled", "ProviderConfigNotFound")
			if vms := kubectl(t, f, "get", "virtualmachines.local.drover.dev", "-o", "name", "--ignore-not-found"); vms != "" {
				t.Errorf("there is a VM resource, whose provider cannot reach the cloud: %s", vms)
			}
			return "ma/" + onlyMachine(t, f).Name
		},
		cure: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			only, config := onlyMachine(t, f), &unstructured.Unstructured{}
			config.SetAPIVersion("local.drover.dev/v1alpha1")
			config.SetKind("ClusterProviderConfig")
			must(t, f.Client.Get(t.Context(), client.ObjectKey{Name: "default"}, config))
			config.Object = map[string]any{"apiVersion": config.GetAPIVersion(), "kind": config.GetKind(), "metadata": map[string]any{"name": "absent"}, "spec": config.Object["spec"]}
			must(t, f.Client.Create(t.Context(), config))
			t.Cleanup(func() { _ = f.Client.Delete(context.Background(), config) })
			f.AwaitDeployment(t, md.Name)
			if now := onlyMachine(t, f); now.UID != only.UID {
				t.Errorf("Machine %s was replaced by %s: it needed the configuration only", only.Name, now.Name)
			}
		},
		texts: []string{"ProviderConfigNotFound", "absent", "Create it, or name another one in a class of its own: a class is immutable"}, exit: 3,
	},
	"NodeDeleted": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) { md.Spec.AutoPreserveFailedMachineMax = 1 },
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			m := onlyMachine(t, f)
			must(t, f.Cluster.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}))
			awaitPreserved(t, f, m.Name, machinev1alpha1.FailureNodeDeleted)
			return "ma/" + m.Name
		},
		early: []string{"NodeGone", "is gone from the target cluster", "the Machine is Failed at", "Find out which client deleted the Node"},
		texts: []string{"NodeDeleted", "is gone from the target cluster", "Find out which client deleted the Node"}, exit: 3,
	},
	"FreezeMisspelt": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Labels = map[string]string{machinev1alpha1.LabelFreeze: "True"}
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			return ""
		},
		texts: []string{"FreezeLabelInvalid", `"True" must be "true" or "false"`, "Set the label to"}, exit: 3,
	},
	"FailedBehindAnother": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Replicas = 2
			md.Spec.Template.Spec.Health.Timeout = metav1.Duration{Duration: 5 * time.Second}
			md.Spec.Remediation.MaxUnhealthy, md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(2)), ptr.To(intstr.FromInt32(1))
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			neverBoot(t, f, 1000)
			all := slices.Sorted(maps.Keys(machineNames(t, f)))
			strike(t, f, localcloud.FaultKubeletStops, all...)
			awaitFailed(t, f, 2)
			awaitJoining(t, f)
			awaitReason(t, f, md, "RemediationAllowed", "WaitingForMachines")
			machines, err := f.Machines(t.Context())
			must(t, err)
			failed := slices.IndexFunc(machines, func(m machinev1alpha1.Machine) bool {
				return m.Status.Phase == machinev1alpha1.MachineFailed && m.DeletionTimestamp.IsZero()
			})
			if failed < 0 {
				t.Fatalf("no Machine is Failed:\n%s", f.Describe(t.Context()))
			}
			return "ma/" + machines[failed].Name
		},
		texts: []string{"WaitingForMachines", "The replacement waits: WaitingForMachines", "kubectl delete ma/", "raise maxInFlight"}, exit: 2,
	},
	"TargetDown": {
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			m := onlyMachine(t, f)
			cuts[f.Namespace].Cut()
			patience.Eventually(t, func(ctx context.Context) string {
				return answered(ctx, f, &clusterv1alpha1.ProviderConfigList{}, "Reachable", []string{"Unreachable"})
			})
			f.Patch(t, md, `{"spec":{"replicas":2}}`)
			awaitFrozen(t, f, md, "TargetUnreachable")
			return "ma/" + m.Name
		},
		texts: []string{"Unreachable", "Check the network and the API server"}, exit: 3,
	},
}

// cuts are the proxies of the fleets whose target cluster becomes unreachable, by namespace.
var cuts = map[string]*kit.Proxy{}

// TestKubectlDroverNamesCauseAndCure of many faults, each of a separate MachineDeployment.
func TestKubectlDroverNamesCauseAndCure(t *testing.T) {
	t.Parallel()
	fleets, some := map[string]kit.Fleet{}, allFaults()
	if kit.IsShort() && *recordViews == "" {
		maps.DeleteFunc(some, func(name string, _ diagnosis) bool { return !inShort[name] })
	}
	for name := range some {
		if name == "TargetDown" {
			f, proxy := plane.NewProxiedFleet(t)
			fleets[name], cuts[f.Namespace] = f, proxy
			t.Cleanup(proxy.Mend)
			continue
		}
		fleets[name] = plane.NewFleet(t)
	}
	for name, d := range some {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fleets[name]
			md := f.Deployment("workers", 1, 1, 0)
			if d.change != nil {
				d.change(f, md)
			}
			found := watchReport(t, f, d)
			why := d.cause(t, f, md)
			if saveView(t, f, name); *recordViews == "" {
				d.isReported(t, f, why)
			}
			logReport(t, f, name, found)
			if d.cure != nil && *recordViews == "" {
				d.cure(t, f, md)
			}
			endFault(t, f, md)
		})
	}
}

// isReported checks the reports of status and why.
func (d diagnosis) isReported(t *testing.T, f kit.Fleet, machine string) {
	t.Helper()
	asked := [][]string{{"status"}, {"status", "md", "workers"}, {"why", "md/workers"}}
	if machine != "" {
		asked = append(asked, []string{"why", machine})
	}
	for _, args := range asked {
		patience.Eventually(t, func(ctx context.Context) string {
			out, code := runPlugin(ctx, f, args...)
			if text := d.missing(out); text != "" {
				return fmt.Sprintf("kubectl drover %s does not report %q:\n%s", strings.Join(args, " "), text, out)
			}
			if args[0] == "status" && code != d.exit {
				return fmt.Sprintf("kubectl drover %s ended with %d, want %d:\n%s", strings.Join(args, " "), code, d.exit, out)
			}
			return ""
		}, f.Describe)
	}
}

// missing returns a text that a report does not have, "" if it has all of them.
func (d diagnosis) missing(report string) string { return lacks(report, d.texts) }

// lacks returns the first text that a report lacks.
func lacks(report string, texts []string) string {
	report = strings.Join(strings.Fields(report), " ")
	for _, text := range texts {
		if !strings.Contains(report, text) {
			return text
		}
	}
	return ""
}

// runPlugin runs kubectl drover in the namespace of a fleet, and returns its output and its exit
// code.
func runPlugin(ctx context.Context, f kit.Fleet, args ...string) (out string, code int) {
	args = append(args, "--kubeconfig", f.Kubeconfig, "--namespace", f.Namespace)
	ctx, cancel := context.WithTimeout(ctx, patience.Limit())
	defer cancel()
	b, err := exec.CommandContext(ctx, filepath.Join(os.Getenv("DROVER_BIN"), "kubectl-drover"), args...).CombinedOutput()
	exit := &exec.ExitError{}
	switch {
	case errors.As(err, &exit):
		return string(b), exit.ExitCode()
	case err != nil:
		return string(b) + err.Error(), -1
	}
	return string(b), 0
}

func saveView(t *testing.T, f kit.Fleet, name string) {
	t.Helper()
	if *recordViews == "" {
		return
	}
	v, err := kubectlcollect.View(t.Context(), f.Client, time.Now(), kubectlcollect.Options{Namespace: f.Namespace, Resources: true, Tokens: true, Events: true, Nodes: true})
	must(t, err)
	// Fleets of other tests join the same cluster.
	own := &view.Target{}
	for i := range v.Machines {
		if n := v.NodeOf(&v.Machines[i]); n != nil {
			own.Nodes = append(own.Nodes, *n)
		}
		own.CSRs = append(own.CSRs, v.CSRsOf(&v.Machines[i])...)
	}
	v.Target = own
	b, err := yaml.Marshal(v)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(*recordViews, name+".yaml"), b, 0o600))
}

// endFault deletes all objects, by force if their deletion is held.
func endFault(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	if p := cuts[f.Namespace]; p != nil {
		p.Mend()
	}
	if end, ok := undo.Load(f.Namespace); ok {
		must(t, end.(func(context.Context) error)(t.Context()))
	}
	must(t, client.IgnoreNotFound(f.Client.Delete(t.Context(), md, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	machines, err := f.Machines(t.Context())
	must(t, err)
	for i := range machines {
		_ = f.Client.Patch(t.Context(), &machines[i], client.RawPatch("application/merge-patch+json",
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true",%q:"true",%q:null,"crossplane.io/paused":null}}}`,
				machinev1alpha1.AnnotationForceDrain, machinev1alpha1.AnnotationSkipDrain, machinev1alpha1.HookPreDrain+"backup")))
	}
	patience.Eventually(t, func(ctx context.Context) string {
		l := &machinev1alpha1.MachineDeploymentList{}
		if err := f.Client.List(ctx, l, client.InNamespace(f.Namespace)); err != nil || len(l.Items) > 0 {
			return fmt.Sprintf("%d MachineDeployments are left: %v", len(l.Items), err)
		}
		return ""
	}, f.Describe)
	must(t, f.Client.DeleteAllOf(t.Context(), &clusterv1alpha1.ProviderConfig{}, client.InNamespace(f.Namespace)))
}

// blockedMember is the only Machine of a fleet, with a pod that no budget allows to evict.
func blockedMember(t *testing.T, f kit.Fleet) *member {
	t.Helper()
	machine := onlyMachine(t, f)
	m := &member{f: f, name: machine.Name, node: machine.Status.NodeRef.Name}
	m.pod(t, "held", nil)
	pdb := m.budget(t, "web", "held", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(intstr.FromInt32(0))})
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(pdb), pdb); err != nil || pdb.Status.CurrentHealthy != 1 {
			return fmt.Sprintf("the budget sees %d healthy pods, %v", pdb.Status.CurrentHealthy, err)
		}
		return ""
	})
	return m
}

// awaitPreserved waits until a Machine is Failed for a reason, and preserved.
func awaitPreserved(t *testing.T, f kit.Fleet, name string, reason machinev1alpha1.FailureReason) {
	t.Helper()
	m := &machinev1alpha1.Machine{}
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil {
			return err.Error()
		}
		if m.Status.FailureReason != reason || m.Status.Preservation == nil {
			return fmt.Sprintf("Machine %s: failure %q, preservation %+v", name, m.Status.FailureReason, m.Status.Preservation)
		}
		return ""
	}, f.Describe)
}

// neverBoot: the next VMs of a fleet run and never boot.
func neverBoot(t *testing.T, f kit.Fleet, count int) {
	t.Helper()
	_, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{Kind: localcloud.FaultNeverBoots, Count: count, Match: localcloud.FaultMatch{Tags: map[string]string{
		machinev1alpha1.TagNamespace: f.Namespace,
	}}})
	must(t, err)
}

func awaitOnlyMachine(t *testing.T, f kit.Fleet) machinev1alpha1.Machine {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		if err != nil || len(machines) != 1 {
			return fmt.Sprintf("%d Machines, %v", len(machines), err)
		}
		return ""
	})
	return *onlyMachine(t, f)
}

// TestKubectlDroverPlansWhatHappens plans three changes of a running MachineDeployment, applies
// each, and compares.
func TestKubectlDroverPlansWhatHappens(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("workers", 3, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	for _, tc := range []struct {
		name   string
		change func(*machinev1alpha1.MachineDeployment)
		// numbers of replaced, deleted and created Machines.
		replaced, deleted, created int
		// exit code of kubectl drover plan.
		exit int
	}{
		{"ADrainTimeoutReplacesNone", func(md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.Drain.Timeout.Duration = time.Minute
		}, 0, 0, 0, 2},
		{"ANewVersionReplacesAll", func(md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Version = kit.NewVersion }, 3, 0, 3, 3},
		{"FewerReplicasDeleteTwo", func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = 1 }, 0, 2, 0, 3},
	} {
		step(t, tc.name, func(t *testing.T) {
			before := machineNames(t, f)
			tc.change(md)
			file := filepath.Join(t.TempDir(), "workers.yaml")
			must(t, os.WriteFile(file, manifest(t, md), 0o600))
			out, code := runPlugin(t.Context(), f, "plan", "-f", file, "-o", "json", "--detailed-exitcode")
			var plans []forecast.Forecast
			if err := json.Unmarshal([]byte(out), &plans); err != nil || code != tc.exit || len(plans) != 1 {
				t.Fatalf("exit code %d, %v: %s", code, err, out)
			}
			p := plans[0]
			if len(p.Replaced) != tc.replaced || len(p.Deleted) != tc.deleted || int(p.Created) != tc.created {
				t.Errorf("planned %+v", p)
			}
			kubectl(t, f, "apply", "--server-side", "--force-conflicts", "-f", file)
			f.AwaitDeployment(t, md.Name)
			after := machineNames(t, f)
			var gone []string
			for name := range before {
				if !after[name] {
					gone = append(gone, name)
				}
				delete(after, name)
			}
			if want := slices.Sorted(slices.Values(slices.Concat(p.Replaced, p.Deleted))); !slices.Equal(slices.Sorted(slices.Values(gone)), want) || len(after) != int(p.Created) {
				t.Errorf("planned that %v go and %d are created; %v are gone and %v were created", want, p.Created, gone, after)
			}
		})
	}
	f.DeleteDeployment(t, md.Name)
}

// manifest returns a MachineDeployment as a user would write it.
func manifest(t *testing.T, md *machinev1alpha1.MachineDeployment) []byte {
	t.Helper()
	o := md.DeepCopy()
	o.ObjectMeta = metav1.ObjectMeta{Namespace: md.Namespace, Name: md.Name}
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	must(t, err)
	delete(u, "status")
	u["apiVersion"], u["kind"] = machinev1alpha1.SchemeGroupVersion.String(), "MachineDeployment"
	b, err := yaml.Marshal(u)
	must(t, err)
	return b
}

// TestKubectlDroverChangesWhatItIsAskedTo runs each command that changes an object.
func TestKubectlDroverChangesWhatItIsAskedTo(t *testing.T) {
	t.Parallel()
	f := plane.NewFleet(t)
	md := f.Deployment("workers", 1, 1, 0)
	f.Create(t, md)
	f.AwaitDeployment(t, md.Name)
	done := func(t *testing.T, want string, args ...string) {
		t.Helper()
		if out, code := runPlugin(t.Context(), f, args...); code != 0 || !strings.Contains(out, want) {
			t.Fatalf("kubectl drover %s: exit code %d, want %q in\n%s", strings.Join(args, " "), code, want, out)
		}
	}
	refused := func(t *testing.T, want string, args ...string) {
		t.Helper()
		if out, code := runPlugin(t.Context(), f, args...); code != 1 || !strings.Contains(out, want) {
			t.Fatalf("kubectl drover %s: exit code %d, want %q in\n%s", strings.Join(args, " "), code, want, out)
		}
	}
	step(t, "RolloutsArePausedAndResumed", func(t *testing.T) {
		done(t, "machinedeployment.machine.drover.dev/workers paused", "rollout", "pause", "md/workers")
		refused(t, "already paused", "rollout", "pause", "md", "workers")
		refused(t, "is paused", "rollout", "restart", "md/workers")
		done(t, "resumed", "rollout", "resume", "md/workers")
	})
	first := onlyMachine(t, f).Name
	step(t, "ARestartReplacesTheMachine", func(t *testing.T) {
		done(t, "restarted", "rollout", "restart", "md/workers")
		done(t, "successfully rolled out", "rollout", "status", "md/workers", patience.Flag())
		f.AwaitDeployment(t, md.Name)
		if m := onlyMachine(t, f); m.Name == first {
			t.Errorf("Machine %s was not replaced", first)
		}
	})
	step(t, "AnUndoGoesBack", func(t *testing.T) {
		roll(t, f, md, kit.NewVersion)
		f.AwaitDeployment(t, md.Name)
		done(t, "rolled back to revision 2", "rollout", "undo", "md/workers")
		done(t, "successfully rolled out", "rollout", "status", "md/workers", patience.Flag())
		f.AwaitDeployment(t, md.Name)
		if m := onlyMachine(t, f); m.Spec.Version != kit.OldVersion {
			t.Errorf("Machine %s is of version %s", m.Name, m.Spec.Version)
		}
		done(t, kit.NewVersion, "rollout", "history", "md/workers")
		refused(t, "unable to find revision 9", "rollout", "undo", "md/workers", "--to-revision=9")
	})
	step(t, "AFreezeHoldsTheScaleUp", func(t *testing.T) {
		done(t, "frozen", "freeze", "md/workers")
		kubectl(t, f, "scale", "md", md.Name, "--replicas=2")
		awaitFrozen(t, f, md, "ManualFreeze")
		done(t, "not frozen", "freeze", "md/workers", "--undo")
		f.AwaitDeployment(t, md.Name)
	})
	step(t, "AStepAwaitsItsApproval", func(t *testing.T) {
		refused(t, "no step that could be approved", "rollout", "approve", "md/workers")
		kubectl(t, f, "patch", "md", md.Name, "--type=merge", "-p", `{"spec":{"strategy":{"rollingUpdate":{"steps":[{"updated":1,"approval":"Manual"}]}}}}`)
		roll(t, f, md, kit.NewVersion)
		awaitReason(t, f, md, "Progressing", "AwaitingApproval")
		done(t, "approved: step 1 of 1", "rollout", "approve", "md/workers")
		done(t, "successfully rolled out", "rollout", "status", "md/workers", patience.Flag())
		f.AwaitDeployment(t, md.Name)
		refused(t, "is complete", "rollout", "abort", "md/workers")
	})
	step(t, "AMachineIsPreservedAndReplaced", func(t *testing.T) {
		name := slices.Sorted(maps.Keys(machineNames(t, f)))[0]
		done(t, "preserved", "preserve", "ma/"+name)
		patience.Eventually(t, func(ctx context.Context) string {
			m := &machinev1alpha1.Machine{}
			if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: name}, m); err != nil || m.Status.Preservation == nil {
				return fmt.Sprintf("it is not preserved, %v", err)
			}
			return ""
		})
		done(t, "not preserved", "preserve", "ma/"+name, "--undo")
		done(t, "marked to be replaced", "replace", "ma", name)
		awaitReplaced(t, f, md, name)
	})
	step(t, "AMachineIsDrainedAndDeleted", func(t *testing.T) {
		name := slices.Sorted(maps.Keys(machineNames(t, f)))[0]
		refused(t, "is not being deleted", "drain", "ma/"+name)
		done(t, "drained and deleted", "drain", "ma/"+name, "--delete")
		awaitReplaced(t, f, md, name)
	})
	step(t, "TheHistoryHasEachReplacement", func(t *testing.T) { checkHistory(t, f, md, first) })
	done(t, "VirtualMachine/", "tree", "md/workers")
	done(t, "complete", "status", "md/workers", "--watch")
	f.DeleteDeployment(t, md.Name)
}

// checkHistory checks that status.replacements has the seven replacements of the test, each once and with its drain,
// and that kubectl drover shows them.
func checkHistory(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, first string) {
	t.Helper()
	who := &authv1.SelfSubjectReview{}
	must(t, f.Client.Create(t.Context(), who))
	want := []string{"Rollout 2", "Rollout 3", "Rollout 4", "Rollout 5", "Rollout 5", "Requested by " + who.Status.UserInfo.Username, "Deleted"}
	var all []machinev1alpha1.ReplacedMachine
	patience.Eventually(t, func(ctx context.Context) string {
		if err := f.Client.Get(ctx, client.ObjectKeyFromObject(md), md); err != nil {
			return err.Error()
		}
		all = md.Status.Replacements
		var is []string
		for _, e := range all {
			text := string(e.Reason)
			switch {
			case e.Revision > 0:
				text += fmt.Sprintf(" %d", e.Revision)
			case e.RequestedBy != "":
				text += " by " + e.RequestedBy
			}
			is = append(is, text)
			if e.Node == "" || e.DrainDuration == nil {
				return fmt.Sprintf("no Node or no duration of the drain: %+v", e)
			}
		}
		if !slices.Equal(is, want) {
			return fmt.Sprintf("replacements are %v, want %v", is, want)
		}
		return ""
	}, f.Describe)
	if all[0].Machine != first {
		t.Errorf("the first one is %s, want %s", all[0].Machine, first)
	}
	out, code := runPlugin(t.Context(), f, "history", "md/workers")
	for _, text := range []string{all[0].Node, "rollout of revision 2", "user " + who.Status.UserInfo.Username, "see the audit log"} {
		if code != 0 || !strings.Contains(out, text) {
			t.Errorf("kubectl drover history md/workers: exit code %d, want %q in\n%s", code, text, out)
		}
	}
	out, code = runPlugin(t.Context(), f, "history", "-o", "json")
	listed := []struct{ Machine, Reason string }{}
	if err := json.Unmarshal([]byte(out), &listed); code != 0 || err != nil || len(listed) != len(all) || listed[0].Machine != first {
		t.Errorf("kubectl drover history -o json: exit code %d, %v, in\n%s", code, err, out)
	}
	if out, code = runPlugin(t.Context(), f, "why", "ma/"+first); code != 1 || !strings.Contains(out, "it was replaced at") {
		t.Errorf("kubectl drover why ma/%s: exit code %d, want its replacement in\n%s", first, code, out)
	}
}
