package conformance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// SlowAccount is an Account whose provider looks again after a poll of 10 minutes.
type SlowAccount interface {
	Account
	// SlowDown has VMs take so long to start, and the provider ignore the annotation poll-interval.
	SlowDown(t *testing.T, start time.Duration)
}

// Times of the case SlowCloud: a VM starts long after its provider looked for the first time, and
// the Machine runs long before the next poll.
const (
	slowStart = 25 * time.Second
	runsAfter = 3 * time.Minute
)

// slowCloud has a VM that starts later than its provider looks.
func slowCloud(t *testing.T, c Cloud, _ *life) {
	w := newWorld(t, c)
	account, ok := w.account.(SlowAccount)
	if !ok {
		t.Fatalf("the VMs of %s cannot be slow", c.Provider())
	}
	account.SlowDown(t, slowStart)
	began := time.Now()
	m := w.lone(t, "slow")
	w.await(t, m, func(m *machinev1alpha1.Machine) string {
		if s := isRunning(m); s != "" {
			return s
		}
		for _, c := range m.Status.Conditions {
			if c.Type == machinev1alpha1.ConditionInfrastructureReady && c.Status == metav1.ConditionTrue {
				return ""
			}
		}
		return "its VM is not said to run"
	})
	if after := time.Since(began); after > runsAfter {
		t.Errorf("the Machine runs after %s, and shall within %s", after.Round(time.Second), runsAfter)
	} else {
		t.Logf("runs after %s, with a VM that took %s and a poll of 10m", after.Round(time.Second), slowStart)
	}
	w.end(t, m)
}
