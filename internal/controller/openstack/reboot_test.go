package openstack

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

// wantReboots fails unless Nova accepted these reboots of the server a, and no others.
func (w *world) wantReboots(t *testing.T, want ...string) {
	t.Helper()
	if got := w.cloud.Servers("ours")["a"].Reboots; !slices.Equal(got, want) {
		t.Errorf("reboots %q, want %q", got, want)
	}
}

func TestARebootIsRequestedOncePerRequest(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 3 * time.Minute}, func(t *testing.T, w *world) {
		vm := instance("a")
		w.Add(vm)
		w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		var want []string
		for _, request := range []string{"Soft/one", "Hard/one", "Soft/two", "Hard/two"} {
			w.RequestReboot(vm, request)
			w.UntilRebooted(soon, vm, request, corev1.ConditionTrue, "accepted")
			want = append(want, strings.ToUpper(request[:4]))
			w.wantReboots(t, want...)
			// Nova reports REBOOT or HARD_REBOOT, and a new process asks for nothing.
			w.Restart()
			for range 10 {
				w.WantSound(vm)
				time.Sleep(time.Minute)
			}
			w.wantReboots(t, want...)
		}
		if warnings := w.Warnings(); len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
		if w.posts() != 1 {
			t.Errorf("%d servers were made", w.posts())
		}
		w.Delete(vm)
		w.Until(10*time.Minute, "it is gone", func() bool { return w.Gone(vm) })
	})
}

// TestAHardRebootTakesThePlaceOfASoftOneThatHangs: the status REBOOT does not end.
func TestAHardRebootTakesThePlaceOfASoftOneThatHangs(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.RequestReboot(vm, "Soft/one")
		w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionTrue, "accepted")
		w.cloud.Hang(meta.GetExternalName(vm))
		time.Sleep(5 * time.Minute)
		if got := w.cloud.Servers("ours")["a"].Status; got != "REBOOT" {
			t.Fatalf("the server is %s", got)
		}
		w.WantSound(vm)
		w.RequestReboot(vm, "Hard/one")
		w.UntilRebooted(soon, vm, "Hard/one", corev1.ConditionTrue, "accepted")
		w.wantReboots(t, "SOFT", "HARD")
		time.Sleep(5 * time.Minute)
		if got := w.cloud.Servers("ours")["a"].Status; got != "ACTIVE" {
			t.Errorf("the server is %s", got)
		}
		w.WantSound(vm)
	})
}

func TestAStoppedServerIsStartedByAHardReboot(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.PowerOff(meta.GetExternalName(vm))
		w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonUnavailable)
		w.RequestReboot(vm, "Soft/one")
		w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionFalse, "while it is in vm_state stopped")
		w.RequestReboot(vm, "Hard/one")
		w.UntilRebooted(soon, vm, "Hard/one", corev1.ConditionTrue, "accepted")
		w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		w.wantReboots(t, "HARD")
	})
}

// TestARefusalOfASoftRebootIsReportedOnce has the error responses of Nova.
func TestARefusalOfASoftRebootIsReportedOnce(t *testing.T) {
	for name, f := range map[string]fakecloud.Fault{
		"TheInstanceIsLocked":    {Status: 409, Code: "conflictingRequest", Message: "Instance 4 is locked"},
		"ThePolicyForbidsIt":     {Status: 403, Code: "forbidden", Message: "Policy doesn't allow os_compute_api:servers:reboot to be performed."},
		"NovaHasAnUnexpected":    {Status: 500, Code: "computeFault", Message: "Unexpected API Error."},
		"TheConnectionIsRefused": {Refused: true, Message: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				f.Call = action
				w.cloud.Break(f)
				w.RequestReboot(vm, "Soft/one")
				noSecret(t, w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionFalse, f.Message))
				w.cloud.Mend()
				w.Restart()
				time.Sleep(10 * time.Minute)
				w.wantReboots(t)
				w.WantSound(vm)
				w.RequestReboot(vm, "Hard/one")
				w.UntilRebooted(soon, vm, "Hard/one", corev1.ConditionTrue, "accepted")
				w.wantReboots(t, "HARD")
			})
		})
	}
}

// TestARebootOfAServerWithATaskIsRepeatedUntilTheTaskEnds has the refusal of Nova during a snapshot.
func TestARebootOfAServerWithATaskIsRepeatedUntilTheTaskEnds(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: action, Status: 409, Code: "conflictingRequest", Message: "Cannot 'reboot' instance 4 while it is in task_state image_snapshot"})
		w.RequestReboot(vm, "Soft/one")
		noSecret(t, w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionUnknown, "while it is in task_state image_snapshot"))
		time.Sleep(4 * time.Minute)
		w.Restart()
		w.WantSound(vm)
		w.wantReboots(t)
		w.cloud.Mend()
		w.UntilRebooted(15*time.Second, vm, "Soft/one", corev1.ConditionTrue, "accepted")
		time.Sleep(time.Hour)
		w.wantReboots(t, "SOFT")
		if warnings := w.Warnings(); len(warnings) > 0 {
			t.Errorf("warnings %q", warnings)
		}
	})
}

// TestAnInstanceIsObservedInEachStatus has the statuses that the Terraform provider cannot read.
func TestAnInstanceIsObservedInEachStatus(t *testing.T) {
	for status, want := range map[string]xpv2.ConditionReason{
		"PASSWORD": xpv2.ReasonAvailable, "VERIFY_RESIZE": xpv2.ReasonAvailable,
		"SUSPENDED": xpv2.ReasonUnavailable, "RESCUE": xpv2.ReasonUnavailable, "REBUILD": xpv2.ReasonUnavailable, "RESIZE": xpv2.ReasonUnavailable, "REVERT_RESIZE": xpv2.ReasonUnavailable,
		"UNKNOWN": xpv2.ReasonUnavailable,
	} {
		t.Run(status, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.SetStatus(meta.GetExternalName(vm), status)
				time.Sleep(2 * time.Minute)
				w.Get(vm)
				ready, synced := vm.GetCondition(xpv2.TypeReady), vm.GetCondition(xpv2.TypeSynced)
				if ready.Reason != want || synced.Reason != xpv2.ReasonReconcileSuccess {
					t.Errorf("Ready: %+v, Synced: %+v", ready, synced)
				}
				if want == xpv2.ReasonUnavailable && !strings.Contains(ready.Message, "Nova reports "+status) {
					t.Errorf("the message does not have the status: %q", ready.Message)
				}
				w.cloud.SetStatus(meta.GetExternalName(vm), "")
				w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
				w.cloud.SetStatus(meta.GetExternalName(vm), status)
				w.Delete(vm)
				w.Until(10*time.Minute, "it is gone", func() bool { return w.Gone(vm) })
				if warnings := w.Warnings(); len(warnings) > 0 {
					t.Errorf("warnings %q", warnings)
				}
			})
		})
	}
}

// TestAnInstanceThatNovaStillShowsAfterItsDeletionIsGone: at a Nova that reclaims instances after a while, one that was deleted
// is SOFT_DELETED until then. Administrators see DELETED ones.
func TestAnInstanceThatNovaStillShowsAfterItsDeletionIsGone(t *testing.T) {
	for _, status := range []string{"SOFT_DELETED", "DELETED"} {
		t.Run(status, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.SetStatus(meta.GetExternalName(vm), status)
				w.UntilCondition(soon, vm, xpv2.TypeReady, machinev1alpha1.ReasonMissing)
				w.Delete(vm)
				w.Until(soon, "it is gone", func() bool { return w.Gone(vm) })
				if n := w.posts(); n != 1 {
					t.Errorf("%d servers were made", n)
				}
			})
		})
	}
}

// TestAnInstanceThatIsSuspendedIsRebootedHard by the rules of Nova. A rescued one cannot be rebooted at all.
func TestAnInstanceThatIsSuspendedIsRebootedHard(t *testing.T) {
	for status, want := range map[string]corev1.ConditionStatus{"SUSPENDED": corev1.ConditionTrue, "RESCUE": corev1.ConditionFalse} {
		t.Run(status, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.SetStatus(meta.GetExternalName(vm), status)
				w.RequestReboot(vm, "Soft/one")
				w.UntilRebooted(soon, vm, "Soft/one", corev1.ConditionFalse, "while it is in vm_state")
				w.RequestReboot(vm, "Hard/one")
				w.UntilRebooted(soon, vm, "Hard/one", want, "")
				if want == corev1.ConditionTrue {
					w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
					w.wantReboots(t, "HARD")
				}
			})
		})
	}
}

// TestALostAnswerRebootsNoServerTwice cuts the connection after Nova accepted the reboot.
func TestALostAnswerRebootsNoServerTwice(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: action, Lost: true, Times: 1})
		w.RequestReboot(vm, "Hard/one")
		w.UntilRebooted(soon, vm, "Hard/one", corev1.ConditionFalse, "EOF")
		w.Restart()
		time.Sleep(time.Hour)
		w.wantReboots(t, "HARD")
		w.WantSound(vm)
	})
}

// TestAThrottledRebootIsRequestedOnce refuses calls with the status 429.
func TestAThrottledRebootIsRequestedOnce(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		w.cloud.Break(fakecloud.Fault{Call: action, Times: 3, Status: 429, Code: "overLimit", Message: "This request was rate-limited.", RetryAfter: "2"})
		w.RequestReboot(vm, "Hard/one")
		w.UntilRebooted(soon, vm, "Hard/one", corev1.ConditionTrue, "accepted")
		time.Sleep(time.Hour)
		w.wantReboots(t, "HARD")
	})
}

func TestAServerIsShownWithAStatusThatCanBeRead(t *testing.T) {
	for name, tc := range map[string]struct{ given, want string }{
		"ASoftReboot":    {`{"server":{"id":"a","status":"REBOOT","flavor":{"vcpus":12345678901234567890}}}`, `{"server":{"flavor":{"vcpus":12345678901234567890},"id":"a","status":"ACTIVE"}}`},
		"AHardReboot":    {`{"server":{"status":"HARD_REBOOT"}}`, `{"server":{"status":"ACTIVE"}}`},
		"Suspended":      {`{"server":{"status":"SUSPENDED"}}`, `{"server":{"status":"SHUTOFF"}}`},
		"Unknown":        {`{"server":{"status":"UNKNOWN"}}`, `{"server":{"status":"SHUTOFF"}}`},
		"AnotherStatus":  {`{"server": {"status": "SHUTOFF"}}`, `{"server": {"status": "SHUTOFF"}}`},
		"NoStatus":       {`{"server":{}}`, `{"server":{}}`},
		"NoServer":       {`{"servers":[]}`, `{"servers":[]}`},
		"NoJSON":         {`<html>`, `<html>`},
		"ANameIsNoState": {`{"server":{"name":"REBOOT","status":"ERROR"}}`, `{"server":{"name":"REBOOT","status":"ERROR"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(asReadable([]byte(tc.given))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// TestAStoppedServerIsReadySoonAfterItsReboot reboots a server that is SHUTOFF when it is observed next.
func TestAStoppedServerIsReadySoonAfterItsReboot(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		time.Sleep(3*time.Hour + 7*time.Second)
		w.cloud.PowerOff(meta.GetExternalName(vm))
		w.UntilCondition(soon, vm, xpv2.TypeReady, xpv2.ReasonUnavailable)
		w.RequestReboot(vm, "Hard/one")
		if took := w.Until(soon, "it is Ready", func() bool { w.Get(vm); return vm.GetCondition(xpv2.TypeReady).Reason == xpv2.ReasonAvailable }); took > 10*time.Second {
			t.Errorf("Ready %s after the request, and the server started within 5s", took)
		}
	})
}
