package lift

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
)

func TestAVMAwaitsItsUserData(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	born := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	name := types.NamespacedName{Namespace: "ns", Name: "vm"}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"userData": []byte("x")}}

	cases := map[string]struct {
		change func(*v1alpha1.VirtualMachine)
		there  bool
		age    time.Duration
		calls  int
		again  time.Duration
	}{
		"WithoutAWordAtFirst":             {age: 0, again: secretMinPoll},
		"LessAndLessOften":                {age: 8 * time.Second, again: 4 * time.Second},
		"AndIsReportedWhenItTakesTooLong": {age: time.Minute, calls: 1, again: secretMaxPoll},
		"NoLongerThanItIsMissing":         {there: true, calls: 1},
		"NotWhenItWasCreated":             {change: func(vm *v1alpha1.VirtualMachine) { meta.SetExternalName(vm, "vm-1") }, calls: 1},
		"NotWhenItIsDeleted": {change: func(vm *v1alpha1.VirtualMachine) {
			now := metav1.NewTime(born)
			vm.DeletionTimestamp, vm.Finalizers = &now, []string{"f"}
		}, calls: 1},
	}
	for name2, tc := range cases {
		t.Run(name2, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, CreationTimestamp: metav1.NewTime(born)}}
			vm.Spec.ForProvider.UserDataSecretRef = secretKey("s", "userData")
			if tc.change != nil {
				tc.change(vm)
			}
			b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(vm)
			if tc.there {
				b = b.WithObjects(secret)
			}
			calls := 0
			inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				calls++
				return reconcile.Result{}, nil
			})
			r := awaitSecrets(inner, b.Build(), func() ujresource.Terraformed { return &v1alpha1.VirtualMachine{} }, func() time.Time { return born.Add(tc.age) })
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: name})
			if err != nil || calls != tc.calls || got.RequeueAfter != tc.again {
				t.Errorf("%d calls, again after %s, error %v; want %d and %s", calls, got.RequeueAfter, err, tc.calls, tc.again)
			}
		})
	}
}
