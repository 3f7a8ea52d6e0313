package mr

import (
	"context"
	"slices"
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
	"github.com/drover-dev/drover/internal/stored"
)

const tooMany = `spec.forProvider.cpus: 10000000000000000000: cannot unmarshal number`

// withUndecoded returns a client that finds a VM with a field that cannot be decoded, and its writes.
func withUndecoded(t *testing.T, fields stored.Undecoded, vm *v1alpha1.VirtualMachine) (client.Client, *[]string) {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	writes := &[]string{}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(vm).WithStatusSubresource(vm).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, obj, opts...)
			if vm, ok := obj.(*v1alpha1.VirtualMachine); ok {
				vm.Undecoded = fields
			}
			return err
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			*writes = append(*writes, "update")
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			*writes = append(*writes, "patch")
			return c.Patch(ctx, obj, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			*writes = append(*writes, "patch "+sub)
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}).Build(), writes
}

func TestAResourceThatCannotBeDecodedIsReportedAndLeftAlone(t *testing.T) {
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		fields  stored.Undecoded
		deleted *metav1.Time
		inner   int
		synced  string
	}{
		"AllFieldsAreDecoded": {"", nil, 2, ""},
		"OneIsNot":            {tooMany, nil, 0, "cannot decode " + tooMany},
		"OneOfADeletedIsNot":  {tooMany, &deleted, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", Finalizers: []string{"f"}, DeletionTimestamp: tc.deleted}}
			c, writes := withUndecoded(t, tc.fields, vm)
			calls := 0
			r := Guard(c, &v1alpha1.VirtualMachine{}, reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				calls++
				return reconcile.Result{}, nil
			}))
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vm)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
				t.Fatal(err)
			}
			if got := vm.GetCondition(xpv2.TypeSynced).Message; calls != tc.inner || got != tc.synced {
				t.Errorf("%d reconciles, want %d; Synced has %q, want %q", calls, tc.inner, got, tc.synced)
			}
			if want := min(len(tc.synced), 1); len(*writes) != want {
				t.Errorf("writes %v, want %d", *writes, want)
			}
		})
	}
}

func TestTheFinalizerOfAResourceThatCannotBeDecodedIsRemovedByAPatch(t *testing.T) {
	for name, tc := range map[string]struct {
		fields stored.Undecoded
		want   string
	}{
		"AllFieldsAreDecoded": {"", "update"},
		"OneIsNot":            {tooMany, "patch"},
	} {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", Finalizers: []string{"a", "b"}}}
			kube, writes := withUndecoded(t, tc.fields, vm)
			c := quietClient{Client: kube, own: newOwnWrites()}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil {
				t.Fatal(err)
			}
			vm.SetFinalizers([]string{"a"})
			stale := vm.DeepCopy()
			if err := c.Update(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
			if err := c.Update(t.Context(), stale); err == nil || !strings.Contains(err.Error(), "modified") {
				t.Errorf("a write of an older version has the error %v", err)
			}
			if !slices.Contains(*writes, tc.want) || slices.ContainsFunc(*writes, func(w string) bool { return w != tc.want }) {
				t.Errorf("writes %v, want %s", *writes, tc.want)
			}
			got := &v1alpha1.VirtualMachine{}
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(vm), got); err != nil || !slices.Equal(got.GetFinalizers(), []string{"a"}) || got.GetResourceVersion() != vm.GetResourceVersion() {
				t.Errorf("finalizers %v, version %s and %s, error %v", got.GetFinalizers(), got.GetResourceVersion(), vm.GetResourceVersion(), err)
			}
		})
	}
}
