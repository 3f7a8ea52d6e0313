package set

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/aging"
)

func aged(order machinev1alpha1.RemediationOrder, replace string) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Spec.Aging = &machinev1alpha1.MachineSetAging{MaxAge: metav1.Duration{Duration: 10 * time.Hour}, Replace: replace, Order: order}
	}
}

// ofAge has a Node, a VM and a UID.
func ofAge(d time.Duration) machineOption {
	return func(m *Machine) {
		m.UID = types.UID("uid-" + m.Name)
		m.CreationTimestamp = metav1.NewTime(now.Add(-d))
		m.Status.ProviderID, m.Status.NodeRef = "id-"+m.Name, &machinev1alpha1.NodeReference{Name: "node-" + m.Name}
	}
}

func TestASetReplacesTheMachineThatIsNamedIfItIsDue(t *testing.T) {
	old, young := ofAge(11*time.Hour), ofAge(time.Hour)
	for name, tc := range map[string]struct {
		options  []setOption
		machines []Machine
		// want is the Machine that is paired or deleted.
		paired, dropped string
	}{
		"the new one is first":                     {[]setOption{aged(machinev1alpha1.CreateFirst, "a")}, []Machine{machine("a", running, old), machine("b", running, old)}, "a", ""},
		"the old one is deleted first":             {[]setOption{aged(machinev1alpha1.DeleteFirst, "b")}, []Machine{machine("a", running, old), machine("b", running, old)}, "", "b"},
		"none that is not named":                   {[]setOption{aged(machinev1alpha1.DeleteFirst, "")}, []Machine{machine("a", running, old), machine("b", running, old)}, "", ""},
		"none that is not there":                   {[]setOption{aged(machinev1alpha1.DeleteFirst, "z")}, []Machine{machine("a", running, old), machine("b", running, old)}, "", ""},
		"none that is not due":                     {[]setOption{aged(machinev1alpha1.DeleteFirst, "a")}, []Machine{machine("a", running, young), machine("b", running, old)}, "", ""},
		"none while another one is not available":  {[]setOption{aged(machinev1alpha1.DeleteFirst, "a")}, []Machine{machine("a", running, old), machine("b", joining, young)}, "", ""},
		"none while another one is being deleted":  {[]setOption{aged(machinev1alpha1.CreateFirst, "a")}, []Machine{machine("a", running, old), machine("b", running, old), machine("c", running, old, terminating)}, "", ""},
		"none that is marked for a scale-down":     {[]setOption{aged(machinev1alpha1.DeleteFirst, "a")}, []Machine{machine("a", running, old, annotated(machinev1alpha1.AnnotationDeleteMachine, "true")), machine("b", running, old)}, "", ""},
		"none that is preserved":                   {[]setOption{aged(machinev1alpha1.DeleteFirst, "a")}, []Machine{machine("a", running, old, annotated(machinev1alpha1.AnnotationPreserve, machinev1alpha1.PreserveNow)), machine("b", running, old)}, "", ""},
		"none by a set that creates no Machine":    {[]setOption{aged(machinev1alpha1.DeleteFirst, "a"), func(s *machinev1alpha1.MachineSet) { s.Spec.Creation = machinev1alpha1.CreationDisabled }}, []Machine{machine("a", running, old), machine("b", running, old)}, "", ""},
		"none while there are fewer than replicas": {[]setOption{aged(machinev1alpha1.DeleteFirst, "a")}, []Machine{machine("a", running, old)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(2, tc.options...), Machines: tc.machines})
			paired := ""
			for _, r := range d.Status.Replacing {
				paired += r.Machine
			}
			if dropped := strings.Join(d.Status.Dropping, ","); paired != tc.paired || dropped != tc.dropped {
				t.Errorf("paired %q and dropped %q, want %q and %q", paired, dropped, tc.paired, tc.dropped)
			}
			if tc.dropped != "" && (len(d.Status.Replacements) != 1 || d.Status.Replacements[0].Reason != machinev1alpha1.ReplacedAged) {
				t.Errorf("replacements %+v", d.Status.Replacements)
			}
		})
	}
}

// TestAReplacementByAgeEndsAsItBegan: the name is gone, because a window closed.
func TestAReplacementByAgeEndsAsItBegan(t *testing.T) {
	replacing := func(s *machinev1alpha1.MachineSet) {
		s.Status.Replacing = []machinev1alpha1.Replacement{{Machine: "a", By: "c"}}
		s.Status.Creating = nil
	}
	s := set(2, aged(machinev1alpha1.CreateFirst, ""), replacing)
	ms := []Machine{machine("a", running, ofAge(11*time.Hour)), machine("b", running, ofAge(time.Hour)), machine("c", running, ofAge(time.Minute))}
	if d := Plan(now, Observed{Set: s, Machines: ms}); !slices.Equal(d.Status.Dropping, []string{"a"}) {
		t.Errorf("dropped %v", d.Status.Dropping)
	}
	// During a rollout, no age is configured: the replacement is not needed any more.
	s.Spec.Aging = nil
	ms[2] = machine("c", joining, ofAge(time.Minute))
	if d := Plan(now, Observed{Set: s, Machines: ms}); !slices.Equal(d.Status.Dropping, []string{"c"}) || len(d.Status.Replacing) > 0 {
		t.Errorf("dropped %v, replacing %v", d.Status.Dropping, d.Status.Replacing)
	}
}

func TestTheNextMachineOfASetIsInItsStatus(t *testing.T) {
	a, b := machine("a", running, ofAge(time.Hour)), machine("b", running, ofAge(5*time.Hour))
	d := Plan(now, Observed{Set: set(2, aged(machinev1alpha1.CreateFirst, "")), Machines: []Machine{a, b}})
	if next := d.Status.Aging; next == nil || next.Machine != "b" || !next.DueTime.Time.Equal(aging.Due(b.Machine, 10*time.Hour)) {
		t.Errorf("the next is %+v", next)
	}
	if d := Plan(now, Observed{Set: set(2), Machines: []Machine{a, b}}); d.Status.Aging != nil {
		t.Errorf("the next without an age is %+v", d.Status.Aging)
	}
}
