package set

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

// TestOnlyAMissingProfileIsLookedForAgain also shows that advice, which stays until a user changes the template, costs no
// reconciles.
func TestOnlyAMissingProfileIsLookedForAgain(t *testing.T) {
	for reason, want := range map[string]time.Duration{
		machinev1alpha1.ReasonHealthProfileNotFound: shared.InFlight,
		machinev1alpha1.ReasonDevicesNotNamed:       shared.AtRest,
		machinev1alpha1.ReasonRebootNotSupported:    shared.AtRest,
	} {
		t.Run(reason, func(t *testing.T) {
			d := Plan(now, Observed{
				Set: set(1), Machines: []Machine{machine("a", running)},
				HealthProblems: []shared.Problem{{Reason: reason, Message: "why"}},
			})
			if d.CallAgain != want {
				t.Errorf("called again after %s, want %s", d.CallAgain, want)
			}
		})
	}
}

// TestATimeoutOfRebootsIsComparedWithTheBoots has Machines that took 4 and 12 minutes to boot.
func TestATimeoutOfRebootsIsComparedWithTheBoots(t *testing.T) {
	booted := func(name string, took time.Duration) Machine {
		m := machine(name, running)
		m.Status.Join = &machinev1alpha1.JoinStatus{Milestones: []machinev1alpha1.ReachedMilestone{
			{Name: machinev1alpha1.JoinVMRunning, Time: metav1.NewTime(now.Add(-time.Hour))},
			{Name: machinev1alpha1.JoinNodeReady, Time: metav1.NewTime(now.Add(-time.Hour + took))},
		}}
		return m
	}
	timeout := func(d time.Duration) *machinev1alpha1.HealthReboot {
		return &machinev1alpha1.HealthReboot{Timeout: metav1.Duration{Duration: d}}
	}
	const slow = "spec.template.spec.health.reboot.timeout: 5m0s is shorter than the 12m0s that Machine b took from its running VM to its Ready Node; each reboot has at least the time of the first boot of its Machine, 1h0m0s at most"
	for name, tc := range map[string]struct {
		reboot *machinev1alpha1.HealthReboot
		others []shared.Problem
		want   string
	}{
		"ShorterThanTheSlowest":      {reboot: timeout(5 * time.Minute), want: slow},
		"AsLongAsTheSlowest":         {reboot: timeout(12 * time.Minute)},
		"TheDefault":                 {},
		"TheDefaultOfAnotherSetting": {reboot: &machinev1alpha1.HealthReboot{Limit: 3}},
		"AfterOtherProblems": {
			reboot: timeout(5 * time.Minute), others: []shared.Problem{{Reason: machinev1alpha1.ReasonDevicesNotNamed, Message: "no device"}}, want: "no device; " + slow,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(4)
			s.Spec.Template.Spec.Health.Reboot = tc.reboot
			d := Plan(now, Observed{Set: s, HealthProblems: tc.others, Machines: []Machine{
				booted("a", 4*time.Minute), booted("b", 12*time.Minute), booted("c", 12*time.Minute), machine("d", running),
			}})
			i := slices.IndexFunc(d.Conditions, func(c shared.Condition) bool { return c.Type == machinev1alpha1.ConditionHealthValid })
			switch {
			case tc.want == "" && i >= 0:
				t.Errorf("%+v", d.Conditions[i])
			case tc.want != "" && (i < 0 || d.Conditions[i].Status != "False" || d.Conditions[i].Message != tc.want):
				t.Errorf("%+v, want %q", d.Conditions, tc.want)
			}
		})
	}
}
