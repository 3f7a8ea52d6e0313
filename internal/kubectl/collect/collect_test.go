package collect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
