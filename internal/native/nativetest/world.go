// Package nativetest runs the reconciler of a native provider against the fake of its cloud and a fake
// API server. It does so in a bubble of testing/synctest, in which waits take no time, and without a
// network. [Run] has the cases that every cloud must pass.
package nativetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/internal/inventory"
	"github.com/drover-dev/drover/internal/native"
	"github.com/drover-dev/drover/test/fakes"
)

const (
	// workers is the default number of concurrent reconciles of a provider.
	workers = 20
	// poll is the default poll interval of a provider.
	poll = time.Minute
	// Namespace of the VMs.
	Namespace = "ns"
	// UserDataSecret is the Secret with the user data of the VMs, key userData.
	UserDataSecret = "user-data"
	// CredentialsNamespace is the namespace of CredentialsSecret.
	CredentialsNamespace = "system"
	// CredentialsSecret is the Secret with the credentials.
	CredentialsSecret = "cloud"
	// CredentialsKey is the key of the credentials in their Secret.
	CredentialsKey = "credentials"
	// Config is the name of the ClusterProviderConfig.
	Config = "default"
	// UserData of the VMs. It has a token, which no text may contain.
	UserData = "#cloud-config\ntoken: " + userToken
)

const userToken = "abcdef.0123456789abcdef"

// A Cloud is a fake cloud with one account, and its provider.
type Cloud[T native.Resource, C any] struct {
	Provider native.Provider[T, C]
	// AddToScheme registers the provider's kinds.
	AddToScheme func(*runtime.Scheme) error
	// Config is a ClusterProviderConfig. The package adds its name and the Secret with the credentials.
	Config client.Object
	// Credentials that the cloud accepts.
	Credentials func() C
	// Rotate makes the cloud accept new credentials only.
	Rotate func()
	// Secrets are parts of credentials, which no text may contain.
	Secrets func() []string

	// VM returns a VM that the cloud accepts, with the attributes as its tags. The package adds its
	// user data, its configuration and its UID.
	VM func(name string, attributes map[string]string) T
	// UseUserData sets the Secret with the user data. The default sets spec.forProvider.userDataSecretRef.
	UseUserData func(vm T, ref xpv2.LocalSecretKeySelector)
	// TagValue returns a value of an attribute as a tag of the cloud has it, if tags cannot have all values. The VM has it
	// so, too. Default: the value itself.
	TagValue func(string) string
	// Invalid changes a field of the VM so that the provider refuses it before it creates anything. It
	// returns the field.
	Invalid func(T) (field string)

	// VMs returns the existing VMs. Several may have the same name.
	VMs func() []Existing
	// Leftovers returns the existing resources that should be deleted together with VMs.
	Leftovers func() []string
	// Lose deletes a VM, and Stop powers it off, as a user does it.
	Lose, Stop func(name string)
	// Reboots returns the reboots of a VM in their order: "Soft" if its operating system was asked to restart, "Hard" if
	// the VM was reset or powered on.
	Reboots func(name string) []string
	// LacksPower means that the cloud neither reports whether a VM is powered on nor reboots one.
	LacksPower bool
	// LacksSoftReboot means that the cloud cannot ask the operating system of a VM to restart.
	LacksSoftReboot bool
	// OneReboot means that the cloud has one kind of reboot for both modes: it asks the operating system, and resets a VM that
	// does not restart. Each counts as "Soft".
	OneReboot bool
	// Fake is the fake of the cloud's API, and CreateCall the name of the call that creates a VM there. The next three
	// functions and Throttle need not be set with them.
	Fake       Fake
	CreateCall string
	// CutCreations makes the next n creations succeed without a response. It calls then before it cuts
	// a connection.
	CutCreations func(n int, then func())
	// CutAny cuts the connection of each call with a probability, after its effect.
	CutAny func(probability float64, random *rand.Rand)
	// Throttle makes the cloud refuse all calls for some time.
	Throttle func(time.Duration)
	// Calls returns the number of calls so far, by method.
	Calls func() map[string]int

	// MostCalls and MostDeletionCalls are the maximum of calls per VM when 50 VMs are created or deleted
	// at once.
	MostCalls, MostDeletionCalls int
	// CreationTakes is the maximum time until 50 VMs run.
	CreationTakes time.Duration
}

// A Fake has the methods that the fakes of HTTP APIs share: see the package fakes.
type Fake interface {
	Break(fault fakes.Fault) (mend func())
	CutAny(probability float64, random *rand.Rand)
	Calls() (calls map[string]int, total int)
	Throttle(d time.Duration)
}

// complete sets the fields of a cloud that follow from others.
func complete[T native.Resource, C any](t *testing.T, c Cloud[T, C]) Cloud[T, C] {
	t.Helper()
	c.Config.SetName(Config)
	merge(t, c.Config, map[string]any{"credentials": map[string]any{
		"secretRef": map[string]any{"namespace": CredentialsNamespace, "name": CredentialsSecret, "key": CredentialsKey},
	}})
	if c.UseUserData == nil {
		c.UseUserData = func(vm T, ref xpv2.LocalSecretKeySelector) {
			merge(t, vm, map[string]any{"forProvider": map[string]any{"userDataSecretRef": ref}})
		}
	}
	if c.Fake == nil {
		return c
	}
	if c.CutCreations == nil {
		c.CutCreations = func(n int, then func()) {
			c.Fake.Break(fakes.Fault{Call: c.CreateCall, Times: n, Lost: true, Then: then})
		}
	}
	if c.CutAny == nil {
		c.CutAny = c.Fake.CutAny
	}
	if c.Throttle == nil {
		c.Throttle = c.Fake.Throttle
	}
	if c.Calls == nil {
		c.Calls = func() map[string]int {
			calls, _ := c.Fake.Calls()
			return calls
		}
	}
	return c
}

// merge writes fields into the spec of an object.
func merge(t *testing.T, o client.Object, spec map[string]any) {
	t.Helper()
	b, err := json.Marshal(map[string]any{"spec": spec})
	if err == nil {
		err = json.Unmarshal(b, o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// An Existing is a VM that exists.
type Existing struct{ Name, UserData string }

// A world has an API server, a cloud, and a provider that reconciles the VMs.
type world[T native.Resource, C any] struct {
	*testing.T
	Cloud[T, C]
	kube client.Client

	mu      sync.Mutex
	process native.Process[T, C]
	reconc  reconcile.Reconciler
	dead    bool
	requeue map[types.NamespacedName]time.Duration
	wake    map[types.NamespacedName]chan struct{}
	texts   []string
	busy    chan struct{}
	uids    int
	// generation counts processes.
	generation int
}

var errDead = errors.New("the provider was killed")

func newWorld[T native.Resource, C any](t *testing.T, c Cloud[T, C]) *world[T, C] {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, c.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world[T, C]{T: t, Cloud: complete(t, c), wake: map[types.NamespacedName]chan struct{}{}, requeue: map[types.NamespacedName]time.Duration{}, busy: make(chan struct{}, workers)}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(c.Config, w.secret(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: UserDataSecret},
		Data:       map[string][]byte{"userData": []byte(UserData)},
	})
	for _, known := range s.AllKnownTypes() {
		if o, ok := reflect.New(known).Interface().(resource.Managed); ok {
			b = b.WithStatusSubresource(o)
		}
	}
	w.kube = b.Build()
	w.restart()
	return w
}

func (w *world[T, C]) secret() *corev1.Secret {
	b, err := json.Marshal(w.Credentials())
	if err != nil {
		w.Fatal(err)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: CredentialsNamespace, Name: CredentialsSecret}, Data: map[string][]byte{CredentialsKey: b}}
}

// setSecret sets the Secret to the credentials that the cloud accepts, with a change if that is not nil.
func (w *world[T, C]) setSecret(change func(*corev1.Secret)) {
	w.Helper()
	s := w.secret()
	if change != nil {
		change(s)
	}
	if err := w.kube.Update(w.Context(), s); err != nil {
		w.Fatal(err)
	}
}

// restart restarts the provider: the new process has no memory, and the old one can write nothing.
func (w *world[T, C]) restart() {
	generation := w.nextGeneration()
	kill := func() bool { return w.isDead() || !w.isCurrent(generation) }
	c := interceptor.NewClient(w.kube.(client.WithWatch), interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if kill() {
				return errDead
			}
			return c.Update(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if kill() {
				return errDead
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			if kill() {
				return errDead
			}
			w.check(obj)
			return c.SubResource(sub).Update(ctx, obj, opts...)
		},
	})
	process := native.NewProcess(w.Provider, c, recorder[T, C]{w}, requeuer[T, C]{w})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = false
	w.process = process
	w.reconc = process.Reconciler(&xpfake.Manager{Client: c, Scheme: w.kube.Scheme()})
}

// nextGeneration returns the number of the next process, which becomes the current one.
func (w *world[T, C]) nextGeneration() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.generation++
	return w.generation
}

func (w *world[T, C]) isCurrent(generation int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.generation == generation
}

// kill kills the provider: its writes no longer reach the API server.
func (w *world[T, C]) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
}

func (w *world[T, C]) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// check checks that an object contains no secret.
func (w *world[T, C]) check(obj client.Object) {
	if vm, ok := obj.(resource.Conditioned); ok {
		for _, t := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
			w.checkText("condition", vm.GetCondition(t).Message)
		}
	}
	b, err := json.Marshal(obj)
	if err != nil {
		w.Error(err)
	}
	w.checkText("object", string(b))
}

func (w *world[T, C]) checkText(where, text string) {
	for _, s := range append(w.Secrets(), userToken) {
		if s != "" && strings.Contains(text, s) {
			w.Errorf("a secret is in the %s: %s", where, text)
		}
	}
}

type recorder[T native.Resource, C any] struct{ w *world[T, C] }

func (r recorder[T, C]) Event(_ runtime.Object, e event.Event) {
	r.w.checkText("event", e.Message)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.texts = append(r.w.texts, string(e.Reason)+": "+e.Message)
}
func (r recorder[T, C]) WithAnnotations(...string) event.Recorder { return r }

type requeuer[T native.Resource, C any] struct{ w *world[T, C] }

func (r requeuer[T, C]) After(obj client.Object, d time.Duration) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.requeue[client.ObjectKeyFromObject(obj)] = d
}

// newVM returns a VM with its user data and configuration.
func (w *world[T, C]) newVM(name string, attributes map[string]string) T {
	vm := w.VM(name, attributes)
	vm.SetName(name)
	w.complete(vm)
	return vm
}

// complete sets the fields of a VM that are the same for all clouds.
func (w *world[T, C]) complete(vm T) {
	w.mu.Lock()
	w.uids++
	uid := types.UID(fmt.Sprintf("0b0e7d2c-6a52-4a0b-9b53-%012x", w.uids))
	w.mu.Unlock()
	vm.SetNamespace(Namespace)
	vm.SetUID(uid)
	vm.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: Config})
	vm.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	w.UseUserData(vm, xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: UserDataSecret}, Key: "userData"})
}

// add creates a VM and reconciles it until it is deleted.
func (w *world[T, C]) add(vm T) T {
	w.Helper()
	if err := w.kube.Create(w.Context(), vm); err != nil {
		w.Fatal(err)
	}
	key := client.ObjectKeyFromObject(vm)
	wake := make(chan struct{}, 1)
	w.mu.Lock()
	w.wake[key] = wake
	w.mu.Unlock()
	go w.run(w.Context(), key, wake)
	return vm
}

// run is the loop of a controller, for one object.
func (w *world[T, C]) run(ctx context.Context, key types.NamespacedName, wake chan struct{}) {
	failures := 0
	for ctx.Err() == nil {
		if kerrors.IsNotFound(w.kube.Get(ctx, key, w.empty())) {
			return
		}
		after := poll
		if !w.isDead() {
			w.busy <- struct{}{}
			w.mu.Lock()
			r := w.reconc
			delete(w.requeue, key)
			w.mu.Unlock()
			res, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: key})
			<-w.busy
			w.mu.Lock()
			asked, ok := w.requeue[key]
			w.mu.Unlock()
			failed := err != nil || res.Requeue
			switch {
			case ok && err == nil:
				after, failures = asked, 0
			case failed:
				after = min(250*time.Millisecond<<min(failures, 20), 30*time.Second)
				failures++
			default:
				failures = 0
				if res.RequeueAfter > 0 {
					after = res.RequeueAfter
				}
			}
		}
		select {
		case <-wake:
		case <-time.After(after):
		case <-ctx.Done():
		}
	}
}

func (w *world[T, C]) empty() T {
	return reflect.New(reflect.TypeOf(w.Provider.Object).Elem()).Interface().(T)
}

// get reads the object again. It returns false if the object does not exist.
func (w *world[T, C]) get(vm T) bool {
	w.Helper()
	err := w.kube.Get(w.Context(), client.ObjectKeyFromObject(vm), vm)
	if err != nil && !kerrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

// change changes an object, as a user or a function does it.
func (w *world[T, C]) change(vm T, change func()) {
	w.Helper()
	for {
		w.get(vm)
		change()
		err := w.kube.Update(w.Context(), vm)
		if kerrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.Fatal(err)
		}
		break
	}
	w.awake(vm)
}

func (w *world[T, C]) delete(vm T) {
	w.Helper()
	if err := w.kube.Delete(w.Context(), vm); err != nil {
		w.Fatal(err)
	}
	w.awake(vm)
}

func (w *world[T, C]) awake(vm T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.wake[client.ObjectKeyFromObject(vm)] <- struct{}{}:
	default:
	}
}

// until waits until a condition is met, and returns how long it took.
func (w *world[T, C]) until(limit time.Duration, condition string, met func() bool) time.Duration {
	w.Helper()
	began := time.Now()
	for !met() {
		if time.Since(began) > limit {
			w.mu.Lock()
			texts := w.texts[max(0, len(w.texts)-3):]
			w.mu.Unlock()
			w.Fatalf("not after %s: %s; events %q; VMs %v, leftovers %v", limit, condition, texts, w.VMs(), w.Leftovers())
		}
		time.Sleep(200 * time.Millisecond)
	}
	return time.Since(began)
}

func (w *world[T, C]) untilReady(limit time.Duration, vm T) {
	w.Helper()
	w.until(limit, vm.GetName()+" is Ready", func() bool {
		return w.get(vm) && vm.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue && vm.Observation().ProviderID != ""
	})
}

func (w *world[T, C]) untilCondition(limit time.Duration, vm T, t xpv2.ConditionType, status corev1.ConditionStatus, parts ...string) {
	w.Helper()
	w.until(limit, fmt.Sprintf("%s has %s=%s with %q", vm.GetName(), t, status, parts), func() bool {
		if !w.get(vm) {
			return false
		}
		c := vm.GetCondition(t)
		for _, p := range parts {
			if !strings.Contains(string(c.Reason)+": "+c.Message, p) {
				return false
			}
		}
		return c.Status == status
	})
}

func (w *world[T, C]) untilGone(limit time.Duration, vm T) {
	w.Helper()
	w.until(limit, vm.GetName()+" is gone", func() bool { return !w.get(vm) })
}

// existing returns the VMs with a name.
func (w *world[T, C]) existing(name string) []Existing {
	return slices.DeleteFunc(w.VMs(), func(e Existing) bool { return e.Name != name })
}

// wantVMs checks the number of VMs with a name.
func (w *world[T, C]) wantVMs(name string, n int) {
	w.Helper()
	if got := w.existing(name); len(got) != n {
		w.Errorf("%d VMs %q, want %d", len(got), name, n)
	}
}

// deleteAll deletes the only VM, waits until it is gone, and checks that nothing is left in the cloud.
func (w *world[T, C]) deleteAll(vm T) {
	w.Helper()
	w.delete(vm)
	w.untilGone(enough, vm)
	w.wantNothing()
}

// wantNothing checks that nothing is left in the cloud.
func (w *world[T, C]) wantNothing() {
	w.Helper()
	if vms, left := w.VMs(), w.Leftovers(); len(vms)+len(left) > 0 {
		w.Errorf("VMs %v and leftovers %v exist, want none", vms, left)
	}
}

func (w *world[T, C]) lister(vm T) inventory.Lister {
	w.Helper()
	w.mu.Lock()
	p := w.process
	w.mu.Unlock()
	l, err := p.Lister(w.Context(), vm)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// callsSince returns the calls since an earlier count, by method and as a sum.
func (w *world[T, C]) callsSince(before map[string]int) (map[string]int, int) {
	out, sum := map[string]int{}, 0
	for k, n := range w.Calls() {
		if d := n - before[k]; d > 0 {
			out[k] = d
			sum += d
		}
	}
	return out, sum
}
