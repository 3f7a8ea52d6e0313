package hcloud

import (
	"slices"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/drover-dev/drover/apis/hcloud/v1alpha1"
	fakecloud "github.com/drover-dev/drover/test/fakes/hcloud"
)

// untilRebooted waits for the answer of the cloud to a request, which has no secret.
func (w *world) untilRebooted(vm *v1alpha1.VirtualMachine, request string, status corev1.ConditionStatus, text string) {
	w.t.Helper()
	noSecret(w.t, w.UntilRebooted(soon, vm, request, status, text))
}

// idOf returns the ID of the server with a name.
func (w *world) idOf(name string) int64 { return w.cloud.Servers("ours")[name].ID }

// wantReboots fails unless these reboots of the server a happened, and no others.
func (w *world) wantReboots(want ...string) {
	w.t.Helper()
	if got := w.cloud.Reboots(w.idOf("a")); !slices.Equal(got, want) {
		w.t.Errorf("reboots %q, want %q", got, want)
	}
}

func TestARebootIsRequestedOncePerRequest(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 3 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		var want []string
		for _, request := range []string{"Soft/one", "Hard/one", "Soft/two", "Hard/two"} {
			w.RequestReboot(vm, request)
			w.untilRebooted(vm, request, corev1.ConditionTrue, "accepted")
			want = append(want, request[:4])
			w.wantReboots(want...)
			w.Restart()
			time.Sleep(5 * time.Minute)
			w.wantReboots(want...)
			w.WantSound(vm)
		}
		if warnings := w.Warnings(); len(warnings) > 0 || w.posts() != 1 {
			t.Errorf("warnings %q, %d servers were made", warnings, w.posts())
		}
		w.Delete(vm)
		w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
	})
}

// TestAServerThatIsOffIsStartedByAReboot has both modes: a request by ACPI would not reach the server.
func TestAServerThatIsOffIsStartedByAReboot(t *testing.T) {
	for _, request := range []string{"Soft/one", "Hard/one"} {
		t.Run(request, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.PowerOff(w.idOf("a"))
				w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonUnavailable)
				w.RequestReboot(vm, request)
				w.untilRebooted(vm, request, corev1.ConditionTrue, "accepted")
				w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.wantReboots(fakecloud.Hard)
			})
		})
	}
}

// TestAServerThatIsLockedIsRebootedWhenItsActionEnds requests a reset while the server is locked by the last reboot.
func TestAServerThatIsLockedIsRebootedWhenItsActionEnds(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 8 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		for _, request := range []string{"Soft/one", "Hard/one"} {
			w.RequestReboot(vm, request)
			w.untilRebooted(vm, request, corev1.ConditionTrue, "accepted")
		}
		w.wantReboots(fakecloud.Soft, fakecloud.Hard)
		if calls, _ := w.cloud.Calls(); calls[reset] < 2 {
			t.Errorf("%d resets were requested: the server was not locked", calls[reset])
		}
	})
}

// TestARebootOfAServerThatIsLockedIsRepeatedUntilTheLockEnds has the refusals during an action of the server.
func TestARebootOfAServerThatIsLockedIsRepeatedUntilTheLockEnds(t *testing.T) {
	for name, f := range map[string]fakecloud.Fault{
		"Locked":   {Status: 423, Code: "locked", Message: "server is locked"},
		"Conflict": {Status: 409, Code: "conflict", Message: "the resource was changed during the request"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				f.Call = acpi
				w.cloud.Break(f)
				w.RequestReboot(vm, "Soft/one")
				w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionUnknown, f.Message)
				time.Sleep(4 * time.Minute)
				w.Restart() // As a process that is killed between two requests.
				w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionUnknown, f.Message)
				w.WantSound(vm)
				w.wantReboots()
				if calls, _ := w.cloud.Calls(); calls[acpi] > 30 {
					t.Errorf("%d requests in 4 minutes", calls[acpi])
				}
				w.cloud.Mend()
				w.UntilRebooted(15*time.Second, vm, "Soft/one", corev1.ConditionTrue, "accepted")
				time.Sleep(time.Hour)
				w.wantReboots(fakecloud.Soft)
				if warnings := w.Warnings(); len(warnings) > 0 {
					t.Errorf("warnings %q", warnings)
				}
			})
		})
	}
}

// TestARequestThatIsWithdrawnIsNotRepeated withdraws the request while the server is locked, as a Machine does when its
// reboot failed.
func TestARequestThatIsWithdrawnIsNotRepeated(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: acpi, Status: 423, Code: "locked", Message: "server is locked"})
		w.RequestReboot(vm, "Soft/one")
		w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionUnknown, "server is locked")
		w.RequestReboot(vm, "")
		w.cloud.Mend()
		time.Sleep(time.Hour)
		w.wantReboots()
		w.WantSound(vm)
	})
}

const (
	acpi  = "POST /servers/{id}/actions/reboot"
	reset = "POST /servers/{id}/actions/reset"
)

func TestARefusalOfASoftRebootIsReportedOnce(t *testing.T) {
	for name, f := range map[string]fakecloud.Fault{
		"TheTokenMayOnlyRead": {Status: 403, Code: "token_readonly", Message: "token is only allowed to perform GET requests"},
		"TheBackendFails":     {Status: 503, Code: "service_error", Message: "unavailable"},
		"TheGatewayGivesUp":   {Status: 504, Code: "timeout", Message: "the request could not be answered in time"},
		"TheConnectionIsCut":  {Refused: true, Message: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				f.Call = acpi
				w.cloud.Break(f)
				w.RequestReboot(vm, "Soft/one")
				w.untilRebooted(vm, "Soft/one", corev1.ConditionFalse, f.Message)
				w.cloud.Mend()
				w.Restart()
				time.Sleep(10 * time.Minute)
				w.wantReboots()
				w.WantSound(vm)
				w.RequestReboot(vm, "Hard/one")
				w.untilRebooted(vm, "Hard/one", corev1.ConditionTrue, "accepted")
				w.wantReboots(fakecloud.Hard)
			})
		})
	}
}

// TestALostAnswerRebootsNoServerTwice loses the response to a reset, which hcloud-go repeats by default.
func TestALostAnswerRebootsNoServerTwice(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: reset, Lost: true, Times: 1})
		w.RequestReboot(vm, "Hard/one")
		w.untilRebooted(vm, "Hard/one", corev1.ConditionFalse, "EOF")
		w.Restart()
		time.Sleep(time.Hour)
		w.wantReboots(fakecloud.Hard)
		w.WantSound(vm)
	})
}

// TestAGatewayThatGivesUpRebootsNoServerTwice has the responses that hcloud-go repeats by default, although the call may
// have had an effect.
func TestAGatewayThatGivesUpRebootsNoServerTwice(t *testing.T) {
	for code, status := range map[string]int{"timeout": 504, "bad_gateway": 502} {
		t.Run(code, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.Break(fakecloud.Fault{Call: reset, Status: status, Code: code, Message: "the backend gave no answer"})
				w.RequestReboot(vm, "Hard/one")
				w.untilRebooted(vm, "Hard/one", corev1.ConditionFalse, "gave no answer")
				if calls, _ := w.cloud.Calls(); calls[reset] != 1 {
					t.Errorf("the reset was requested %d times", calls[reset])
				}
			})
		})
	}
}

func TestAThrottledRebootIsRequestedOnce(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: reset, Times: 3, Status: 429, Code: "rate_limit_exceeded", Message: "limit reached", RetryAfter: "2"})
		w.RequestReboot(vm, "Hard/one")
		w.untilRebooted(vm, "Hard/one", corev1.ConditionTrue, "accepted")
		time.Sleep(time.Hour)
		w.wantReboots(fakecloud.Hard)
	})
}

// TestAServerIsReadySoonAfterItsReset resets a server that has run for hours: it is "starting" when it is observed next.
func TestAServerIsReadySoonAfterItsReset(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		time.Sleep(3*time.Hour + 7*time.Second)
		w.RequestReboot(vm, "Hard/one")
		w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonCreating)
		if took := w.Until(soon, "it is Ready", func() bool { w.Get(vm); return vm.GetCondition(xpv2.TypeReady).Reason == xpv2.ReasonAvailable }); took > 10*time.Second {
			t.Errorf("Ready %s after the server was starting, which took it 5s", took)
		}
	})
}
