package set

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan/group"
)

func groupOf(t *testing.T, s *machinev1alpha1.MachineSet, ms ...Machine) *machinev1alpha1.MachineGroup {
	t.Helper()
	g, err := Group(s, Plan(now, Observed{Set: s, Machines: ms}))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAMachineGroupHasTheDecisionCarriedOut(t *testing.T) {
	s := set(2, dropping("d"), func(s *machinev1alpha1.MachineSet) {
		s.Spec.NodeMarks.Annotations = map[string]string{"a": "b"}
	})
	// The plan lists the Machines to delete after the Machines that stay.
	g := groupOf(t, s, machine("a", running, marked, traced), machine("b", running, traced), machine("c", running, traced), machine("d", running, traced))

	want := &machinev1alpha1.MachineGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "machine.drover.dev/v1alpha1", Kind: "MachineGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "set"},
	}
	want.Spec.Delete = []string{"d"}
	want.Spec.NodeMarks = s.Spec.NodeMarks
	want.Spec.MatchLabels = map[string]string{"pool": "a", "app": "web"}
	same := g.Spec.Machines[0].Template
	for _, name := range []string{"a", "b", "c"} {
		want.Spec.Machines = append(want.Spec.Machines, machinev1alpha1.GroupMember{Name: name, Template: same})
	}
	want.Spec.Templates = g.Spec.Templates
	want.Spec.ResourceRefs = referencesTo("a", "b", "c", "d")
	if diff := cmp.Diff(want, g); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func referencesTo(names ...string) (out []machinev1alpha1.ResourceReference) {
	for _, name := range names {
		out = append(out, machinev1alpha1.ResourceReference{APIVersion: "machine.drover.dev/v1alpha1", Kind: "Machine", Name: name})
	}
	return out
}

// traced makes the Machine one that was read with a CRD of this release.
func traced(m *Machine) { m.Spec.ClassRef.Kind = machinev1alpha1.MachineClassGroupVersionKind.Kind }

func TestAGroupRefersToNoMachineWhileItsCRDIsOfTheReleaseBefore(t *testing.T) {
	if refs := groupOf(t, set(2), machine("a", running), machine("b", running)).Spec.ResourceRefs; refs != nil {
		t.Errorf("references %v, which that CRD does not have", refs)
	}
}

func TestAGroupRefersToEachMachineUntilItIsGone(t *testing.T) {
	s := set(2, func(s *machinev1alpha1.MachineSet) { s.Status.Creating = []string{"ordered"} })
	g := groupOf(t, s, machine("b", running), machine("a", running, terminating, traced))
	if d := cmp.Diff(referencesTo("a", "b", "ordered"), g.Spec.ResourceRefs); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if g = groupOf(t, s, machine("b", running, traced)); slices.ContainsFunc(g.Spec.ResourceRefs, func(r machinev1alpha1.ResourceReference) bool { return r.Name == "a" }) {
		t.Errorf("it refers to a Machine that is gone: %v", g.Spec.ResourceRefs)
	}
}

func TestReferencesOfATemplateReachNoMachine(t *testing.T) {
	s := set(1, func(s *machinev1alpha1.MachineSet) {
		s.Spec.Template.Spec.Crossplane = &machinev1alpha1.CompositionSelection{
			CompositionRef: &machinev1alpha1.CompositionReference{Name: "own"}, ResourceRefs: referencesTo("of-another-team"),
		}
	})
	g := groupOf(t, s)
	if raw := string(g.Spec.Templates[0].Spec.Raw); strings.Contains(raw, "resourceRefs") || !strings.Contains(raw, `"compositionRef":{"name":"own"}`) {
		t.Errorf("the Machine gets the spec %s", raw)
	}
}

func TestMachinesThatAreAlikeShareATemplateInTheirGroup(t *testing.T) {
	var ms []Machine
	versions := []string{"v1.28.0", "v1.29.0", "v1.30.0", "v1.31.0", "v1.32.0", "v1.33.0"}
	for _, v := range versions {
		for _, twin := range []string{"a", "b"} {
			ms = append(ms, machine(v+twin, running, func(m *Machine) { m.Spec.Version = v }))
		}
	}
	g := groupOf(t, set(13), ms...)

	templates := map[string]machinev1alpha1.GroupTemplate{}
	for _, tmpl := range g.Spec.Templates {
		templates[tmpl.Name] = tmpl
	}
	if len(g.Spec.Templates) != 7 || len(templates) != 7 {
		t.Fatalf("%d templates with %d names, want 7 of each", len(g.Spec.Templates), len(templates))
	}
	if !slices.IsSortedFunc(g.Spec.Templates, func(a, b machinev1alpha1.GroupTemplate) int {
		return strings.Compare(a.Name, b.Name)
	}) {
		t.Errorf("templates are not sorted by name")
	}
	created := 0
	for _, m := range g.Spec.Machines {
		tmpl := templates[m.Template]
		spec := string(tmpl.Spec.Raw)
		version := `"version":"v1.35.4"`
		if m.Create {
			created++
		} else {
			version = `"version":"` + m.Name[:len(m.Name)-1] + `"`
		}
		if !strings.Contains(spec, version) || !strings.Contains(spec, `"classRef":{"name":"small"}`) {
			t.Errorf("Machine %s has the spec %s, want %s in it", m.Name, spec, version)
		}
		if tmpl.Metadata.Labels[machinev1alpha1.LabelSet] != "set" || !slices.Equal(tmpl.Metadata.Finalizers, []string{machinev1alpha1.FinalizerTerminator}) {
			t.Errorf("Machine %s has the metadata %+v", m.Name, tmpl.Metadata)
		}
	}
	if created != 1 || len(g.Spec.Machines) != 13 {
		t.Errorf("%d of %d Machines are created", created, len(g.Spec.Machines))
	}
}

func TestATemplateOfAGroupIsAnotherIfItsMetadataIs(t *testing.T) {
	name := func(options ...machineOption) string {
		return groupOf(t, set(1, autoPreserve(1)), machine("a", failed, append(options, worked)...)).Spec.Machines[0].Template
	}
	if name() == name(asks(preserveFalse)) {
		t.Error("a Machine that the set preserves has the template of one that it does not")
	}
}

// TestASetLooksAgainUntilItSeesWhatItsGroupReports: the group enqueues the set, and the set decides by the
// Machines, which it may observe a little later.
func TestASetLooksAgainUntilItSeesWhatItsGroupReports(t *testing.T) {
	own, orphan := machine("a", running), machine("b", running)
	foreign := machine("c", running).Machine
	own.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", UID: "uid-of-set", Controller: ptr.To(true)}}
	digest, err := group.Digest("uid-of-set", []*machinev1alpha1.Machine{own.Machine, orphan.Machine, foreign})
	if err != nil {
		t.Fatal(err)
	}
	older := machine("a", joining)
	older.OwnerReferences = own.OwnerReferences
	for name, tc := range map[string]struct {
		o      Observed
		behind bool
	}{
		"ItSeesAll":          {o: Observed{Machines: []Machine{own}, Orphans: []Machine{orphan}, Foreign: []*machinev1alpha1.Machine{foreign}}},
		"AMachineIsMissing":  {o: Observed{Orphans: []Machine{orphan}, Foreign: []*machinev1alpha1.Machine{foreign}}, behind: true},
		"AMachineIsOlder":    {o: Observed{Machines: []Machine{older}, Orphans: []Machine{orphan}, Foreign: []*machinev1alpha1.Machine{foreign}}, behind: true},
		"AnOrphanIsMissing":  {o: Observed{Machines: []Machine{own}, Foreign: []*machinev1alpha1.Machine{foreign}}, behind: true},
		"AForeignOneMissing": {o: Observed{Machines: []Machine{own}, Orphans: []Machine{orphan}}, behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.Set = set(1)
			g := &machinev1alpha1.MachineGroup{Status: machinev1alpha1.MachineGroupStatus{Digest: digest, Gone: []string{"x"}}}
			behind, err := tc.o.Expect(g)
			if err != nil || behind != tc.behind {
				t.Errorf("behind %t, %v, want %t", behind, err, tc.behind)
			}
			if !slices.Equal(tc.o.Gone, []string{"x"}) {
				t.Errorf("gone %v", tc.o.Gone)
			}
		})
	}
}

func TestAGroupReportsWhatIsNotApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"NothingYet":       {nil, ""},
		"AllIsApplied":     {[]metav1.Condition{{Type: machinev1alpha1.ConditionApplied, Status: "True", Message: "all"}}, ""},
		"AMachineIsNot":    {[]metav1.Condition{{Type: machinev1alpha1.ConditionApplied, Status: "False", Message: "cannot apply"}}, "cannot apply"},
		"NobodyKnows":      {[]metav1.Condition{{Type: machinev1alpha1.ConditionApplied, Status: "Unknown", Message: "who knows"}}, ""},
		"AnotherCondition": {[]metav1.Condition{{Type: "Other", Status: "False", Message: "no"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Set: set(1)}
			g := &machinev1alpha1.MachineGroup{Status: machinev1alpha1.MachineGroupStatus{Conditions: tc.conditions}}
			if _, err := o.Expect(g); err != nil || o.NotApplied != tc.want {
				t.Errorf("%q, %v, want %q", o.NotApplied, err, tc.want)
			}
		})
	}
}
