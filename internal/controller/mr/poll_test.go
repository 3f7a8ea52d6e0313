package mr

import (
	"context"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drover-dev/drover/apis/vsphere/v1alpha1"
)

func TestTheAnnotationSetsThePollInterval(t *testing.T) {
	for name, c := range map[string]struct {
		annotation string
		want       time.Duration
	}{
		"without it, the provider's counts":     {"", 5 * time.Minute},
		"a shorter one counts":                  {"1m", time.Minute},
		"a longer one counts":                   {"1h", time.Hour},
		"one below the minimum is the minimum":  {"1ns", MinPollInterval},
		"what is no duration counts as nothing": {"often", 5 * time.Minute},
		"a negative one counts as nothing":      {"-1m", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, kube, vm := polled(t)
			if c.annotation != "" {
				xpmeta.AddAnnotations(vm, map[string]string{xpmeta.AnnotationKeyPollInterval: c.annotation})
			}
			if err := kube.Create(t.Context(), vm); err != nil {
				t.Fatal(err)
			}
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(vm)})
			if err != nil || got.RequeueAfter != c.want {
				t.Errorf("%+v, error %v, want another reconcile after %s", got, err, c.want)
			}
		})
	}
}

func TestARequestedReconcileIsRecordedInTheStatusWithoutAnEvent(t *testing.T) {
	r, kube, vm := polled(t)
	xpmeta.SetReconcileRequest(vm, "now")
	if err := kube.Create(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(vm)
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if err := kube.Get(t.Context(), key, vm); err != nil {
		t.Fatal(err)
	}
	if vm.Status.LastHandledReconcileAt != "now" {
		t.Errorf("status.lastHandledReconcileAt is %q", vm.Status.LastHandledReconcileAt)
	}
	if len(*r.events) != 0 {
		t.Errorf("events %v", *r.events)
	}
}

type reconcilerOfOne struct {
	reconcile.Reconciler
	events *sink
}

// polled is a reconciler with the options of every Controller, and a VM that it finds as it should
// be and that is not created yet.
func polled(t *testing.T) (reconcilerOfOne, client.Client, *v1alpha1.VirtualMachine) {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n", UID: "uid"}}
	vm.Spec.ManagementPolicies = xpv2.ManagementPolicies{xpv2.ManagementActionAll}
	kube := fake.NewClientBuilder().WithScheme(s).WithStatusSubresource(vm).Build()
	events := &sink{}
	c := Controller[*v1alpha1.VirtualMachine]{
		Kind:     v1alpha1.VirtualMachineGroupVersionKind,
		Recorder: NewRecorder(events),
		Connector: managed.TypedExternalConnectorFn[*v1alpha1.VirtualMachine](func(context.Context, *v1alpha1.VirtualMachine) (managed.TypedExternalClient[*v1alpha1.VirtualMachine], error) {
			return upToDate{}, nil
		}),
	}
	o := controller.Options{Logger: logging.NewNopLogger(), PollInterval: 5 * time.Minute, Features: &feature.Flags{}}
	o.Features.Enable(feature.EnableBetaManagementPolicies)
	r := managed.NewReconciler(Quiet(&xpfake.Manager{Client: kube, Scheme: s}), resource.ManagedKind(c.Kind), c.options("vms", o)...)
	return reconcilerOfOne{Reconciler: r, events: events}, kube, vm
}

// upToDate is a cloud in which the VM is as it should be.
type upToDate struct {
	managed.TypedExternalClient[*v1alpha1.VirtualMachine]
}

func (upToDate) Observe(context.Context, *v1alpha1.VirtualMachine) (managed.ExternalObservation, error) {
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

func (upToDate) Disconnect(context.Context) error { return nil }
