package jointoken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/names"
)

const template = "join $(server) as $(token) with $(ca.crt|base64) for $(joinToken.uid) of $(config.uid)"

var (
	start   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	errLost = errors.New("the answer was lost")
)

// recorded events.
type recorded struct{ all []string }

func (e *recorded) Event(_ runtime.Object, ev event.Event) {
	e.all = append(e.all, string(ev.Reason)+": "+ev.Message)
}
func (e *recorded) WithAnnotations(...string) event.Recorder { return e }

func machine(changes ...func(*machinev1alpha1.Machine)) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "uid-1"}}
	for _, c := range changes {
		c(m)
	}
	return m
}

func request(changes ...func(*Request)) Request {
	r := Request{
		UserData: template, TTL: metav1.Duration{Duration: time.Hour}, MaxLife: metav1.Duration{Duration: 4 * time.Hour},
		Groups: []string{"system:bootstrappers:a"},
	}
	for _, c := range changes {
		c(&r)
	}
	return r
}

func frozen(r *Request)  { r.Frozen = true }
func revoked(r *Request) { r.Revoked = true }

// A fixture is a Keeper between a control cluster and a target cluster that count calls.
type fixture struct {
	*testing.T
	*Keeper
	m      *machinev1alpha1.Machine
	target *fake.Clientset
	events *recorded

	now     time.Time
	cluster Cluster
	connErr error
	calls   []string // to both clusters, in their order
	lose    string   // the call that is carried out although its answer is lost
	fail    string   // the call that is not carried out
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, m: machine(), target: fake.NewClientset(), events: &recorded{}, now: start}
	f.cluster = Cluster{Kube: f.target, Classify: func(err error) error { return err }, Host: "https://self", CA: []byte("ca"), ConfigUID: "config"}
	f.target.PrependReactor("*", "*", f.react)
	control := crfake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return f.call("control get", func() error { return c.Get(ctx, key, obj, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.call("control create", func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return f.call("control update", func() error { return c.Update(ctx, obj, opts...) })
		},
	}).Build()
	f.Keeper = NewKeeper(Options{
		Connect: func(context.Context, *machinev1alpha1.Machine) (Cluster, error) { return f.cluster, f.connErr },
		Client:  control, Live: control, Record: f.events, Now: func() time.Time { return f.now },
	})
	return f
}

// call carries out a call, and loses its response or fails it if set.
func (f *fixture) call(name string, do func() error) error {
	f.calls = append(f.calls, name)
	if name == f.fail {
		return errLost
	}
	err := do()
	if name == f.lose {
		return errLost
	}
	return err
}

// react does what fakes do not: UIDs, preconditions, lost responses.
func (f *fixture) react(action clienttesting.Action) (bool, runtime.Object, error) {
	resource := strings.TrimSuffix(action.GetResource().Resource, "s")
	name := "target " + action.GetVerb() + " " + resource
	var out runtime.Object
	handled := false
	err := f.call(name, func() error {
		var err error
		switch a := action.(type) {
		case clienttesting.DeleteActionImpl:
			handled = true
			return f.deleteIf(a)
		case clienttesting.CreateActionImpl:
			o, ok := a.Object.(metav1.Object)
			if !ok {
				return nil
			}
			handled = true
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", len(f.calls))))
			err = f.target.Tracker().Create(a.GetResource(), a.Object, a.GetNamespace())
			out = a.Object
		case clienttesting.UpdateActionImpl:
			handled = true
			err = f.target.Tracker().Update(a.GetResource(), a.Object, a.GetNamespace())
			out = a.Object
		}
		return err
	})
	return handled || err != nil, out, err
}

func (f *fixture) deleteIf(a clienttesting.DeleteActionImpl) error {
	obj, err := f.target.Tracker().Get(a.GetResource(), a.GetNamespace(), a.GetName())
	if err != nil {
		return err
	}
	if p := a.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != obj.(metav1.Object).GetUID() {
		return kerrors.NewConflict(schema.GroupResource{Resource: "secrets"}, a.GetName(), errors.New("UID precondition"))
	}
	return f.target.Tracker().Delete(a.GetResource(), a.GetNamespace(), a.GetName())
}

// restart replaces the Keeper by one without entries.
func (f *fixture) restart() { f.Keeper = NewKeeper(f.Options) }

func (f *fixture) after(d time.Duration) { f.now = start.Add(d) }

func (f *fixture) observe() State {
	f.Helper()
	s, err := f.Observe(f.Context(), f.m)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func (f *fixture) tryApply(changes ...func(*Request)) (State, error) {
	return f.Apply(f.Context(), f.m, request(changes...))
}

func (f *fixture) apply(changes ...func(*Request)) State {
	f.Helper()
	s, err := f.tryApply(changes...)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// expectCalls compares the calls since the last comparison.
func (f *fixture) expectCalls(want ...string) {
	f.Helper()
	if !slices.Equal(f.calls, want) {
		f.Errorf("calls:\nwant %v\ngot  %v", want, f.calls)
	}
	f.calls = nil
}

// token in the target cluster, nil if there is none.
func (f *fixture) token() *corev1.Secret {
	f.Helper()
	l, err := f.target.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithKind("Secret"), metav1.NamespaceSystem)
	if err != nil {
		f.Fatal(err)
	}
	switch items := l.(*corev1.SecretList).Items; len(items) {
	case 0:
		return nil
	case 1:
		return &items[0]
	default:
		f.Fatalf("there are %d tokens", len(items))
		return nil
	}
}

// secret beside the Machine, nil if there is none.
func (f *fixture) secret() *corev1.Secret {
	f.Helper()
	was := f.calls
	defer func() { f.calls = was }()
	s := &corev1.Secret{}
	err := f.Live.Get(f.Context(), types.NamespacedName{Namespace: f.m.Namespace, Name: names.UserData(f.m.Name, f.m.UID)}, s)
	if client.IgnoreNotFound(err) != nil {
		f.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return s
}

// expectMatch expects a published Secret that matches the token, and returns its half.
func (f *fixture) expectMatch(s State) string {
	f.Helper()
	token, secret := f.token(), f.secret()
	if token == nil || secret == nil {
		f.Fatalf("token %v, Secret %v", token, secret)
	}
	half := string(token.Data["token-secret"])
	want := names.TokenID(f.m.UID) + "." + half
	if got := string(secret.Data[clusterv1alpha1.ConnectionToken]); got != want || half == "" {
		f.Errorf("the Secret has token %s, the target cluster %s", got, want)
	}
	if got := string(secret.Data[clusterv1alpha1.ConnectionUserData]); !strings.Contains(got, want) {
		f.Errorf("the user data has another token: %s", got)
	}
	if !s.Published || string(s.Details[clusterv1alpha1.ConnectionToken]) != want {
		f.Errorf("published %v, token %s", s.Published, s.Details[clusterv1alpha1.ConnectionToken])
	}
	return half
}

func (f *fixture) expires() time.Duration { return expiration(f.token()).Sub(start) }
