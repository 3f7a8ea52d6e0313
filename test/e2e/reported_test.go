package e2e

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/test/kit"
)

var measureReports = flag.Bool("measure-reports", false, "print how long after each fault kubectl drover status names its cause and its cure")

// A report measures how long it takes from a fault until kubectl drover status names its cause and its cure. It is printed, and
// no test judges it: a computer may be slow.
type report struct {
	cancel context.CancelFunc
	// found has the time of the first complete report.
	found chan time.Time
}

// begins has the times of the faults, by the namespace of the fleet.
var begins sync.Map

// watchReport asks for the status until it is complete. The fault begins now, or when awaitSound returns.
func watchReport(f kit.Fleet, d diagnosis) *report {
	if !*measureReports {
		return nil
	}
	begins.Store(f.Namespace, time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	r := &report{cancel: cancel, found: make(chan time.Time, 1)}
	go func() {
		defer close(r.found)
		for ctx.Err() == nil {
			at := time.Now()
			if out, _ := runPlugin(ctx, f, "status", "md", "workers"); d.missing(out) == "" {
				r.found <- at
				return
			}
		}
	}()
	return r
}

// done prints the result.
func (r *report) done(t *testing.T, f kit.Fleet, fault string) {
	t.Helper()
	if r == nil {
		return
	}
	found, ok := <-r.found
	r.cancel()
	if !ok {
		return
	}
	began, _ := begins.Load(f.Namespace)
	t.Logf("%s: named after %.0f s", fault, found.Sub(began.(time.Time)).Seconds())
}

// awaitSound waits until a MachineDeployment is complete. Its fault begins afterwards.
func awaitSound(t *testing.T, f kit.Fleet, md *machinev1alpha1.MachineDeployment) {
	t.Helper()
	f.AwaitDeployment(t, md.Name)
	begins.Store(f.Namespace, time.Now())
}
