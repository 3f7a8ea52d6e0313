package lift

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	ujresource "github.com/crossplane/upjet/v2/pkg/resource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/creation"
)

// upjet plays upjet's client.
type upjet struct {
	managed.ExternalClient
	state  string // of the VM; empty: there is none
	err    error
	create context.Context
	made   string // by a creation that failed
	calls  int
}

func (u *upjet) Observe(_ context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	if u.err != nil || u.state == "" {
		return managed.ExternalObservation{}, u.err
	}
	mg.SetConditions(xpv2.Available())
	mg.(*v1alpha1.VirtualMachine).Status.AtProvider.State = &u.state
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

func (u *upjet) Create(ctx context.Context, _ resource.Managed) (managed.ExternalCreation, error) {
	u.create = ctx
	u.calls++
	return managed.ExternalCreation{}, u.err
}

func (u *upjet) Delete(context.Context, resource.Managed) (managed.ExternalDelete, error) {
	u.calls++
	return managed.ExternalDelete{}, u.err
}

var errLost = errors.New("lost")

func lifted(u *upjet) *external {
	return &external{ExternalClient: u, connector: &connector{
		kube: fake.NewClientBuilder().Build(),
		behaviour: Behaviour{
			Ready: func(state map[string]any) xpv2.Condition {
				if state["state"] == "Running" {
					return xpv2.Available()
				}
				return xpv2.Creating()
			},
			CreationUnknown: func(err error) bool { return errors.Is(err, errLost) },
		},
		creations: creation.New(&apiServer{}),
		created:   func(ujresource.Terraformed) string { return u.made },
		requeue:   func(resource.Managed, time.Duration) {},
	}}
}

func TestObserve(t *testing.T) {
	now := metav1.Now()
	cases := map[string]struct {
		state   string
		err     error
		name    string
		deleted *metav1.Time
		exists  bool
		ready   corev1.ConditionStatus
		reason  xpv2.ConditionReason
		wantErr string
	}{
		"AVMThatRunsIsReady":                  {state: "Running", name: "vm-1", exists: true, ready: corev1.ConditionTrue, reason: xpv2.ReasonAvailable},
		"AVMThatBootsIsNotReady":              {state: "Pending", name: "vm-1", exists: true, ready: corev1.ConditionFalse, reason: xpv2.ReasonCreating},
		"AVMThatWasNeverThereIsToBeCreated":   {ready: corev1.ConditionUnknown},
		"AVMThatWasThereIsMissing":            {name: "vm-1", ready: corev1.ConditionFalse, reason: machinev1alpha1.ReasonMissing, wantErr: "Missing: vm-1 is no longer there"},
		"AVMThatIsGoneAfterItsDeletionIsFine": {name: "vm-1", deleted: &now, ready: corev1.ConditionUnknown},
		"ACloudThatIsAwayChangesNothing":      {name: "vm-1", err: errors.New("refused"), ready: corev1.ConditionUnknown, wantErr: "refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted}}
			if tc.name != "" {
				meta.SetExternalName(vm, tc.name)
			}
			o, err := lifted(&upjet{state: tc.state, err: tc.err}).Observe(context.Background(), vm)
			if tc.wantErr == "" && err != nil || tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if o.ResourceExists != tc.exists {
				t.Errorf("exists: %t, want %t", o.ResourceExists, tc.exists)
			}
			if c := vm.GetCondition(xpv2.TypeReady); c.Status != tc.ready || c.Reason != tc.reason {
				t.Errorf("Ready is %s %s, want %s %s", c.Status, c.Reason, tc.ready, tc.reason)
			}
		})
	}
}

func TestADeletionEndsWhenNothingIsLeftBehind(t *testing.T) {
	now := metav1.Now()
	left := errors.New("a group is left")
	cases := map[string]struct {
		reason  string
		state   string
		deleted *metav1.Time
		calls   int
		want    error
	}{
		"Gone":          {"The managed resource stays while Deleted fails.", "", &now, 1, left},
		"StillThere":    {"A VM that exists needs all that belongs to it.", "Running", &now, 0, nil},
		"NotYetCreated": {"A VM that is not being deleted leaves nothing behind.", "", nil, 0, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, calls := lifted(&upjet{state: tc.state}), 0
			e.behaviour.Deleted = func(context.Context, resource.ModernManaged) error { calls++; return left }
			vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted}}
			if _, err := e.Observe(t.Context(), vm); !errors.Is(err, tc.want) || calls != tc.calls {
				t.Errorf("%s\nerror %v, want %v; Deleted was called %d times, want %d", tc.reason, err, tc.want, calls, tc.calls)
			}
		})
	}
}

func TestConnectFailsWithoutTheSecretsOfWhatMayBeCreated(t *testing.T) {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	vm.Spec.ForProvider.UserDataSecretRef = secretKey("never", "userData")
	c, fresh, old := lifted(&upjet{}).connector, &reader{}, &reader{}
	c.ExternalConnector, c.existing = fresh, old
	if _, err := c.Connect(t.Context(), vm); err == nil || !strings.Contains(err.Error(), `"never"`) || fresh.called || old.called {
		t.Errorf("error %v, upjet called: %t, %t", err, fresh.called, old.called)
	}
	meta.SetExternalName(vm, "vm-1")
	if _, err := c.Connect(t.Context(), vm); err != nil || fresh.called || !old.called {
		t.Errorf("a VM that exists needs its Secret no more, and none that was read just now: %v, upjet called: %t, %t", err, fresh.called, old.called)
	}
}

// reader plays upjet's connector, which reads Secrets as it connects.
type reader struct {
	managed.ExternalConnector
	called bool
}

func (r *reader) Connect(context.Context, resource.Managed) (managed.ExternalClient, error) {
	r.called = true
	return &upjet{}, nil
}

func TestCreate(t *testing.T) {
	stopped, cancel := context.WithCancel(context.Background())
	cancel()

	t.Run("AStopOfTheProviderDoesNotInterruptIt", func(t *testing.T) {
		u := &upjet{}
		if _, err := lifted(u).Create(stopped, &v1alpha1.VirtualMachine{}); err != nil {
			t.Fatal(err)
		}
		if _, ok := u.create.Deadline(); !ok {
			t.Error("it has no time limit")
		}
	})
	t.Run("NothingIsCreatedWithoutItsUserData", func(t *testing.T) {
		u, vm := &upjet{}, &v1alpha1.VirtualMachine{}
		vm.Spec.ForProvider.UserDataSecretRef = secretKey("gone", "userData")
		if _, err := lifted(u).Create(context.Background(), vm); err == nil || u.calls != 0 {
			t.Errorf("error %v after %d calls, want one after 0", err, u.calls)
		}
	})
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"AnErrorThatLeavesItOpenIsRemembered": {errLost, true},
		"AFailureIsNot":                       {errors.New("quota"), false},
	} {
		t.Run(name, func(t *testing.T) {
			e, vm := lifted(&upjet{err: tc.err}), pendingVM()
			if _, err := e.Create(context.Background(), vm); !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if got := e.creations.IsUnknown(vm); got != tc.want {
				t.Errorf("unknown: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestCreateSearches: only a creation of unknown result has its resource searched for, by a cloud that can
// identify it. A refusal is reported as it is.
func TestCreateSearches(t *testing.T) {
	errEarly := errors.New("it may still be created")
	for name, tc := range map[string]struct {
		err, find error
		found     string
		anyError  bool
		searches  int
		unknown   bool
	}{
		"Found":                    {err: errLost, found: "port-1", searches: 1},
		"NothingWasCreated":        {err: errLost, searches: 1},
		"ItMayStillBeCreated":      {err: errLost, find: errEarly, searches: 1, unknown: true},
		"Refused":                  {err: errors.New("quota")},
		"RefusedWithoutAPredicate": {err: errors.New("quota"), anyError: true, searches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, vm, searches := lifted(&upjet{err: tc.err}), pendingVM(), 0
			e.behaviour.Find = func(context.Context, resource.ModernManaged) (string, error) {
				searches++
				return tc.found, tc.find
			}
			if tc.anyError {
				e.behaviour.CreationUnknown = nil
			}
			if _, err := e.Create(t.Context(), vm); !errors.Is(err, tc.err) {
				t.Fatalf("error %v, want %v", err, tc.err)
			}
			if searches != tc.searches || meta.GetExternalName(vm) != tc.found || e.creations.IsUnknown(vm) != tc.unknown {
				t.Errorf("%d searches, external name %q, unknown: %t", searches, meta.GetExternalName(vm), e.creations.IsUnknown(vm))
			}
		})
	}
}

func TestWhatACreationMadeBeforeItFailedIsRecorded(t *testing.T) {
	e, vm := lifted(&upjet{err: errLost, made: "vm-1"}), pendingVM()
	if _, err := e.Create(context.Background(), vm); !errors.Is(err, errLost) || meta.GetExternalName(vm) != "vm-1" || e.creations.IsUnknown(vm) {
		t.Errorf("error %v, external name %q, unknown: %t", err, meta.GetExternalName(vm), e.creations.IsUnknown(vm))
	}
}

func TestWhatWasCreatedIsLookedAtSoon(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{"Created": {nil, true}, "Refused": {errors.New("no"), false}, "Lost": {errLost, false}} {
		t.Run(name, func(t *testing.T) {
			e := lifted(&upjet{err: tc.err})
			var looks []time.Duration
			e.requeue = func(_ resource.Managed, d time.Duration) { looks = append(looks, d) }
			_, _ = e.Create(context.Background(), &v1alpha1.VirtualMachine{})
			if (len(looks) > 0) != tc.want || tc.want && looks[0] > time.Second {
				t.Errorf("looks after %v", looks)
			}
		})
	}
}

func TestDeleteLooksAgainUntilItIsGone(t *testing.T) {
	e, forgot, after := lifted(&upjet{}), false, time.Duration(0)
	e.forgetDeletion = func(ujresource.Terraformed) { forgot = true }
	e.requeue = func(_ resource.Managed, d time.Duration) { after = d }
	now := metav1.Now()
	if _, err := e.Delete(context.Background(), &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}); err != nil {
		t.Fatal(err)
	}
	if !forgot || after <= 0 {
		t.Errorf("forgot the deletion: %t, looks again after %s", forgot, after)
	}
}

// apiServer takes all annotations.
type apiServer struct{}

func (*apiServer) UpdateCriticalAnnotations(context.Context, client.Object) error { return nil }

// pendingVM is a VM whose creation was just started.
func pendingVM() *v1alpha1.VirtualMachine {
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{UID: "uid"}}
	meta.SetExternalCreatePending(vm, time.Now())
	return vm
}
