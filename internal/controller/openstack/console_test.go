package openstack

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/apis/openstack/v1alpha1"
	"github.com/drover-dev/drover/internal/console"
	fakecloud "github.com/drover-dev/drover/test/fakes/openstack"
)

const action = "POST /compute/v2.1/servers/{id}/action"

func (w *world) reads() int {
	calls, _ := w.cloud.Calls()
	return calls[action]
}

// requestConsole requests the console as a Machine does that is late to join.
func (w *world) requestConsole(vm *v1alpha1.VirtualMachine, value string) {
	w.Change(vm, func() { meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReadConsole: value}) })
}

func (w *world) consoleOf(vm *v1alpha1.VirtualMachine) string {
	w.Get(vm)
	return ptr.Deref(vm.Status.AtProvider.Console, "")
}

func TestAConsoleIsReadOnDemand(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
		vm := w.running("a")
		id := meta.GetExternalName(vm)
		w.cloud.SetConsole(id, "\x1b[1mboot\x1b[0m\r\njoin 0123ab.0123456789abcdef\r\n")
		time.Sleep(time.Hour)
		if n, got := w.reads(), w.consoleOf(vm); n != 0 || got != "" {
			t.Errorf("of a VM that nobody asks about the console was read %d times: %q", n, got)
		}

		w.requestConsole(vm, "true")
		w.Until(soon, "the console is shown", func() bool { return w.consoleOf(vm) == "boot\njoin (token)\n" })
		w.cloud.SetConsole(id, strings.Repeat("a line of the console\n", 3000)+"last\n")
		w.Until(soon, "it is read again", func() bool { return strings.HasSuffix(w.consoleOf(vm), "last\n") })
		if got := w.consoleOf(vm); len(got) > console.MaxBytes {
			t.Errorf("%d bytes", len(got))
		}
		before := w.reads()
		time.Sleep(10 * time.Minute)
		if n := w.reads() - before; n < 9 || n > 11 {
			t.Errorf("it was read %d times in ten minutes", n)
		}

		w.requestConsole(vm, "false")
		w.Until(soon, "it is removed", func() bool { return w.consoleOf(vm) == "" })
		before = w.reads()
		time.Sleep(time.Hour)
		if n := w.reads() - before; n != 0 {
			t.Errorf("it was read %d times more", n)
		}
	})
}

// TestAConsoleThatCannotBeReadIsNoErrorOfTheInstance has the error responses of Nova.
func TestAConsoleThatCannotBeReadIsNoErrorOfTheInstance(t *testing.T) {
	for name, f := range map[string]fakecloud.Fault{
		"TheInstanceIsNotReady":  {Status: 409, Code: "conflictingRequest", Message: "Instance 4 is not ready"},
		"ThereIsNoConsole":       {Status: 404, Code: "itemNotFound", Message: "Guest does not have a console available."},
		"TheHypervisorHasNone":   {Status: 501, Code: "notImplemented", Message: "Unable to get console log, functionality not implemented"},
		"ThePolicyForbidsIt":     {Status: 403, Code: "forbidden", Message: "Policy doesn't allow os_compute_api:os-console-output to be performed."},
		"NovaHasAnUnexpected":    {Status: 500, Code: "computeFault", Message: "Unexpected API Error."},
		"TheConnectionIsRefused": {Refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakecloud.Options{Step: time.Second}, func(t *testing.T, w *world) {
				vm := w.running("a")
				w.cloud.SetConsole(meta.GetExternalName(vm), "boot\n")
				w.requestConsole(vm, "true")
				w.Until(soon, "the console is shown", func() bool { return w.consoleOf(vm) == "boot\n" })

				f.Call = action
				w.cloud.Break(f)
				before := w.reads()
				time.Sleep(10 * time.Minute)
				if w.reads() == before {
					t.Error("it was not tried again")
				}
				got := w.consoleOf(vm)
				if r, s := vm.GetCondition(xpv2.TypeReady), vm.GetCondition(xpv2.TypeSynced); r.Reason != xpv2.ReasonAvailable || s.Reason != xpv2.ReasonReconcileSuccess {
					t.Errorf("Ready: %+v, Synced: %+v", r, s)
				}
				if got != "boot\n" {
					t.Errorf("what was known is gone: %q", got)
				}
				w.cloud.Mend()
				w.cloud.SetConsole(meta.GetExternalName(vm), "boot\nlogin:\n")
				w.Until(soon, "it is read again", func() bool { return w.consoleOf(vm) == "boot\nlogin:\n" })
			})
		})
	}
}

func TestAnEmptyConsoleAndOneOfAVMThatIsDeleted(t *testing.T) {
	inWorld(t, fakecloud.Options{Step: 5 * time.Minute}, func(t *testing.T, w *world) {
		vm := instance("a")
		meta.AddAnnotations(vm, map[string]string{machinev1alpha1.AnnotationReadConsole: "true"})
		w.Add(vm)
		w.UntilCondition(10*time.Minute, vm, xpv2.TypeReady, xpv2.ReasonAvailable)
		time.Sleep(5 * time.Minute)
		if got := w.consoleOf(vm); got != "" || w.reads() == 0 {
			t.Errorf("an empty console is %q after %d reads", got, w.reads())
		}
		w.Delete(vm)
		time.Sleep(10 * time.Second)
		before := w.reads()
		time.Sleep(4 * time.Minute)
		if n := w.reads() - before; n != 0 {
			t.Errorf("of a VM that is being deleted it was read %d times", n)
		}
	})
}
