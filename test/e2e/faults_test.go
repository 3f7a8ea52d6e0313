package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/localcloud"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

// faultsOfTheCloud are of the menu of make demo-break. Quota and never-boots are above. Those of VMs that run take a minute: the
// states of the simulator in internal/kubectl/diagnosis have them.
var faultsOfTheCloud = map[string]diagnosis{
	"NoRoom":    refusing(localcloud.CodeCapacityExhausted, 2, "CapacityExhausted", "use another failure domain or another class"),
	"Denied":    refusing(localcloud.CodePermissionDenied, 3, "PermissionDenied", "Renew the credentials, or grant the right"),
	"Throttled": refusing(localcloud.CodeThrottled, 2, "Throttled", "not now"),
	"Outage": withFault(localcloud.Fault{Kind: localcloud.FaultUnavailable, Message: "maintenance", Count: 1000, Delay: localcloud.Duration(2 * time.Second)},
		"ReplicaFailure", "Transient", "maintenance"),
	"AnswerLost": withFault(localcloud.Fault{Kind: localcloud.FaultCreateAnswerLost, Count: 1000},
		"ReplicaFailure", "CreateResultUnknown", "it is unknown whether"),
}

// faultsOfConfigurations are those of the target cluster, of Secrets, classes and Compositions.
var faultsOfConfigurations = map[string]diagnosis{
	"OtherCA":      ofCluster(otherCA, "CertificateNotTrusted", "Correct certificate-authority-data and the server in the kubeconfig"),
	"ExpiredToken": ofCluster(wrongUser, "Unauthorized", "Renew the credentials"),
	"NoKubeconfig": ofCluster(func(*testing.T, kit.Fleet) []byte { return []byte("not a kubeconfig") }, "CredentialsInvalid", "is not a kubeconfig", "Correct the kubeconfig"),
	"ClassDeleted": ofDeployment(ofRunning(3, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, _ *member) {
		must(t, f.Client.Delete(t.Context(), &machinev1alpha1.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "small"}}))
		f.Patch(t, md, `{"spec":{"replicas":2}}`)
		awaitReason(t, f, md, "Stalled", "ClassNotFound")
	}, "ClassNotFound", `there is no MachineClass "small"`, "Create the class, or name another one")),
	"UserDataMissing": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.ClassRef.Name = "own" },
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			class := f.Class("own", "local", `{"image":"ubuntu-24.04","size":"small"}`)
			class.Spec.UserData = &machinev1alpha1.UserData{SecretRef: &machinev1alpha1.UserDataSecretReference{Name: "own"}}
			f.Create(t, class)
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "UserDataNotFound")
			awaitReason(t, f, md, "Stalled", "UserDataNotFound")
			return "ma/" + onlyMachine(t, f).Name
		},
		texts: []string{"UserDataNotFound", `Secret "own"`}, exit: 3,
	},
	"VersionSkewed": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Version = "v1.99.0" },
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitReason(t, f, md, "Valid", "VersionSkew")
			awaitReason(t, f, md, "Stalled", "VersionSkew")
			return "ma/" + onlyMachine(t, f).Name
		},
		texts: []string{"VersionSkew", "the kubelet is newer than the API server", "Change spec.version, or upgrade the API server"}, exit: 3,
	},
	"NoFunction": ofComposition(3, func(t *testing.T, c *unstructured.Unstructured) {
		insertStep(t, c, "infrastructure", map[string]any{"step": "tag", "functionRef": map[string]any{"name": "absent-function"}})
	}, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
		awaitReason(t, f, md, "Stalled", "ReconcileError")
	}, "absent-function", "install the Function"),
	"FunctionNotPulled": ofComposition(3, func(t *testing.T, c *unstructured.Unstructured) {
		function := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": "registry.example.org/unreachable:v1.0.0"}}}
		function.SetAPIVersion("pkg.crossplane.io/v1")
		function.SetKind("Function")
		function.SetName(c.GetName())
		must(t, plane.Client.Create(t.Context(), function))
		t.Cleanup(func() { _ = plane.Client.Delete(context.Background(), function) })
		insertStep(t, c, "infrastructure", map[string]any{"step": "tag", "functionRef": map[string]any{"name": function.GetName()}})
	}, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
		awaitReason(t, f, md, "Stalled", "ReconcileError")
	}, "is not installed", "install the Function"),
	"RightMissing": ofComposition(3, func(t *testing.T, c *unstructured.Unstructured) {
		kind := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(kindWithoutRights), &kind.Object))
		before, err := plane.CRDNames(t.Context())
		must(t, err)
		must(t, plane.Client.Create(t.Context(), kind))
		t.Cleanup(func() { _ = plane.Client.Delete(context.Background(), kind) })
		must(t, plane.AwaitPublished(t.Context(), before))
		changeStep(t, c, "infrastructure", func(step map[string]any) {
			must(t, unstructured.SetNestedField(step, "hosts.example.org/v1", "input", "virtualMachine", "apiVersion"))
			must(t, unstructured.SetNestedField(step, "Host", "input", "virtualMachine", "kind"))
		})
	}, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
		awaitReason(t, f, md, "Stalled", "ReconcileError")
		// Without the right, the deletion of the Machine waits: provider-drover cannot read its VM.
		undo.Store(f.Namespace, func(ctx context.Context) error {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace, Labels: map[string]string{"rbac.drover.dev/aggregate-to-machine-controller": "true"}}}
			role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"hosts.example.org"}, Resources: []string{"hosts"}, Verbs: []string{"get", "list", "watch", "create", "patch"}}}
			t.Cleanup(func() { _ = f.Client.Delete(context.Background(), role) })
			return client.IgnoreAlreadyExists(f.Client.Create(ctx, role))
		})
	}, "may provider-drover list and watch Host.hosts.example.org?", "grant the right"),
	"WrongExpression": ofComposition(3, func(t *testing.T, c *unstructured.Unstructured) {
		changeStep(t, c, "infrastructure", func(step map[string]any) {
			must(t, unstructured.SetNestedField(step, "vm.status.atProvider.(", "input", "status", "providerID"))
		})
	}, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
		awaitReason(t, f, md, "Stalled", "BindingInvalid")
	}, "BindingInvalid", "line 1, column 22", "Correct the expression that the message names"),
}

// kindWithoutRights is a kind of VMs that provider-drover has no rights for.
const kindWithoutRights = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: hosts.hosts.example.org}
spec:
  group: hosts.example.org
  scope: Namespaced
  names: {kind: Host, listKind: HostList, plural: hosts, singular: host}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              forProvider: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// faultsOfNodes are those of a Machine whose Node runs, and of its deletion.
var faultsOfNodes = map[string]diagnosis{
	"DiskReadOnly": ofRunning(2, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, m *member) {
		reportNode(t, f, m, "ReadonlyFilesystem", time.Now())
		awaitReason(t, f, md, "Available", "MinimumReplicasUnavailable")
	}, "NodeUnhealthy", "ReadonlyFilesystem is True", "Repair the Node, or let the Machine be replaced"),
	"ClockAhead": ofRunning(2, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, m *member) {
		reportNode(t, f, m, "KernelDeadlock", time.Now().Add(3*time.Hour))
		awaitReason(t, f, md, "Available", "MinimumReplicasUnavailable")
	}, "NodeUnhealthy", "KernelDeadlock is True"),
	"FinalizerOfAnother": ofRunning(3, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		kubectl(t, f, "patch", "virtualmachine.local.drover.dev", m.node, "--type=json", "-p", `[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/audit"}]`)
		atTheEnd(t, f, m, func(vm *unstructured.Unstructured) { controllerutil.RemoveFinalizer(vm, "example.org/audit") })
		m.delete(t)
		awaitOperation(t, m, "example.org/audit")
	}, "WaitingForFinalizers", "example.org/audit", "Let the controller that owns the finalizer remove it"),
	"VMPaused": ofRunning(3, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		kubectl(t, f, "annotate", "virtualmachine.local.drover.dev", m.node, "crossplane.io/paused=true")
		atTheEnd(t, f, m, func(vm *unstructured.Unstructured) { xpmeta.RemoveAnnotations(vm, "crossplane.io/paused") })
		m.delete(t)
		awaitOperation(t, m, "crossplane.io/paused")
	}, "DeletionPaused", "its annotation crossplane.io/paused keeps its provider from deleting it", "Remove the annotation crossplane.io/paused of the resource"),
	"EvictionRefused": ofRunning(3, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		m.pod(t, "held", nil)
		refuseEvictions(t, f)
		m.delete(t)
		m.awaitBlocked(t, "cannot be evicted")
	}, "EvictionRefused", "cannot be evicted", "evictions.example.org", "Correct what refuses the evictions in the target cluster", "drover.dev/force-drain"),
	"VMFailed": {
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) { md.Spec.AutoPreserveFailedMachineMax = 1 },
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			_, err := f.Cloud.CreateFault(t.Context(), localcloud.Fault{
				Kind: localcloud.FaultCreateFails, Code: localcloud.CodeInternal, Message: "the host of the VM died", Count: 1000,
				Delay: localcloud.Duration(5 * time.Second), Match: localcloud.FaultMatch{Tags: map[string]string{machinev1alpha1.TagNamespace: f.Namespace}},
			})
			must(t, err)
			f.Create(t, md)
			m := awaitOnlyMachine(t, f)
			awaitPreserved(t, f, m.Name, machinev1alpha1.FailureVMFailed)
			return "ma/" + m.Name
		},
		texts: []string{"VMFailed", "the host of the VM died", "Read the message and the console of the VM"}, exit: 3,
	},
	"HookStays": ofRunning(2, func(t *testing.T, _ kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		m.annotate(t, machinev1alpha1.HookPreDrain+"backup")
		m.delete(t)
		awaitOperation(t, m, "backup")
	}, "WaitingForHooks", "hooks: backup", machinev1alpha1.HookPreDrain+"backup-"),
	"DeletionPaused": ofRunning(3, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		f.Patch(t, m.machine(t), `{"metadata":{"annotations":{"crossplane.io/paused":"true"}}}`)
		m.delete(t)
		awaitOperation(t, m, "crossplane.io/paused")
	}, "DeletionPaused", "crossplane.io/paused-"),
	"SwitchMisspelt": ofRunning(3, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		f.Patch(t, m.machine(t), `{"metadata":{"annotations":{"crossplane.io/paused":"True","drover.dev/skip-drain":"yes"}}}`)
		awaitMachine(t, f, machinev1alpha1.ConditionAnnotationsValid, machinev1alpha1.ReasonAnnotationInvalid)
	}, "AnnotationInvalid", `crossplane.io/paused: "True" of the Machine must be true or false`, `drover.dev/skip-drain: "yes"`),
	"PauseMisspelt": ofDeployment(ofRunning(3, func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, _ *member) {
		f.Patch(t, md, `{"metadata":{"annotations":{"crossplane.io/paused":"True","drover.dev/force-drain":"true"}}}`)
		awaitReason(t, f, md, machinev1alpha1.ConditionAnnotationsValid, machinev1alpha1.ReasonAnnotationInvalid)
	}, "AnnotationInvalid", `crossplane.io/paused: "True" of the MachineDeployment must be true or false`, "drover.dev/force-drain of the MachineDeployment has no effect")),
	"VolumeStays": ofRunning(2, func(t *testing.T, f kit.Fleet, _ *machinev1alpha1.MachineDeployment, m *member) {
		m.attach(t, f.Namespace+"-data", m.node)
		m.delete(t)
		awaitOperation(t, m, "its volumes are detached")
	}, "DetachingVolumes", "-data (Detaching)", "look at its VolumeAttachment"),
}

func refusing(code string, exit int, texts ...string) diagnosis {
	return diagnosis{
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			(&refusal{Fleet: f}).refuseVMs(t, code, 0)
			f.Create(t, md)
			awaitReason(t, f, md, "ReplicaFailure", code)
			return "ma/" + onlyMachine(t, f).Name
		},
		texts: texts, exit: exit,
	}
}

// withFault is a fault of the next creations.
func withFault(fault localcloud.Fault, condition, reason string, texts ...string) diagnosis {
	return diagnosis{
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			fault.Match.Tags = map[string]string{machinev1alpha1.TagNamespace: f.Namespace}
			_, err := f.Cloud.CreateFault(t.Context(), fault)
			must(t, err)
			f.Create(t, md)
			awaitReason(t, f, md, condition, reason)
			return ""
		},
		texts: texts, exit: 2,
	}
}

// ofCluster is a fault of the kubeconfig of the target cluster.
func ofCluster(kubeconfig func(t *testing.T, f kit.Fleet) []byte, texts ...string) diagnosis {
	return diagnosis{
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClusterRef = machinev1alpha1.ClusterReference{Kind: "ProviderConfig", Name: "target"}
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			pc := &clusterv1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target"}}
			pc.Spec.Credentials = clusterv1alpha1.Credentials{
				Source: clusterv1alpha1.CredentialsSecret, SecretRef: &clusterv1alpha1.SecretKeySelector{Name: "target", Key: "kubeconfig"},
			}
			upsert(t, f, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "target"}}, kubeconfig(t, f))
			f.Create(t, pc)
			f.Create(t, md)
			awaitFrozen(t, f, md, "TargetUnreachable")
			return ""
		},
		texts: texts, exit: 3,
	}
}

// ofRunning is a fault of a MachineDeployment with one Machine that runs.
func ofRunning(exit int, do func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment, m *member), texts ...string) diagnosis {
	return diagnosis{
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			f.Create(t, md)
			awaitSound(t, f, md)
			machine := onlyMachine(t, f)
			m := &member{f: f, name: machine.Name, node: machine.Status.NodeRef.Name}
			do(t, f, md, m)
			return "ma/" + m.name
		},
		texts: texts, exit: exit,
	}
}

// ofDeployment is a fault that only new Machines have: the Machine that runs is sound.
func ofDeployment(d diagnosis) diagnosis {
	causeIt := d.cause
	d.cause = func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
		causeIt(t, f, md)
		return ""
	}
	return d
}

// ofComposition is a fault of a Composition of its own.
func ofComposition(exit int, breakIt func(t *testing.T, c *unstructured.Unstructured), await func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment), texts ...string) diagnosis {
	return diagnosis{
		change: func(_ kit.Fleet, md *machinev1alpha1.MachineDeployment) {
			md.Spec.Template.Spec.ClassRef.Name = "broken"
		},
		cause: func(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) string {
			c := compositionFor(t, f.Namespace)
			breakIt(t, c)
			f.Create(t, c)
			t.Cleanup(func() { _ = f.Client.Delete(context.Background(), c) })
			f.Create(t, f.Class("broken", f.Namespace, `{"image":"ubuntu-24.04","size":"small"}`))
			f.Create(t, md)
			await(t, f, md)
			return ""
		},
		texts: texts, exit: exit,
	}
}

// awaitMachine waits until a Machine of the fleet has a condition with a reason.
func awaitMachine(t *testing.T, f kit.Fleet, condition, reason string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		return answered(ctx, f, &machinev1alpha1.MachineList{}, condition, []string{reason})
	}, f.Describe)
}

// awaitOperation waits until the deletion of a Machine reports what it waits for.
func awaitOperation(t *testing.T, m *member, text string) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		o := &machinev1alpha1.Machine{}
		if err := m.f.Client.Get(ctx, m.key(), o); err != nil {
			return err.Error()
		}
		if op := o.Status.LastOperation; op == nil || !strings.Contains(op.Description, text) {
			return fmt.Sprintf("operation %+v, want %q", op, text)
		}
		return ""
	}, m.f.Describe)
}

// undo has what ends the fault of a namespace before its objects are deleted.
var undo sync.Map

// refuseEvictions adds a webhook to the target cluster that refuses the evictions in the namespace of a fleet, as it cannot be
// called.
func refuseEvictions(t *testing.T, f kit.Fleet) {
	t.Helper()
	none := admissionv1.SideEffectClassNone
	w := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
	w.Webhooks = []admissionv1.ValidatingWebhook{{
		Name: "evictions.example.org", SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		ClientConfig:      admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace}},
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/eviction"}},
		}},
	}}
	must(t, f.Cluster.Client.Create(t.Context(), w))
	t.Cleanup(func() { _ = f.Cluster.Client.Delete(context.Background(), w) })
}

// atTheEnd changes the VM resource of a Machine before the objects of the fault are deleted.
func atTheEnd(t *testing.T, f kit.Fleet, m *member, change func(vm *unstructured.Unstructured)) {
	t.Helper()
	undo.Store(f.Namespace, func(ctx context.Context) error {
		vm := &unstructured.Unstructured{}
		vm.SetAPIVersion("local.drover.dev/v1alpha1")
		vm.SetKind("VirtualMachine")
		return client.IgnoreNotFound(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := f.Client.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: m.node}, vm); err != nil {
				return err
			}
			change(vm)
			return f.Client.Update(ctx, vm)
		}))
	})
}

// reportNode sets a condition of a Node that a detector of problems would set.
func reportNode(t *testing.T, f kit.Fleet, m *member, condition corev1.NodeConditionType, since time.Time) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
	must(t, f.Cluster.Client.Status().Patch(t.Context(), n, client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil,
		`{"status":{"conditions":[{"type":%q,"status":"True","reason":"Detected","message":"a detector found it","lastTransitionTime":%q}]}}`,
		condition, since.UTC().Format(time.RFC3339)))))
}

// otherCA returns a kubeconfig of the right cluster with the CA of another one.
func otherCA(t *testing.T, f kit.Fleet) []byte {
	t.Helper()
	cfg, err := clientcmd.Load(humanKubeconfig(t, f))
	must(t, err)
	ca, _, err := certutil.GenerateSelfSignedCertKey("other.example.org", nil, nil)
	must(t, err)
	for _, c := range cfg.Clusters {
		c.CertificateAuthority, c.CertificateAuthorityData = "", ca
	}
	b, err := clientcmd.Write(*cfg)
	must(t, err)
	return b
}
