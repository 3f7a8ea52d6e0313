// Package lifttest runs the reconciler of a lifted VM against a fake of its cloud and a
// fake API server, in a bubble of testing/synctest: minutes pass at once, and the fake
// is called without a network.
package lifttest

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	ujconfig "github.com/crossplane/upjet/v2/pkg/config"
	tjcontroller "github.com/crossplane/upjet/v2/pkg/controller"
	"github.com/crossplane/upjet/v2/pkg/terraform"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/lift"
)

const (
	// workers reconcile at the same time, as many as a provider has by default.
	workers = 20
	// pollInterval is the default of a provider.
	pollInterval = time.Minute
	// soonest is the shortest interval of Until.
	soonest = 100 * time.Millisecond
)

// A Process is one process of a provider, with its process-local memory.
type Process struct {
	Provider   *ujconfig.Provider
	Resource   string
	Kind       schema.GroupVersionKind
	Setup      terraform.SetupFn
	Behaviours map[string]lift.Behaviour
	// Killed is called when the process is killed: calls of the cloud that it still makes must fail. Optional.
	Killed func()
}

// A World has an API server, and a provider that reconciles its VMs.
type World struct {
	Kube client.Client

	// kube is Kube, for the processes.
	kube  client.WithWatch
	t     *testing.T
	start func(client.Client) Process

	mu         sync.Mutex
	reconciler reconcile.Reconciler
	// kill ends the process.
	kill   func()
	wake   map[types.NamespacedName]chan struct{}
	events []event.Event
	busy   chan struct{}
}

// New creates a world with the kinds that add registers and with the objects, and starts a process. It must be
// called in a bubble.
func New(t *testing.T, add func(*runtime.Scheme) error, start func(client.Client) Process, objects ...client.Object) *World {
	t.Helper()
	log.SetOutput(io.Discard) // Of Terraform providers, as in a provider of ours.
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, add} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...)
	for _, known := range s.AllKnownTypes() {
		if o, ok := reflect.New(known).Interface().(resource.Managed); ok {
			b = b.WithStatusSubresource(o)
		}
	}
	w := &World{t: t, start: start, wake: map[types.NamespacedName]chan struct{}{}, busy: make(chan struct{}, workers)}
	// A controller reconciles a resource whose annotations it changed itself, but for those of creations.
	changed := resource.DesiredStateChanged()
	b = b.WithInterceptorFuncs(interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		before := o.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), before); err != nil {
			return err
		}
		if err := c.Update(ctx, o, opts...); err != nil {
			return err
		}
		if changed.Update(ctrlevent.UpdateEvent{ObjectOld: before, ObjectNew: o}) {
			w.Wake(client.ObjectKeyFromObject(o))
		}
		return nil
	}})
	w.kube = b.Build()
	w.Kube = w.kube
	w.Restart()
	return w
}

// Restart replaces the process of the provider. The old one finishes its reconciles.
func (w *World) Restart() {
	isDead := &atomic.Bool{}
	kube := mortal(w.kube, isDead)
	p := w.start(kube)
	mgr := &xpfake.Manager{Client: kube, Scheme: w.Kube.Scheme()}
	o := tjcontroller.Options{
		Options:               controller.Options{Logger: logging.NewNopLogger(), PollInterval: pollInterval},
		Provider:              p.Provider,
		OperationTrackerStore: tjcontroller.NewOperationStore(logging.NewNopLogger()),
		SetupFn:               p.Setup,
	}
	r := lift.Reconciler(mgr, o, p.Resource, p.Kind, p.Behaviours[p.Resource], recorder{w}, w.requeue)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconciler = r
	w.kill = func() {
		isDead.Store(true)
		if p.Killed != nil {
			p.Killed()
		}
	}
}

// Kill replaces the process of the provider. Its calls fail from now on. Calls in flight fail too, and have their effect at the API
// server and at the cloud.
func (w *World) Kill() {
	w.mu.Lock()
	kill := w.kill
	w.mu.Unlock()
	kill()
	w.Restart()
}

var errKilled = errors.New("the process was killed")

// mortal returns a client that fails once its process is dead.
func mortal(c client.WithWatch, isDead *atomic.Bool) client.WithWatch {
	alive := func(call func() error) error {
		if isDead.Load() {
			return errKilled
		}
		if err := call(); err != nil || !isDead.Load() {
			return err
		}
		return errKilled
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return alive(func() error { return c.Get(ctx, key, o, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return alive(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return alive(func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return alive(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return alive(func() error { return c.SubResource(name).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return alive(func() error { return c.SubResource(name).Patch(ctx, o, p, opts...) })
		},
	})
}

// KillAtRandom kills the process at random times, each at most interval after the one before.
func (w *World) KillAtRandom(kills int, interval time.Duration, random *rand.Rand) {
	for range kills {
		time.Sleep(time.Duration(random.Int63n(int64(interval))))
		w.Kill()
	}
}

type recorder struct{ *World }

func (r recorder) Event(_ runtime.Object, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}
func (r recorder) WithAnnotations(...string) event.Recorder { return r }

// Warnings that were recorded, in their order.
func (w *World) Warnings() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		if e.Type == event.TypeWarning {
			out = append(out, e.Message)
		}
	}
	return out
}

// Add adds a VM, which is reconciled until it is gone or the test ends.
func (w *World) Add(vm client.Object) {
	w.t.Helper()
	if err := w.Kube.Create(w.t.Context(), vm); err != nil {
		w.t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(vm)
	wake := make(chan struct{}, 1)
	w.mu.Lock()
	w.wake[key] = wake
	w.mu.Unlock()
	go w.run(w.t.Context(), key, vm.DeepCopyObject().(client.Object), wake)
}

// run is the loop of a controller, for one object.
func (w *World) run(ctx context.Context, key types.NamespacedName, kind client.Object, wake chan struct{}) {
	failures := 0
	for ctx.Err() == nil && w.Kube.Get(ctx, key, kind) == nil {
		w.busy <- struct{}{}
		w.mu.Lock()
		r := w.reconciler
		w.mu.Unlock()
		res, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
		<-w.busy
		after := res.RequeueAfter
		if err != nil || res.Requeue {
			after = min(100*time.Millisecond<<min(failures, 20), time.Minute)
			failures++
		} else {
			failures = 0
		}
		if after == 0 {
			after = time.Hour
		}
		select {
		case <-wake:
		case <-time.After(after):
		case <-ctx.Done():
		}
	}
}

func (w *World) requeue(mg resource.Managed, after time.Duration) {
	key := client.ObjectKeyFromObject(mg)
	time.AfterFunc(after, func() { w.Wake(key) })
}

// Wake enqueues the object, as a change of it does.
func (w *World) Wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wake[key] <- struct{}{}:
	default:
	}
}

// Get reads the object again.
func (w *World) Get(o client.Object) {
	w.t.Helper()
	if err := w.Kube.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
}

// Change changes an object as a user or a function does.
func (w *World) Change(o client.Object, change func()) {
	w.t.Helper()
	w.Get(o)
	change()
	if err := w.Kube.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	w.Wake(client.ObjectKeyFromObject(o))
}

// Delete a VM.
func (w *World) Delete(o client.Object) {
	w.t.Helper()
	if err := w.Kube.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
	w.Wake(client.ObjectKeyFromObject(o))
}

// Gone reports whether the object does not exist any more.
func (w *World) Gone(o client.Object) bool {
	return client.IgnoreNotFound(w.Kube.Get(w.t.Context(), client.ObjectKeyFromObject(o), o)) == nil &&
		w.Kube.Get(w.t.Context(), client.ObjectKeyFromObject(o), o) != nil
}

// Until waits until a function returns true, for a limited time of the bubble.
func (w *World) Until(limit time.Duration, what string, so func() bool) time.Duration {
	w.t.Helper()
	begin, look := time.Now(), max(soonest, limit/1000)
	for !so() {
		if time.Since(begin) > limit {
			warnings := w.Warnings()
			w.t.Fatalf("not so after %s: %s; %d warnings, the last %q", limit, what, len(warnings), warnings[max(0, len(warnings)-2):])
		}
		time.Sleep(look)
	}
	return time.Since(begin)
}

// UntilCondition waits until a condition has the reason, and returns it.
func (w *World) UntilCondition(limit time.Duration, mg resource.Managed, t xpv2.ConditionType, reason xpv2.ConditionReason) xpv2.Condition {
	w.t.Helper()
	w.Until(limit, string(t)+" with reason "+string(reason), func() bool {
		w.Get(mg)
		return mg.GetCondition(t).Reason == reason
	})
	return mg.GetCondition(t)
}

// RequestReboot requests a reboot of a VM as its Machine does.
func (w *World) RequestReboot(vm client.Object, request string) {
	w.t.Helper()
	w.Change(vm, func() { meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReboot: request}) })
}

// UntilRebooted waits until the condition Rebooted has the result of the request, and fails unless it has the status and the
// text. It returns the message of the condition.
func (w *World) UntilRebooted(limit time.Duration, vm resource.Managed, request string, status corev1.ConditionStatus, text string) string {
	w.t.Helper()
	w.Until(limit, "Rebooted is about "+request, func() bool {
		w.Get(vm)
		c := vm.GetCondition(machinev1alpha1.ConditionRebooted)
		return strings.HasPrefix(c.Message, request+": ") && (c.Status != corev1.ConditionUnknown || status == corev1.ConditionUnknown)
	})
	c := vm.GetCondition(machinev1alpha1.ConditionRebooted)
	if c.Status != status || !strings.Contains(c.Message, text) {
		w.t.Errorf("%s %q, want %s with %q", c.Status, c.Message, status, text)
	}
	return c.Message
}

// WantSound fails unless a VM is Ready and observed without an error.
func (w *World) WantSound(vm resource.Managed) {
	w.t.Helper()
	w.Get(vm)
	if r, s := vm.GetCondition(xpv2.TypeReady), vm.GetCondition(xpv2.TypeSynced); r.Reason != xpv2.ReasonAvailable || s.Reason != xpv2.ReasonReconcileSuccess {
		w.t.Errorf("Ready: %+v, Synced: %+v", r, s)
	}
}
