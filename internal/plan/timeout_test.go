package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func TestATimeoutThatIsNotSetIsTheDefault(t *testing.T) {
	for set, want := range map[time.Duration]time.Duration{-1: 20 * time.Minute, 0: 20 * time.Minute, time.Second: time.Second} {
		m := &machinev1alpha1.Machine{}
		m.Spec.CreationTimeout = metav1.Duration{Duration: set}
		if got := CreationTimeout(m); got != want {
			t.Errorf("spec.creationTimeout %s: %s, want %s", set, got, want)
		}
	}
}

func TestADeadlineThatPassedIsNotAskedForAtOnce(t *testing.T) {
	if Soonest < 100*time.Millisecond || Soonest >= time.Second {
		t.Errorf("a step is called again after %s", Soonest)
	}
}
