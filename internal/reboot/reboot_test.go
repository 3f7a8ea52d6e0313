package reboot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A world is an API server and a cloud that fail when they are told to.
type world struct {
	client.Client
	annotations map[string]string
	refuses     error // of the API server
	cloud       error
	// done is what happened, in its order.
	done []string
}

var errThrottled = errors.New("slow down")

func (w *world) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	if w.refuses != nil {
		return w.refuses
	}
	w.annotations = maps.Clone(o.GetAnnotations())
	w.done = append(w.done, "recorded "+o.GetAnnotations()[machinev1alpha1.AnnotationRebooted])
	return nil
}

// carryOut runs a provider that knows only the API server.
func (w *world) carryOut(t *testing.T, deleted bool) (message string, err error) {
	t.Helper()
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(w.annotations)}}
	if deleted {
		now := metav1.Now()
		vm.DeletionTimestamp = &now
	}
	err = CarryOut(t.Context(), vm, w, func(_ context.Context, mode machinev1alpha1.RebootMode) error {
		w.done = append(w.done, "rebooted "+string(mode))
		return w.cloud
	}, func(err error) bool { return errors.Is(err, errThrottled) })
	return vm.GetCondition(machinev1alpha1.ConditionRebooted).Message, err
}

func (w *world) request(value string) {
	w.annotations = map[string]string{machinev1alpha1.AnnotationReboot: value, machinev1alpha1.AnnotationRebooted: w.annotations[machinev1alpha1.AnnotationRebooted]}
}

func TestARequest(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(t *testing.T, w *world)
		want []string
	}{
		"IsRecordedBeforeItIsCarriedOut": {func(t *testing.T, w *world) {
			w.request("Soft/one")
			if message, err := w.carryOut(t, false); err != nil || message != "Soft/one: the cloud accepted the request" {
				t.Errorf("%q, %v", message, err)
			}
		}, []string{"recorded Soft/one", "rebooted Soft"}},
		"IsCarriedOutOnceWhoeverLooksAgain": {func(t *testing.T, w *world) {
			w.request("Hard/one")
			for range 3 {
				if _, err := w.carryOut(t, false); err != nil {
					t.Error(err)
				}
			}
		}, []string{"recorded Hard/one", "rebooted Hard"}},
		"OfAnotherModeIsAnother": {func(t *testing.T, w *world) {
			for _, request := range []string{"Soft/one", "Hard/one"} {
				w.request(request)
				if _, err := w.carryOut(t, false); err != nil {
					t.Error(err)
				}
			}
		}, []string{"recorded Soft/one", "rebooted Soft", "recorded Hard/one", "rebooted Hard"}},
		"IsNotCarriedOutWithoutItsRecord": {func(t *testing.T, w *world) {
			w.request("Soft/one")
			w.refuses = errors.New("connection refused")
			if _, err := w.carryOut(t, false); !errors.Is(err, w.refuses) {
				t.Error(err)
			}
		}, nil},
		"ThatTheCloudRefusesIsNotRepeated": {func(t *testing.T, w *world) {
			w.request("Soft/one")
			w.cloud = errors.New("no guest tools")
			for _, want := range []string{"Soft/one: no guest tools", ""} {
				if message, err := w.carryOut(t, false); err != nil || message != want {
					t.Errorf("%q, %v", message, err)
				}
			}
		}, []string{"recorded Soft/one", "rebooted Soft"}},
		"ThatHadNoEffectIsRepeated": {func(t *testing.T, w *world) {
			w.request("Soft/one")
			w.cloud = errThrottled
			if _, err := w.carryOut(t, false); !errors.Is(err, errThrottled) {
				t.Error(err)
			}
			w.cloud = nil
			if _, err := w.carryOut(t, false); err != nil {
				t.Error(err)
			}
		}, []string{"recorded Soft/one", "rebooted Soft", "recorded ", "recorded Soft/one", "rebooted Soft"}},
		"OfAVMThatIsBeingDeletedIsNotCarriedOut": {func(t *testing.T, w *world) {
			w.request("Soft/one")
			if _, err := w.carryOut(t, true); err != nil {
				t.Error(err)
			}
		}, nil},
		"ThatIsNoneIsNotCarriedOut": {func(t *testing.T, w *world) {
			for _, request := range []string{"", "one", "Soft/", "Warm/one", "Soft/two words"} {
				w.request(request)
				if _, err := w.carryOut(t, false); err != nil {
					t.Error(err)
				}
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			tc.run(t, w)
			if !slices.Equal(w.done, tc.want) {
				t.Errorf("%q, want %q", w.done, tc.want)
			}
		})
	}
}

// TestARefusalThatPassesIsADelay has the condition of a request that is repeated.
func TestARefusalThatPassesIsADelay(t *testing.T) {
	w := &world{cloud: Busy(errors.New("locked by a backup"))}
	w.request("Soft/one")
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(w.annotations)}}
	err := CarryOut(t.Context(), vm, w, func(context.Context, machinev1alpha1.RebootMode) error { return w.cloud }, IsBusy)
	if !IsBusy(err) || IsBusy(errors.New("locked by a backup")) {
		t.Error(err)
	}
	c := vm.GetCondition(machinev1alpha1.ConditionRebooted)
	if c.Status != corev1.ConditionUnknown || c.Reason != machinev1alpha1.ReasonRebootDelayed || c.Message != "Soft/one: locked by a backup" {
		t.Errorf("%+v", c)
	}
	if _, ok := Requested(vm); !ok {
		t.Error("the request is not repeated")
	}
}

// TestAStaleProviderRebootsNothing has a provider whose cache is older than the record of the process before it, as after a
// SIGKILL between the record and the result, or than a later request of the Machine.
func TestAStaleProviderRebootsNothing(t *testing.T) {
	for name, later := range map[string]map[string]string{
		"ThanItsOwnRecord":    {machinev1alpha1.AnnotationRebooted: "Soft/one"},
		"ThanTheNextRequest":  {machinev1alpha1.AnnotationReboot: "Hard/one", machinev1alpha1.AnnotationRebooted: "Hard/one"},
		"ThanSomethingElse":   {"example.org/other": "value"},
		"ThanTheEndOfRequest": {machinev1alpha1.AnnotationReboot: ""},
	} {
		t.Run(name, func(t *testing.T) {
			kube := newKube(t, "Soft/one")
			stale := kube.read(t)
			kube.annotate(t, later)
			want := kube.read(t).GetAnnotations()
			calls := 0
			err := CarryOut(t.Context(), stale, kube, func(context.Context, machinev1alpha1.RebootMode) error {
				calls++
				return nil
			}, IsBusy)
			if calls > 0 || !kerrors.IsConflict(err) || !maps.Equal(kube.read(t).GetAnnotations(), want) {
				t.Errorf("the cloud was called %d times, with the error %v and the annotations %v, want %v", calls, err, kube.read(t).GetAnnotations(), want)
			}
		})
	}
}

// TestARecordIsUndoneAlthoughTheVMResourceHasChanged has a write of another client during the call of the cloud.
func TestARecordIsUndoneAlthoughTheVMResourceHasChanged(t *testing.T) {
	kube := newKube(t, "Soft/two")
	kube.annotate(t, map[string]string{machinev1alpha1.AnnotationRebooted: "Hard/one"})
	err := CarryOut(t.Context(), kube.read(t), kube, func(context.Context, machinev1alpha1.RebootMode) error {
		kube.annotate(t, map[string]string{machinev1alpha1.AnnotationReboot: "Hard/two"})
		return errThrottled
	}, func(err error) bool { return errors.Is(err, errThrottled) })
	got := kube.read(t).GetAnnotations()
	if !errors.Is(err, errThrottled) || got[machinev1alpha1.AnnotationRebooted] != "Hard/one" || got[machinev1alpha1.AnnotationReboot] != "Hard/two" {
		t.Errorf("%v, %v", err, got)
	}
}

// A kube is an API server with one VM resource.
type kube struct{ client.Client }

func newKube(t *testing.T, request string) kube {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.SchemeBuilder.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	vm := &v1alpha1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "vm", Annotations: map[string]string{machinev1alpha1.AnnotationReboot: request}}}
	return kube{fake.NewClientBuilder().WithScheme(s).WithObjects(vm).Build()}
}

func (k kube) read(t *testing.T) *v1alpha1.VirtualMachine {
	t.Helper()
	vm := &v1alpha1.VirtualMachine{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "vm"}, vm); err != nil {
		t.Fatal(err)
	}
	return vm
}

func (k kube) annotate(t *testing.T, annotations map[string]string) {
	t.Helper()
	vm := k.read(t)
	meta.AddAnnotations(vm, annotations)
	if err := k.Update(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
}
