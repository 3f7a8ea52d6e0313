package provider

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/yaml"

	"github.com/drover-dev/drover/karpenter/apis/v1alpha1"
	"github.com/drover-dev/drover/karpenter/internal/control"
	"github.com/drover-dev/drover/karpenter/internal/drover"
	"github.com/drover-dev/drover/karpenter/internal/offer"
)

const namespace = "nodes"

// A world has two clusters.
type world struct {
	*Provider
	target, control client.WithWatch
	claim           *karpenterv1.NodeClaim
	// made counts the Machines that were created.
	made int
}

// newWorld returns a world. Drover gives each new Machine the status of answer, or none if that is nil.
func newWorld(t *testing.T, answer func(m *drover.Machine)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, drover.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypes(schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}, &karpenterv1.NodeClaim{}, &karpenterv1.NodeClaimList{})
	w := &world{claim: &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "pool-a", UID: "uid-a"}}}
	w.claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: v1alpha1.Group, Kind: "DroverNodeClass", Name: "default"}
	class := &v1alpha1.DroverNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.Version = "v1.35.4"
	class.Spec.Classes = []v1alpha1.Class{
		{Name: "large", Price: "4", Zones: []v1alpha1.Zone{{Name: "a"}}}, {Name: "small", Price: "1", Zones: []v1alpha1.Zone{{Name: "a"}}},
	}
	w.target = fake.NewClientBuilder().WithScheme(scheme).WithObjects(class, w.claim).
		WithIndex(&corev1.Node{}, "spec.providerID", func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).Build()
	w.control = fake.NewClientBuilder().WithScheme(scheme).WithObjects(classOf("small", "1"), classOf("large", "4"), &drover.ClusterProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: drover.ClusterProviderConfigSpec{AllowedNamespaces: []string{namespace}},
	}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, o, opts...)
			if m, ok := o.(*drover.Machine); ok && err == nil {
				w.made++
				if answer != nil {
					m = m.DeepCopy()
					answer(m)
					return c.Update(ctx, m)
				}
			}
			return err
		}, Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, o, opts...); err != nil {
				return err
			}
			m := &drover.Machine{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), m); err != nil || m.Observed().ProviderID != "" {
				return client.IgnoreNotFound(err)
			}
			// Drover has no VM to delete.
			m.Finalizers = nil
			return c.Update(ctx, m)
		}}).Build()
	w.Provider = New(w.target, &control.Cluster{Client: w.control, Live: w.control, Namespace: namespace, Target: "target-uid"}, offer.NewUnavailable(clock.RealClock{}), time.Second)
	return w
}

// offers replaces the classes of the DroverNodeClass.
func (w *world) offers(t *testing.T, classes ...v1alpha1.Class) {
	t.Helper()
	class := &v1alpha1.DroverNodeClass{}
	if err := w.target.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	class.Spec.Classes = classes
	if err := w.target.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

func (w *world) pool() *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{}
	pool.Spec.Template.Spec.NodeClassRef = w.claim.Spec.NodeClassRef
	return pool
}

func classOf(name, cpu string) *drover.MachineClass {
	c := &drover.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	c.Spec.NodeCapacity = &drover.NodeCapacity{Capacity: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse("4Gi")}}
	return c
}

func (w *world) machines(t *testing.T) []drover.Machine {
	t.Helper()
	l := &drover.MachineList{}
	if err := w.control.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

func running(m *drover.Machine) {
	m.Status = &drover.MachineStatus{ProviderID: "local://" + m.Name, Phase: "Joining"}
}

func refusing(code string) func(m *drover.Machine) {
	return func(m *drover.Machine) {
		m.Status = &drover.MachineStatus{LastOperation: &drover.LastOperation{Type: "Create", State: "Processing", ErrorCode: code, Description: "the cloud says no"}}
		m.Status.Conditions = []metav1.Condition{{Type: drover.ConditionInfrastructureReady, Status: metav1.ConditionFalse, Reason: code, Message: "the cloud says no"}}
	}
}

func TestCreateTakesTheCheapestClass(t *testing.T) {
	w := newWorld(t, running)
	got, err := w.Create(t.Context(), w.claim)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.ProviderID != "local://karpenter-uid-a" || got.Labels[corev1.LabelInstanceTypeStable] != "small" || got.Status.Capacity.Cpu().String() != "1" {
		t.Errorf("NodeClaim %+v", got)
	}
}

func TestCreateFindsTheMachineOfAnEarlierAttempt(t *testing.T) {
	w := newWorld(t, nil)
	// The VM does not come before the process is killed.
	if _, err := w.Create(t.Context(), w.claim); err == nil {
		t.Fatal("a NodeClaim without a VM is launched")
	}
	m := w.machines(t)[0]
	running(&m)
	if err := w.control.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	// Meanwhile, another class became the cheapest.
	w.unavailable.Mark(offer.Key{Class: m.Spec.ClassRef, FailureDomain: "a"})
	got, err := w.Create(t.Context(), w.claim)
	if err != nil || got.Status.ProviderID != "local://karpenter-uid-a" || got.Labels[corev1.LabelInstanceTypeStable] != "small" {
		t.Errorf("NodeClaim %+v, %v", got, err)
	}
	if w.made != 1 || len(w.machines(t)) != 1 {
		t.Errorf("%d Machines were made", w.made)
	}
}

func TestWithoutRoomTheNextClassIsTaken(t *testing.T) {
	for _, code := range []string{drover.CodeCapacityExhausted, drover.CodeQuotaExceeded} {
		t.Run(code, func(t *testing.T) {
			w := newWorld(t, func(m *drover.Machine) {
				if m.Spec.ClassRef.Name == "small" {
					refusing(code)(m)
				} else {
					running(m)
				}
			})
			if _, err := w.Create(t.Context(), w.claim); !cloudprovider.IsInsufficientCapacityError(err) || !strings.Contains(err.Error(), "the cloud says no") {
				t.Fatal(err)
			}
			if left := w.machines(t); len(left) > 0 {
				t.Fatalf("left is %+v", left)
			}
			next := w.claim.DeepCopy()
			next.Name, next.UID = "pool-b", "uid-b"
			got, err := w.Create(t.Context(), next)
			if err != nil || got.Labels[corev1.LabelInstanceTypeStable] != "large" {
				t.Errorf("NodeClaim %+v, %v", got, err)
			}
		})
	}
}

func TestASpotOfferingWithoutCapacityFallsBackToOnDemand(t *testing.T) {
	w := newWorld(t, func(m *drover.Machine) {
		if m.Spec.ClassRef.Name == "small-spot" {
			refusing(drover.CodeCapacityExhausted)(m)
		} else {
			running(m)
		}
	})
	if err := w.control.Create(t.Context(), classOf("small-spot", "1")); err != nil {
		t.Fatal(err)
	}
	w.offers(t,
		v1alpha1.Class{Name: "small", Price: "2", Zones: []v1alpha1.Zone{{Name: "a"}}},
		v1alpha1.Class{Name: "small-spot", InstanceType: "small", CapacityType: karpenterv1.CapacityTypeSpot, Price: "1", Zones: []v1alpha1.Zone{{Name: "a"}}})
	if _, err := w.Create(t.Context(), w.claim); !cloudprovider.IsInsufficientCapacityError(err) {
		t.Fatal(err)
	}
	types, err := w.GetInstanceTypes(t.Context(), w.pool())
	if err != nil || len(types) != 1 || len(types[0].Offerings.Available()) != 1 || types[0].Offerings.Available()[0].CapacityType() != karpenterv1.CapacityTypeOnDemand {
		t.Errorf("Karpenter may choose from %+v, %v", types, err)
	}
	next := w.claim.DeepCopy()
	next.Name, next.UID = "pool-b", "uid-b"
	got, err := w.Create(t.Context(), next)
	if err != nil || got.Labels[karpenterv1.CapacityTypeLabelKey] != karpenterv1.CapacityTypeOnDemand || got.Labels[corev1.LabelInstanceTypeStable] != "small" {
		t.Errorf("NodeClaim %+v, %v", got, err)
	}
}

func TestOfTwoCloudsTheCheaperOneIsTaken(t *testing.T) {
	for want, price := range map[string]string{"hetzner": "0.5", "local": "3"} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, running)
			for _, c := range []struct{ name, provider, vm string }{{"local", "local", `{"size":"large"}`}, {"hetzner", "hcloud", `{"serverType":"cpx31"}`}} {
				class := &drover.MachineClass{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name}}
				class.Spec.Provider, class.Spec.ForProvider = c.provider, &runtime.RawExtension{Raw: []byte(c.vm)}
				for _, o := range []client.Object{class, composition(t, c.provider)} {
					if err := w.control.Create(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.offers(t,
				v1alpha1.Class{Name: "local", Price: "1", Zones: []v1alpha1.Zone{{Name: "zone-a"}}},
				v1alpha1.Class{Name: "hetzner", Price: price, Zones: []v1alpha1.Zone{{Name: "fsn1"}}})
			// The Compositions derive four CPUs for both.
			w.claim.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3")}
			if _, err := w.Create(t.Context(), w.claim); err != nil {
				t.Fatal(err)
			}
			if m := w.machines(t)[0]; m.Spec.ClassRef.Name != want {
				t.Errorf("a Machine of the class %s", m.Spec.ClassRef.Name)
			}
		})
	}
}

// composition of a provider.
func composition(t *testing.T, provider string) *drover.Composition {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../apis/machine/compositions", "machine-"+provider+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := &drover.Composition{}
	if err := yaml.Unmarshal(b, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWhatAUserMustCorrectIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		answer          func(m *drover.Machine)
		reason, message string
	}{
		"ARefusedRequest": {refusing("PermissionDenied"), "PermissionDenied", "the cloud says no"},
		"AnInvalidMachine": {func(m *drover.Machine) {
			m.Status = &drover.MachineStatus{Conditions: []metav1.Condition{{Type: drover.ConditionValid, Status: metav1.ConditionFalse, Reason: "ClusterNotFound", Message: "there is no configuration"}}}
		}, "ClusterNotFound", "there is no configuration"},
		"ACreationThatFailed": {func(m *drover.Machine) {
			m.Status = &drover.MachineStatus{Phase: drover.PhaseFailed, FailureReason: drover.FailureCreateFailed, FailureMessage: "boom"}
		}, "CreateFailed", "boom"},
		"AVMThatDoesNotCome": {nil, "Creating", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.answer)
			_, err := w.Create(t.Context(), w.claim)
			var create *cloudprovider.CreateError
			if !errors.As(err, &create) || create.ConditionReason != c.reason || create.ConditionMessage != c.message {
				t.Errorf("error %v", err)
			}
			// It is tried again, with the same Machine.
			if len(w.machines(t)) != 1 {
				t.Error("the Machine was deleted")
			}
		})
	}
}

func TestANodeClassThatIsNotReadyMakesNoMachine(t *testing.T) {
	w := newWorld(t, running)
	if err := w.control.Delete(t.Context(), classOf("large", "4")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(t.Context(), w.claim); !cloudprovider.IsNodeClassNotReadyError(err) {
		t.Errorf("error %v", err)
	}
	w.claim.Spec.NodeClassRef.Name = "none"
	if _, err := w.Create(t.Context(), w.claim); !cloudprovider.IsNodeClassNotReadyError(err) {
		t.Errorf("error %v", err)
	}
	if w.made > 0 {
		t.Error("a Machine was made")
	}
}

func TestANodeClaimThatIsDeletedIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, nil)
	w.launchTimeout = time.Hour
	if err := w.target.Delete(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(t.Context(), w.claim); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("error %v", err)
	}
}

func TestDeleteEndsWithTheMachine(t *testing.T) {
	w := newWorld(t, running)
	if _, err := w.Create(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	m := w.machines(t)[0]
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Finalizers: []string{karpenterv1.TerminationFinalizer}}}
	node.Spec.ProviderID = m.Status.ProviderID
	if err := w.target.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := w.target.Delete(t.Context(), node); err != nil {
		t.Fatal(err)
	}

	if err := w.Delete(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	m = w.machines(t)[0]
	if d := cmp.Diff(map[string]string{drover.AnnotationNodeClaimUID: "uid-a", drover.AnnotationSkipDrain: "true"}, m.Annotations); d != "" || m.DeletionTimestamp == nil {
		t.Errorf("Machine of %v: %s", m.DeletionTimestamp, d)
	}
	// Drover has begun, and not come to the Node.
	if err := w.Delete(t.Context(), w.claim); err != nil {
		t.Errorf("Karpenter lets the Node go too soon: %v", err)
	}
	m.Status.Deletion = &drover.DeletionStatus{Stage: drover.StageDeletingNode, Finalizers: []string{karpenterv1.TerminationFinalizer}}
	if err := w.control.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.claim); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("Karpenter and Drover wait for each other: %v", err)
	}
	// The Node is gone, the VM is not: the NodeClaim waits for it.
	if err := w.target.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	node.Finalizers = nil
	if err := w.target.Update(t.Context(), node); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.claim); err != nil {
		t.Errorf("the NodeClaim goes before the VM: %v", err)
	}
	m.Finalizers = nil
	if err := w.control.Update(t.Context(), &m); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), w.claim); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("error %v", err)
	}
}

func TestListLeavesOutVMsThatAreGone(t *testing.T) {
	w := newWorld(t, running)
	if _, err := w.Create(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	foreign := &drover.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "karpenter-x", Labels: map[string]string{drover.LabelCluster: "another"}}}
	if err := w.control.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	all, err := w.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Labels[corev1.LabelTopologyZone] != "a" {
		t.Fatalf("NodeClaims %v, %v", all, err)
	}
	if _, err := w.Get(t.Context(), "local://karpenter-uid-a"); err != nil {
		t.Error(err)
	}
	m := w.machines(t)
	for i := range m {
		if m[i].Labels[drover.LabelCluster] == "target-uid" {
			m[i].Status.Phase, m[i].Status.FailureReason, m[i].Status.LossConfirmed = drover.PhaseFailed, drover.FailureVMLost, true
			if err := w.control.Update(t.Context(), &m[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if all, err := w.List(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("NodeClaims %v, %v", all, err)
	}
	if _, err := w.Get(t.Context(), "local://karpenter-uid-a"); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("error %v", err)
	}
}

func TestIsDriftedComparesWithTheNodeClass(t *testing.T) {
	w := newWorld(t, running)
	if _, err := w.IsDrifted(t.Context(), w.claim); !cloudprovider.IsNodeClaimNotFoundError(err) {
		t.Errorf("without a Machine: %v", err)
	}
	if _, err := w.Create(t.Context(), w.claim); err != nil {
		t.Fatal(err)
	}
	if why, err := w.IsDrifted(t.Context(), w.claim); err != nil || why != "" {
		t.Errorf("%s, %v", why, err)
	}
	class := &v1alpha1.DroverNodeClass{}
	if err := w.target.Get(t.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		t.Fatal(err)
	}
	class.Spec.Version = "v1.35.5"
	if err := w.target.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if why, err := w.IsDrifted(t.Context(), w.claim); err != nil || why != "VersionDrifted" {
		t.Errorf("%s, %v", why, err)
	}
}
