package healthprofile

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/schematest"
)

func TestBuiltInProfilesSatisfyTheirSchema(t *testing.T) {
	if len(Names()) < 7 {
		t.Errorf("profiles %q", Names())
	}
	for _, name := range Names() {
		p := BuiltIn(name)
		if p.Name != name || !strings.HasSuffix(name, "-v1") || p.Spec.Description == "" {
			t.Errorf("%s: name %q, description %q", name, p.Name, p.Spec.Description)
		}
		if u, err := url.Parse(p.Spec.Source); err != nil || u.Scheme != "https" {
			t.Errorf("%s: source %q: %v", name, p.Spec.Source, err)
		}
		for _, c := range p.Spec.Conditions {
			if c.Meaning == "" || c.Action == "" || c.Status == "" {
				t.Errorf("%s: %+v lacks its meaning, action or status", name, c)
			}
		}
		// Names of built-in profiles are reserved: a copy of a user has another name.
		copied := p.DeepCopy()
		copied.Name = "acme-" + name
		b, err := yaml.Marshal(copied)
		if err != nil {
			t.Fatal(err)
		}
		schematest.Check(t, "../../package/provider-drover/crds/machine.drover.dev_healthprofiles.yaml", string(b), "")
	}
}

func TestEntriesOfUsersComeBeforeProfiles(t *testing.T) {
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	profile := func(name string, conditions ...machinev1alpha1.HealthCondition) *machinev1alpha1.HealthProfile {
		p := &machinev1alpha1.HealthProfile{}
		p.Name = name
		for _, c := range conditions {
			p.Spec.Conditions = append(p.Spec.Conditions, machinev1alpha1.ProfileCondition{HealthCondition: c})
		}
		return p
	}
	const reboot, replace, report = machinev1alpha1.HealthActionReboot, machinev1alpha1.HealthReplace, machinev1alpha1.HealthReport
	h := machinev1alpha1.Health{Conditions: []machinev1alpha1.HealthCondition{
		{Type: "Open", Status: "True"},
		{Type: "Decided", Status: "True", Action: replace, Timeout: minutes(1)},
		{Type: "Half", Status: "True", Action: replace},
		{Type: "Reported", Status: "True", Timeout: minutes(3)},
		{Type: "Mine", Status: "True"},
	}}
	first := profile("first-v1",
		machinev1alpha1.HealthCondition{Type: "Open", Action: reboot, Timeout: minutes(5)},
		machinev1alpha1.HealthCondition{Type: "Decided", Action: reboot, Timeout: minutes(5)},
		machinev1alpha1.HealthCondition{Type: "Half", Action: reboot, Timeout: minutes(5)},
		machinev1alpha1.HealthCondition{Type: "Reported", Action: report},
		machinev1alpha1.HealthCondition{Type: "Open", Status: "False", Action: report},
	)
	second := profile("second-v1", machinev1alpha1.HealthCondition{Type: "Open", Action: replace}, machinev1alpha1.HealthCondition{Type: "Mine", Action: report})
	want := []Rule{
		{machinev1alpha1.HealthCondition{Type: "Open", Status: "True", Action: reboot, Timeout: minutes(5)}, "first-v1"},
		{machinev1alpha1.HealthCondition{Type: "Decided", Status: "True", Action: replace, Timeout: minutes(1)}, ""},
		{machinev1alpha1.HealthCondition{Type: "Half", Status: "True", Action: replace, Timeout: minutes(5)}, "first-v1"},
		{machinev1alpha1.HealthCondition{Type: "Reported", Status: "True", Action: report}, "first-v1"},
		{machinev1alpha1.HealthCondition{Type: "Mine", Status: "True", Action: report}, "second-v1"},
		{machinev1alpha1.HealthCondition{Type: "Open", Status: "False", Action: report}, "first-v1"},
	}
	before := h.DeepCopy()
	if diff := cmp.Diff(want, Rules(h, []*machinev1alpha1.HealthProfile{first, second})); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(*before, h); diff != "" {
		t.Errorf("the health was changed (-want +got):\n%s", diff)
	}
}

// TestTheDefaultsLeaveTheActionToProfiles shows that the conditions of the schema do not hide those of a profile.
func TestTheDefaultsLeaveTheActionToProfiles(t *testing.T) {
	h := Apply(machinev1alpha1.Health{Conditions: machinev1alpha1.DefaultHealthConditions()}, []*machinev1alpha1.HealthProfile{BuiltIn("node-problem-detector-v1")})
	for _, c := range h.Conditions {
		if c.Type == "KernelDeadlock" && c.Action != machinev1alpha1.HealthActionReboot {
			t.Errorf("%+v", c)
		}
	}
}
