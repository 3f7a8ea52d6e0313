package forecast_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/kubectl/forecast"
	"github.com/drover-dev/drover/internal/plan"
)

func TestAChangeOfHealthListsConditionsAndActions(t *testing.T) {
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	before := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: "default", UID: "md"}}
	before.Spec.Template.Spec.Health = machinev1alpha1.Health{Timeout: *minutes(10), Conditions: []machinev1alpha1.HealthCondition{{Type: "DiskPressure", Status: "True"}}}
	after := before.DeepCopy()
	after.Spec.Template.Spec.Health.Profiles = []string{"devices-v1", "acme-v1"}
	after.Spec.Template.Spec.Health.Conditions = append(after.Spec.Template.Spec.Health.Conditions, machinev1alpha1.HealthCondition{Type: "A", Status: "True", Action: machinev1alpha1.HealthReport})
	profiles := plan.HealthProfiles{Found: []*machinev1alpha1.HealthProfile{healthprofile.BuiltIn("devices-v1")}, Missing: []string{"acme-v1"}}
	f := forecast.Of(time.Now(), forecast.Input{Before: before, After: after, Profiles: profiles})
	want := []forecast.HealthRule{
		{Condition: "DiskPressure", Status: "True", Action: machinev1alpha1.HealthReplace, After: minutes(10)},
		{Condition: "A", Status: "True", Action: machinev1alpha1.HealthReport},
		{Condition: "DevicesMissing", Status: "True", Action: machinev1alpha1.HealthActionReboot, After: minutes(5), Profile: "devices-v1"},
	}
	if diff := cmp.Diff(want, f.Health); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if n := len(f.Blocks); n == 0 || f.Blocks[n-1].Reason != machinev1alpha1.ReasonHealthProfileNotFound || f.Blocks[n-1].All {
		t.Errorf("blocks: %+v", f.Blocks)
	}
	if f = forecast.Of(time.Now(), forecast.Input{Before: after, After: after, Profiles: profiles}); len(f.Health) > 0 {
		t.Errorf("a change of something else lists %+v", f.Health)
	}
}
