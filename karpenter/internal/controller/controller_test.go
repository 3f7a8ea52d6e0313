package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/machine"
)

const namespace = "nodes"

func clusters(t *testing.T, target, controlled []client.Object) (client.Client, *control.Cluster) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, drover.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, &karpenterv1.NodeClaim{}, &karpenterv1.NodeClaimList{})
	controlled = append(controlled, &drover.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: drover.ClusterProviderConfigSpec{AllowedNamespaces: []string{namespace}},
	})
	here := fake.NewClientBuilder().WithScheme(scheme).WithObjects(target...).WithStatusSubresource(&v1alpha1.DroverNodeClass{}).Build()
	there := fake.NewClientBuilder().WithScheme(scheme).WithObjects(controlled...).Build()
	return here, &control.Cluster{Client: there, Live: there, Namespace: namespace, Target: "target-uid"}
}

func nodeClass(class, price string) *v1alpha1.DroverNodeClass {
	c := &v1alpha1.DroverNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	c.Spec.Classes = []v1alpha1.Class{{Name: class, Price: price, Zones: []v1alpha1.Zone{{Name: "a"}}}}
	return c
}

func machineClass(name string) *drover.MachineClass {
	c := &drover.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.NodeCapacity = &drover.NodeCapacity{Capacity: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("4Gi")}}
	return c
}

func TestTheConditionsFollowTheClasses(t *testing.T) {
	target, c := clusters(t, []client.Object{nodeClass("small", "1")}, nil)
	r := &NodeClass{Target: target, Control: c}
	now := &v1alpha1.DroverNodeClass{}
	reconciled := func() string {
		t.Helper()
		key := client.ObjectKey{Name: "default"}
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		if err := target.Get(t.Context(), key, now); err != nil {
			t.Fatal(err)
		}
		return string(now.StatusConditions().Root().GetStatus())
	}
	if s := reconciled(); s != "False" {
		t.Errorf("Ready is %s", s)
	}
	if m := now.StatusConditions().Get(v1alpha1.ConditionClassesFound).Message; !strings.Contains(m, `there is no MachineClass "small"`) {
		t.Errorf("message %q", m)
	}
	if err := c.Client.Create(t.Context(), machineClass("small")); err != nil {
		t.Fatal(err)
	}
	if s := reconciled(); s != "True" || len(now.Status.InstanceTypes) != 1 || now.Status.InstanceTypes[0].Offerings[0] != "a/on-demand" {
		t.Errorf("Ready is %s, status %+v", s, now.Status)
	}
	at := now.ResourceVersion
	if reconciled(); now.ResourceVersion != at {
		t.Error("at rest, the status is written")
	}
}

// pair returns a NodeClaim and its Machine.
func pair() (*karpenterv1.NodeClaim, *drover.Machine) {
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-a", UID: "uid-a"}}
	m := &drover.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: machine.NameOf(claim.UID), UID: "machine-uid",
		Labels:      map[string]string{drover.LabelCluster: "target-uid", drover.LabelNodeClaim: claim.Name},
		Annotations: map[string]string{drover.AnnotationNodeClaimUID: string(claim.UID), drover.HookDrain: "true"},
	}}
	return claim, m
}

func TestNeitherOfThePairStaysAlone(t *testing.T) {
	for name, c := range map[string]struct {
		change                   func(claim *karpenterv1.NodeClaim, m *drover.Machine) []client.Object
		claimStays, machineStays bool
		event                    string
	}{
		"APairStays": {
			func(claim *karpenterv1.NodeClaim, _ *drover.Machine) []client.Object { return []client.Object{claim} }, true, true, "",
		},
		"AMachineOfNoNodeClaimIsDeleted": {
			func(*karpenterv1.NodeClaim, *drover.Machine) []client.Object { return nil }, false, false, "",
		},
		"ANodeClaimOfTheSameNameIsAnother": {
			func(claim *karpenterv1.NodeClaim, _ *drover.Machine) []client.Object {
				claim.UID = "uid-b"
				return []client.Object{claim}
			}, true, false, "",
		},
		"AMachineOfAnotherClusterIsLeftAlone": {
			func(_ *karpenterv1.NodeClaim, m *drover.Machine) []client.Object {
				m.Labels[drover.LabelCluster] = "another"
				return nil
			}, false, true, "",
		},
		"TheNodeClaimOfALostVMIsDeleted": {
			func(claim *karpenterv1.NodeClaim, m *drover.Machine) []client.Object {
				m.Status = &drover.MachineStatus{Phase: drover.PhaseFailed, FailureReason: drover.FailureVMLost, FailureMessage: "gone", LossConfirmed: true}
				return []client.Object{claim}
			}, false, true, "Deleting NodeClaim: its Machine is Failed: VMLost: gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim, m := pair()
			target, cl := clusters(t, c.change(claim, m), []client.Object{m})
			events := record.NewFakeRecorder(10)
			r := &Machine{Target: target, Live: target, Control: cl, Recorder: events}
			if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
				t.Fatal(err)
			}
			if err := target.Get(t.Context(), client.ObjectKey{Name: "pool-a"}, claim); (err == nil) != c.claimStays {
				t.Errorf("NodeClaim: %v", err)
			}
			if err := cl.Client.Get(t.Context(), client.ObjectKeyFromObject(m), m); (err == nil) != c.machineStays {
				t.Errorf("Machine: %v", err)
			}
			got := ""
			select {
			case got = <-events.Events:
			default:
			}
			if !strings.Contains(got, c.event) || c.event == "" && got != "" {
				t.Errorf("event %q", got)
			}
		})
	}
}
