package collect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/collect"
	"github.com/drover-dev/drover/internal/kubectl/command"
	"github.com/drover-dev/drover/internal/kubectl/diagnosis"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/names"
)

func objects() []client.Object {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w"}}
	m.Status.ResourceRefs = []machinev1alpha1.ComposedReference{
		{Role: machinev1alpha1.ResourceVM, APIVersion: "local.drover.dev/v1alpha1", Kind: "VirtualMachine", Name: "w-vm"},
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: names.UserData("w", "")}, Data: map[string][]byte{"userData": []byte("secret-token")}}
	pc := &clusterv1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pc.Spec.Credentials.Source = clusterv1alpha1.CredentialsInjectedIdentity
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-node"}}
	return []client.Object{m, s, pc, n}
}

func TestTheContentOfASecretIsNeverRead(t *testing.T) {
	var read []string
	c := fake.NewClientBuilder().WithScheme(command.Scheme).WithObjects(objects()...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "Secret" {
				if _, ok := o.(*metav1.PartialObjectMetadata); !ok {
					t.Errorf("Secret %s is read as %T", key, o)
				}
				read = append(read, key.Name)
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	v, err := collect.View(t.Context(), c, time.Now(), collect.Options{Namespace: "team", Resources: true, Tokens: true, Events: true, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(read, []string{names.UserData("w", "")}) || len(v.Resources) != 2 || !v.Resources[0].Missing || v.Resources[1].Missing {
		t.Errorf("read %v, resources %+v", read, v.Resources)
	}
	if v.Target == nil || len(v.Target.Nodes) != 1 {
		t.Errorf("the Machines join this cluster, and its Nodes were not read: %+v", v.Target)
	}
}

func TestAMissingRightLeavesTheRestRight(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	}
	c := fake.NewClientBuilder().WithScheme(command.Scheme).WithObjects(objects()...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			switch l.(type) {
			case *corev1.EventList:
				return forbidden("events")
			case *corev1.NodeList:
				return forbidden("nodes")
			}
			return c.List(ctx, l, opts...)
		},
	}).Build()
	v, err := collect.View(t.Context(), c, time.Now(), collect.Options{Namespace: "team", Events: true, Nodes: true})
	if err != nil || len(v.Machines) != 1 || len(v.Configs) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if text := strings.Join(v.Unread, "\n"); len(v.Unread) != 2 || !strings.Contains(text, "events is forbidden") || !strings.Contains(text, "nodes is forbidden") {
		t.Errorf("unread: %s", text)
	}
}

func TestAnObjectThatCannotBeDecodedIsExplained(t *testing.T) {
	const field = `spec.creationTimeout: "9999999h": time: invalid duration "9999999h"`
	c := fake.NewClientBuilder().WithScheme(command.Scheme).WithObjects(objects()...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if machines, ok := list.(*machinev1alpha1.MachineList); ok {
				machines.Items[0].Undecoded = field
			}
			return err
		},
	}).Build()
	v, err := collect.View(t.Context(), c, time.Now(), collect.Options{Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := diagnosis.Why(v, view.Ref{Kind: view.Machine, Namespace: "team", Name: "w"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if f := a.Findings; len(f) != 1 || f[0].Reason != machinev1alpha1.ReasonNotDecodable || !strings.Contains(f[0].Cause, field) || f[0].Do == "" || !f[0].NeedsUser {
		t.Errorf("findings %+v", f)
	}
}

func TestNodeClaimsAreReadForMachinesOfKarpenter(t *testing.T) {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "karpenter-1", Labels: map[string]string{view.LabelNodeClaim: "web"}, Annotations: map[string]string{view.AnnotationNodeClaimUID: "1"},
	}}
	claim := func(name string, uid types.UID) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Launched", "status": "True", "reason": "Launched", "message": ""}}}}}
		u.SetAPIVersion("karpenter.sh/v1")
		u.SetKind(view.NodeClaimKind)
		u.SetName(name)
		u.SetUID(uid)
		u.SetLabels(map[string]string{"karpenter.sh/nodepool": "pool"})
		return u
	}
	event := func(name string, uid types.UID) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, InvolvedObject: corev1.ObjectReference{Kind: view.NodeClaimKind, Name: "web", UID: uid}}
	}
	control := fake.NewClientBuilder().WithScheme(command.Scheme).WithObjects(m).Build()
	target := fake.NewClientBuilder().WithScheme(command.Scheme).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }).
		WithObjects(claim("web", "1"), claim("other", "2"), event("a", "1"), event("b", "2")).Build()
	read := func(target client.Client, o collect.Options) *view.View {
		o.Target = target
		v, err := collect.View(t.Context(), control, time.Now(), o)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := read(target, collect.Options{NodeClaims: true, Events: true})
	if len(v.Unread) > 0 || len(v.Target.NodeClaims) != 1 || len(v.Events) != 1 || len(v.Target.Nodes) != 0 {
		t.Fatalf("unread %v, target %+v, events %+v", v.Unread, v.Target, v.Events)
	}
	if c := v.NodeClaimOf(&v.Machines[0]); c == nil || c.Name != "web" || c.NodePool != "pool" || c.LatestCondition() != "Launched=True" {
		t.Errorf("NodeClaim %+v", c)
	}
	absent := interceptor.NewClient(target, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if _, ok := l.(*unstructured.UnstructuredList); ok {
				return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "karpenter.sh", Kind: view.NodeClaimKind}}
			}
			return c.List(ctx, l, opts...)
		},
	})
	v = read(absent, collect.Options{NodeClaims: true})
	if v.Target.NodeClaims != nil || len(v.Unread) != 1 || !strings.HasPrefix(v.Unread[0], "NodeClaims: ") {
		t.Errorf("without Karpenter: %+v, unread %v", v.Target, v.Unread)
	}
}

func TestTheBootstrapConfigOfAMachineIsRead(t *testing.T) {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w"}}
	m.Status.ResourceRefs = []machinev1alpha1.ComposedReference{{Role: machinev1alpha1.ResourceBootstrap, APIVersion: "clusterapi.drover.dev/v1alpha1", Kind: "Bootstrap", Name: "w-bootstrap"}}
	b := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"atProvider": map[string]any{"config": map[string]any{
		"kind": "KubeadmConfig", "namespace": "team", "name": "w-bootstrap",
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "NotReady", "message": "no CA"}},
	}}}}}
	b.SetAPIVersion("clusterapi.drover.dev/v1alpha1")
	b.SetKind("Bootstrap")
	b.SetNamespace("team")
	b.SetName("w-bootstrap")
	c := fake.NewClientBuilder().WithScheme(command.Scheme).WithObjects(m, b).Build()
	v, err := collect.View(t.Context(), c, time.Now(), collect.Options{Namespace: "team", Resources: true})
	if err != nil || len(v.Resources) == 0 {
		t.Fatalf("%+v, %v", v, err)
	}
	if o := v.Resources[0].InfraMachine; o == nil || o.Kind != "KubeadmConfig" || len(o.Conditions) != 1 || o.Conditions[0].Message != "no CA" {
		t.Errorf("%+v", v.Resources[0])
	}
}
