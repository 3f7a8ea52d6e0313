package mr

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

func TestAReconcilerReadsItsOwnWriteThatTheCacheLacks(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm", UID: "u"}}
	var cached *v1alpha1.VirtualMachine // the version in a stale informer
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(vm).WithStatusSubresource(vm).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			into, ok := obj.(*v1alpha1.VirtualMachine)
			if cached == nil || !ok {
				return c.Get(ctx, key, obj, opts...)
			}
			cached.DeepCopyInto(into)
			return nil
		},
	}).Build()
	c := quietClient{Client: kube, own: newOwnWrites()}
	read := func() *v1alpha1.VirtualMachine {
		got := &v1alpha1.VirtualMachine{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(vm), got); err != nil {
			t.Fatal(err)
		}
		return got
	}

	cached = read()
	now := cached.DeepCopy()
	now.Annotations = map[string]string{"crossplane.io/external-name": "vm-1"}
	if err := c.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	got := read()
	if got.Annotations["crossplane.io/external-name"] != "vm-1" {
		t.Fatalf("reads %v, want what was written", got.Annotations)
	}
	got.Status.AtProvider.ProviderID = "vsphere://1"
	if err := c.Status().Update(t.Context(), got); err != nil {
		t.Errorf("the next write is refused: %v", err)
	}

	cached = nil
	other := read()
	other.Annotations["other"] = "write"
	if err := kube.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := read(); got.Annotations["other"] != "write" {
		t.Errorf("reads %v, want the newer version of another client", got.Annotations)
	}
	cached = now
	if got := read(); got.ResourceVersion != now.ResourceVersion {
		t.Errorf("reads version %s, want that of the cache, %s: the write is not remembered for ever", got.ResourceVersion, now.ResourceVersion)
	}
}
