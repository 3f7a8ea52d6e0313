package e2e

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
	"github.com/drover-dev/drover/test/patience"
)

var measureReports = flag.Bool("measure-reports", false, "print how long after each fault kubectl drover status names its cause and its cure")

// begins has the times of the faults, by the namespace of the fleet.
var begins sync.Map

// watchReport asks for the status until it names the cause and the cure of a fault, and returns that time. The fault begins now,
// or when awaitSound returns. No test judges how long it took: a computer may be slow.
func watchReport(t *testing.T, f kit.Fleet, d diagnosis) <-chan time.Time {
	t.Helper()
	if !*measureReports {
		return nil
	}
	begins.Store(f.Namespace, time.Now())
	found := make(chan time.Time, 1)
	go func() {
		for t.Context().Err() == nil {
			at := time.Now()
			if out, _ := runPlugin(t.Context(), f, "status", "md", "workers"); d.missing(out) == "" || d.early != nil && lacks(out, d.early) == "" {
				found <- at
				return
			}
		}
	}()
	return found
}

// logReport prints how long it took until a fault was named.
func logReport(t *testing.T, f kit.Fleet, fault string, found <-chan time.Time) {
	t.Helper()
	if found == nil {
		return
	}
	began, _ := begins.Load(f.Namespace)
	t.Logf("%s: named after %.0f s", fault, (<-found).Sub(began.(time.Time)).Seconds())
}

// awaitSound waits until a MachineDeployment is complete. Its fault begins afterwards.
func awaitSound(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	f.AwaitDeployment(t, md.Name)
	begins.Store(f.Namespace, time.Now())
}

// awaitFailed waits until so many Machines are Failed. A fault that they all have begins then: until then their kubelets may only
// be slow.
func awaitFailed(t *testing.T, f kit.Fleet, want int) {
	t.Helper()
	patience.Eventually(t, func(ctx context.Context) string {
		machines, err := f.Machines(ctx)
		n := 0
		for _, m := range machines {
			if m.Status.Phase == machinev1alpha1.MachineFailed {
				n++
			}
		}
		if err != nil || n < want {
			return fmt.Sprintf("%d Machines are Failed, want %d: %v", n, want, err)
		}
		return ""
	}, f.Describe)
	begins.Store(f.Namespace, time.Now())
}
