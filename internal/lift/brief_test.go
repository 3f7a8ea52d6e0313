package lift

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestASecretIsReadAgainWhenItIsOld(t *testing.T) {
	gets := 0
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			gets++
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	now := clocktesting.NewFakeClock(time.Now())
	c, s := briefly(kube, now), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{"key": []byte("old")}}
	read := func(want string, wantGets int) {
		t.Helper()
		is := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), is); err != nil {
			t.Fatal(err)
		}
		if string(is.Data["key"]) != want || gets != wantGets {
			t.Errorf("read %q with %d requests, want %q with %d", is.Data["key"], gets, want, wantGets)
		}
		is.Data["key"][0] = 'X' // The reader owns its copy.
	}

	for range 2 {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), &corev1.Secret{}); !kerrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	if err := kube.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	read("old", 3) // at once
	s.Data["key"] = []byte("new")
	if err := kube.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	read("old", 3)
	now.Step(secretsFor)
	read("new", 4)
	read("new", 4)

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(s), &corev1.ConfigMap{}); !kerrors.IsNotFound(err) || gets != 5 {
		t.Errorf("only Secrets are kept: %v", err)
	}
}
