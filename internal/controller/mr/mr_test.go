package mr

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestQuietClient(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	writes := 0
	c := quietClient{own: newOwnWrites(), Client: fake.NewClientBuilder().WithObjects(pod).WithStatusSubresource(pod).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			writes++
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, obj, opts...)
		},
	}).Build()}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		t.Fatal(err)
	}
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Type: resource.SecretTypeConnection, Data: data}
	}
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"a status that did not change", func() error { return c.Status().Update(t.Context(), pod) }, 0},
		{"a status that changed", func() error { pod.Status.Phase = corev1.PodRunning; return c.Status().Update(t.Context(), pod) }, 1},
		{"the same again", func() error { return c.Status().Update(t.Context(), pod) }, 0},
		{"an empty connection Secret", func() error { return c.Create(t.Context(), secret(nil)) }, 0},
		{"one with something in it", func() error { return c.Create(t.Context(), secret(map[string][]byte{"a": nil})) }, 1},
	} {
		writes = 0
		if err := step.do(); err != nil || writes != step.want {
			t.Errorf("%s: %d writes, error %v, want %d", step.name, writes, err, step.want)
		}
	}
}

func TestAgain(t *testing.T) {
	a := &Again{}
	req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "p"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		inner reconcile.Func
		want  reconcile.Result
		err   error
	}{
		"WhoAsksIsCalledAgainThen": {func(context.Context, reconcile.Request) (reconcile.Result, error) {
			a.After(pod, 3*time.Second)
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}, reconcile.Result{RequeueAfter: 3 * time.Second}, nil},
		"WhoDoesNotIsLeftToTheReconciler": {func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{RequeueAfter: time.Minute}, nil
		}, reconcile.Result{RequeueAfter: time.Minute}, nil},
		"AnErrorBacksOff": {func(context.Context, reconcile.Request) (reconcile.Result, error) {
			a.After(pod, 3*time.Second)
			return reconcile.Result{}, broken
		}, reconcile.Result{}, broken},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := a.wrap(tc.inner).Reconcile(t.Context(), req)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%+v, error %v", got, err)
			}
		})
	}
}

type sink []string

func (s *sink) Event(_ runtime.Object, e event.Event) {
	*s = append(*s, string(e.Reason)+" "+e.Message)
}
func (s *sink) WithAnnotations(...string) event.Recorder { return s }

func TestRecorderSaysEverythingOnce(t *testing.T) {
	now := time.Unix(0, 0)
	var got sink
	r := NewRecorder(&got)
	r.now = func() time.Time { return now }
	a, b := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}}

	r.Event(a, event.Normal("R", "1"))
	r.Event(a, event.Normal("R", "1"))
	r.Event(a, event.Normal("UpdatedExternalResource", "x"))
	r.Event(a, event.Normal("ReconcileRequestHandled", "x"))
	r.Event(b, event.Normal("R", "1"))
	r.Event(a, event.Normal("R", "2"))
	r.WithAnnotations("k", "v").Event(a, event.Normal("R", "2"))
	now = now.Add(repeatAfter)
	r.Event(a, event.Normal("R", "2"))
	if want := (sink{"R 1", "R 1", "R 2", "R 2"}); !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestAFinalizerThatLeavesADyingObjectWakesItsController(t *testing.T) {
	at := metav1.Now()
	obj := func(dying bool, finalizers ...string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}}
		if dying {
			p.DeletionTimestamp = &at
		}
		return p
	}
	for name, tc := range map[string]struct {
		old, new *corev1.Pod
		want     bool
	}{
		"OneLeft":             {obj(true, "a", "b"), obj(true, "a"), true},
		"NoneLeft":            {obj(true, "a"), obj(true, "a"), false},
		"TheObjectIsNotDying": {obj(false, "a", "b"), obj(false, "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finalizerLeft.Update(ctrlevent.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
