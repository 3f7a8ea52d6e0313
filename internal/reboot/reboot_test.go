package reboot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drover-dev/drover/apis/local/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A world is an API server and a cloud that fail when they are told to.
type world struct {
	annotations map[string]string
	refuses     error // of the API server
	cloud       error
	// done is what happened, in its order.
	done []string
}

var errThrottled = errors.New("slow down")

func (w *world) UpdateCriticalAnnotations(_ context.Context, o client.Object) error {
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
