package mr

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

func TestWhatAConflictKeepsFromBeingReportedIsReportedSoon(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}}
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	conflicts := 1
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(vm).WithStatusSubresource(vm).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if conflicts--; conflicts >= 0 {
				return kerrors.NewConflict(schema.GroupResource{Resource: "virtualmachines"}, obj.GetName(), errors.New("somebody else wrote it"))
			}
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	}).Build()

	a := &Again{}
	refused := managed.ExternalClientFns{
		ObserveFn: func(_ context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
			a.After(mg, 30*time.Second)
			return managed.ExternalObservation{}, errors.New("no room")
		},
		DisconnectFn: func(context.Context) error { return nil },
	}
	r := a.wrap(managed.NewReconciler(a.manager(Quiet(&xpfake.Manager{Client: kube, Scheme: s})), resource.ManagedKind(v1alpha1.VirtualMachineGroupVersionKind),
		managed.WithManagementPolicies(), managed.WithInitializers(),
		managed.WithExternalConnector(managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) { return refused, nil }))))
	key := client.ObjectKeyFromObject(vm)
	for i, want := range []struct {
		after    time.Duration // None is the backoff.
		reported string
	}{
		{0, ""},
		{30 * time.Second, "observe failed: no room"},
	} {
		got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
		if got.IsZero() || got.RequeueAfter != want.after || err != nil {
			t.Errorf("reconcile %d: %+v, error %v, want another after %s", i, got, err, want.after)
		}
		if err := kube.Get(t.Context(), key, vm); err != nil {
			t.Fatal(err)
		}
		if reported := vm.GetCondition(xpv2.TypeSynced).Message; reported != want.reported {
			t.Errorf("reconcile %d reported %q, want %q", i, reported, want.reported)
		}
	}
}
