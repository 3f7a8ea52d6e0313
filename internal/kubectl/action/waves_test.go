package action_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/action"
)

func TestAWaveIsPassed(t *testing.T) {
	p := &machinev1alpha1.RolloutPolicy{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}
	if _, err := action.PassWave(p, "dev"); err == nil || !strings.Contains(err.Error(), "provider-drover has not written the status of") {
		t.Errorf("without a status: %v", err)
	}
	p.Status.Waves = []machinev1alpha1.WaveStatus{{Name: "dev", ID: "dev@1767225600", State: machinev1alpha1.WaveFailed}, {Name: "prod", State: machinev1alpha1.WaveComplete}}
	c, err := action.PassWave(p, "dev")
	check(t, "a wave that failed", c, err, `{"metadata":{"annotations":{"machine.drover.dev/pass-wave":"dev@1767225600"}}}`, "")
	if c.Kind != "RolloutPolicy" || c.Name != "fleet" || c.Namespace != "" {
		t.Errorf("it changes %+v", c.Ref)
	}
	c, err = action.PassWave(p, "prod")
	check(t, "a complete one", c, err, "", "is Complete: there is nothing to let pass")
	c, err = action.PassWave(p, "stage")
	check(t, "one that is none", c, err, "", `has no wave "stage": it must be one of dev, prod`)
}
