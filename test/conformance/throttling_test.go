package conformance

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fn "github.com/drover-dev/drover/apis/fn/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/patience"
)

// ThrottlingAccount is an Account whose cloud may refuse every call.
type ThrottlingAccount interface {
	Account
	// Throttle makes the cloud refuse all calls for a Machine without a VM, until end is called.
	// The function calls returns how many there were.
	Throttle(t *testing.T, machine string) (calls func() int, end func())
}

// Limits of the case Throttling: how long the cloud refuses calls at least, and how many calls are allowed
// meanwhile: firstCalls, before the pauses are as long as they get, and then a call every callPeriod. On a busy
// computer, the Machine takes longer to report the error, and the cloud refuses calls for longer.
const (
	throttledFor = 75 * time.Second
	firstCalls   = 20
	callPeriod   = 3 * time.Second
)

// throttling tests a cloud that refuses every call for longer than any pause that a cloud requests.
func throttling(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(ThrottlingAccount)
	if !ok {
		t.Fatalf("%s has neither a limit nor a reason to have none", c.Provider())
	}
	const name = "lone"
	calls, end := account.Throttle(t, name)
	began := time.Now()
	m := w.lone(t, name)
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		if op := m.Status.LastOperation; op == nil || op.ErrorCode != string(fn.ErrorThrottled) {
			return "lastOperation has another class than Throttled"
		}
		return ""
	})
	written := w.generations(t)
	patience.Throughout(t, patience.After(throttledFor), func(ctx context.Context) string {
		if err := w.Client.Get(ctx, key(m), m); err != nil || m.Status.Phase == machinev1alpha1.MachineFailed {
			return fmt.Sprintf("the Machine is not held: %s, %v", m.Status.Phase, err)
		}
		return w.noVMs(ctx)
	})
	n, refused := calls(), time.Since(began)
	t.Logf("%d calls within %s: %s", n, refused.Round(time.Second), m.Status.LastOperation.Description)
	if limit := firstCalls + int(refused/callPeriod); n > limit {
		t.Errorf("%d calls within %s, want %d at most", n, refused.Round(time.Second), limit)
	}
	if now := w.generations(t); now != written {
		t.Errorf("the VM resource was written again: %s, was %s", now, written)
	}
	end()
	w.await(t, m, isRunning)
	w.vm(t, m)
	if vms, err := w.account.VMs(t.Context()); err != nil || len(vms) != 1 {
		t.Errorf("the cloud has %+v, want one VM: %v", vms, err)
	}
	w.end(t, m)
}

// generations returns the generations of the VM resources.
func (w *world) generations(t *testing.T) string {
	t.Helper()
	l := &unstructured.UnstructuredList{}
	kind := w.account.VMKind()
	l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	must(t, w.Client.List(t.Context(), l, client.InNamespace(w.Namespace)))
	out := ""
	for _, o := range l.Items {
		out += fmt.Sprintf("%s %d;", o.GetName(), o.GetGeneration())
	}
	return out
}
