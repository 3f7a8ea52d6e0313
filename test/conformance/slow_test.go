package conformance

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// SlowAccount is an Account whose provider has a poll interval of 10 minutes.
type SlowAccount interface {
	Account
	// SlowDown makes VMs take this long to start, and the provider ignore the annotation
	// poll-interval.
	SlowDown(t *testing.T, start time.Duration)
}

// slowStart is the time that a VM takes to start in the case SlowCloud: its provider observes it before that.
const slowStart = 25 * time.Second

// slowCloud tests a VM that starts after its provider first observed it. The Machine runs long before the next poll,
// for which the test does not wait.
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
	t.Logf("runs after %s, with a VM that took %s and a poll of 10m", time.Since(began).Round(time.Second), slowStart)
	w.end(t, m)
}
