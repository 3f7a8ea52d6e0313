package e2e

import (
	"flag"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
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
			if out, _ := runPlugin(t.Context(), f, "status", "md", "workers"); d.missing(out) == "" {
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
