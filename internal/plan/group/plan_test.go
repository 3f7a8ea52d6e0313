package group

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const setUID = "uid-of-set"

func spec(version string) v1alpha1.MachineSpec {
	return v1alpha1.MachineSpec{ClassRef: v1alpha1.ClassReference{Name: "small"}, Version: version}
}

func template(t *testing.T, name, version string) v1alpha1.GroupTemplate {
	t.Helper()
	raw, err := json.Marshal(spec(version))
	if err != nil {
		t.Fatal(err)
	}
	return v1alpha1.GroupTemplate{
		Name:     name,
		Metadata: v1alpha1.GroupMetadata{Labels: map[string]string{"pool": "a"}, Annotations: map[string]string{"note": "x"}},
		Spec:     runtime.RawExtension{Raw: raw},
	}
}

type option func(*v1alpha1.Machine)

// machine returns a Machine that equals template "new", unless options change it.
func machine(name string, options ...option) *v1alpha1.Machine {
	m := &v1alpha1.Machine{Spec: spec("v1.35.4")}
	m.Name, m.UID = name, "uid-of-x"
	m.Labels = map[string]string{"pool": "a", "somebody": "else's"}
	m.Annotations = map[string]string{"note": "x", v1alpha1.AnnotationTemplate: "new"}
	m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "set", UID: setUID, Controller: ptr.To(true)}}
	for _, o := range options {
		o(m)
	}
	return m
}

func TestPlanOf(t *testing.T) {
	create := func(name string) v1alpha1.GroupMember {
		return v1alpha1.GroupMember{Name: name, Template: "new", Create: true}
	}
	keep := func(name string) v1alpha1.GroupMember { return v1alpha1.GroupMember{Name: name, Template: "new"} }
	controlled := func(by string) option {
		return func(m *v1alpha1.Machine) { m.OwnerReferences[0].UID, m.OwnerReferences[0].Name = "other", by }
	}
	type want struct {
		Creates, Changes, Deletes, Missing, Created []string
		Error                                       string
	}
	cases := map[string]struct {
		spec     v1alpha1.MachineGroupSpec
		created  []string
		machines []*v1alpha1.Machine
		want     want
	}{
		"OneThatIsOrderedIsCreated": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}},
			want: want{Creates: []string{"a"}},
		},
		"OneThatWasCreatedAndIsNotThereIsNotCreatedAgain": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}}, created: []string{"a"},
			want: want{Missing: []string{"a"}, Created: []string{"a"}},
		},
		"OneThatSomebodySawAlreadyIsNeverCreated": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
		},
		"OneThatIsThereWasCreatedThoughNobodyWroteItDown": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}}, created: []string{"b"},
			machines: []*v1alpha1.Machine{machine("a")},
			want:     want{Created: []string{"b", "a"}},
		},
		"OneThatIsAskedForAgainByAnOldViewIsNotCreatedAgain": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("b")}}, created: []string{"b", "a"},
			want: want{Missing: []string{"b"}, Created: []string{"b", "a"}},
		},
		"OneThatTheSetHasNotSeenKeepsTheTemplateThatItWasMadeFrom": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.AnnotationTemplate] = "old" })},
			want:     want{Created: []string{"a"}},
		},
		"OneThatIsAsItShouldBeIsLeftAlone": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a")},
		},
		"OneThatIsNotNamedIsLeftAlone": {
			machines: []*v1alpha1.Machine{machine("a")},
		},
		"OneOfAnotherTemplateIsChanged": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.AnnotationTemplate] = "old" })},
			want:     want{Changes: []string{"a"}},
		},
		"WhatSomebodyElseChangedIsChangedBack": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a"), keep("b"), keep("c")}},
			machines: []*v1alpha1.Machine{
				machine("a", func(m *v1alpha1.Machine) { m.Spec.Version = "v0.0.1" }),
				machine("b", func(m *v1alpha1.Machine) { delete(m.Labels, "pool") }),
				machine("c", func(m *v1alpha1.Machine) { m.Annotations["note"] = "y" }),
			},
			want: want{Changes: []string{"a", "b", "c"}},
		},
		"TheRevisionThatAMachineIsPinnedToIsNoDifference": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) {
				m.Spec.Crossplane = &v1alpha1.CompositionSelection{CompositionRevisionRef: &v1alpha1.CompositionReference{Name: "r"}}
			})},
		},
		"AProviderIDThatWasCopiedIsNoDifference": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) {
				m.Status.ProviderID, m.Spec.ProviderID = "local:///a/b", ptr.To("local:///a/b")
			})},
		},
		"OneWithoutAControllerIsTakenOn": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) { m.OwnerReferences = nil })},
			want:     want{Changes: []string{"a"}},
		},
		"OneThatSomebodyElseControlsIsLeftAloneAndReported": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}, Delete: []string{"b"}},
			machines: []*v1alpha1.Machine{machine("a", controlled("other")), machine("b", controlled("other"))},
			want:     want{Error: `spec.machines: Machine "a" is controlled by MachineSet "other"`},
		},
		"SoIsOneThatHasTheNameOfOneThatIsOrdered": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}},
			machines: []*v1alpha1.Machine{machine("a", controlled("other"), func(m *v1alpha1.Machine) { m.Annotations = nil })},
			want:     want{Created: []string{"a"}, Error: `spec.machines: Machine "a" is controlled by MachineSet "other"`},
		},
		"OneThatHasTheNameOfOneThatIsOrderedAndNoControllerIsTakenOn": {
			spec:     v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) { m.OwnerReferences, m.Annotations = nil, nil })},
			want:     want{Changes: []string{"a"}, Created: []string{"a"}},
		},
		"OneThatIsTerminatingIsNotChanged": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{keep("a")}},
			machines: []*v1alpha1.Machine{machine("a", func(m *v1alpha1.Machine) {
				m.Spec.Version, m.DeletionTimestamp = "v0.0.1", ptr.To(metav1.Now())
			})},
		},
		"OneThatShallGoIsDeletedOnce": {
			spec:     v1alpha1.MachineGroupSpec{Delete: []string{"a", "b"}},
			machines: []*v1alpha1.Machine{machine("a"), machine("b", func(m *v1alpha1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) })},
			want:     want{Deletes: []string{"a"}},
		},
		"OneThatShallGoAndIsNotThereIsMissing": {
			spec: v1alpha1.MachineGroupSpec{Delete: []string{"a"}},
			want: want{Missing: []string{"a"}},
		},
		"OneThatShallGoIsNotCreatedEither": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{create("a")}, Delete: []string{"a"}},
			want: want{Missing: []string{"a"}},
		},
		"ATemplateThatIsNotThereIsReported": {
			spec: v1alpha1.MachineGroupSpec{Machines: []v1alpha1.GroupMember{{Name: "a", Template: "nowhere", Create: true}, create("b")}},
			want: want{Creates: []string{"b"}, Error: `spec.machines: Machine "a" has template "nowhere", which is not in spec.templates`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.MachineGroup{Spec: tc.spec, Status: v1alpha1.MachineGroupStatus{Created: tc.created}}
			g.Spec.Templates = []v1alpha1.GroupTemplate{template(t, "new", "v1.35.4"), template(t, "old", "v1.34.0")}
			machines := map[string]*v1alpha1.Machine{}
			for _, m := range tc.machines {
				machines[m.Name] = m
			}
			p := PlanOf(g, setUID, machines)
			got := want{Missing: p.Missing, Created: p.Created}
			if p.Creates() != (len(tc.want.Creates) > 0) {
				t.Errorf("a Machine is created: %t", p.Creates())
			}
			for _, ch := range p.Apply {
				if ch.Existing == nil {
					got.Creates = append(got.Creates, ch.Name)
				} else {
					got.Changes = append(got.Changes, ch.Name)
				}
			}
			for _, m := range p.Delete {
				got.Deletes = append(got.Deletes, m.Name)
			}
			for _, err := range p.Errors {
				got.Error += err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestASetSelectsMachinesByAllItsLabels(t *testing.T) {
	labels := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	for name, tc := range map[string]struct {
		selector, has map[string]string
		want          bool
	}{
		"it has them and others":      {labels("pool", "a"), labels("pool", "a", "zone", "b"), true},
		"another value":               {labels("pool", "a"), labels("pool", "b"), false},
		"one is missing":              {labels("pool", "a", "zone", "b"), labels("pool", "a"), false},
		"a selector without any":      {nil, labels("pool", "a"), false},
		"neither of them has any":     {nil, nil, false},
		"a label with an empty value": {labels("pool", ""), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := &v1alpha1.MachineGroup{}, machine("a")
			g.Spec.MatchLabels, m.Labels = tc.selector, tc.has
			if got := Matches(g, m); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

func TestAGroupRemembersTheLastFiftyMachinesThatItCreated(t *testing.T) {
	g := &v1alpha1.MachineGroup{}
	var want []string
	for i := range remembered + 3 {
		name := fmt.Sprint("m", i)
		g.Status.Created = append(g.Status.Created, name)
		if i != 1 && i != 2 {
			want = append(want, name)
		}
	}
	g.Status.Created = append(g.Status.Created, "asked")
	g.Spec.Machines = []v1alpha1.GroupMember{{Name: "m0", Create: true}, {Name: "asked", Create: true}, {Name: "m3"}}
	if diff := cmp.Diff(append(want, "asked"), PlanOf(g, setUID, nil).Created); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	digest := func(ms ...*v1alpha1.Machine) string {
		d, err := Digest(setUID, ms)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := map[string]option{
		"AConditionIsNoNews": func(m *v1alpha1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: "NodeReady", Status: "True"}, {Type: "Valid", Status: "True", Reason: "Valid"}}
		},
		"AConditionThatPassesIsNoNews": func(m *v1alpha1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: "Synced", Status: "False", Reason: "ReconcileSuccess"}, {Type: "InfrastructureReady", Status: "False", Reason: "VMCreating"}}
		},
		"WhatIsWrittenForPeopleIsNoNews": func(m *v1alpha1.Machine) {
			m.Status.LastOperation = &v1alpha1.LastOperation{Description: "Waiting"}
			m.Status.Addresses = []v1alpha1.Address{{Type: "InternalIP", Address: "10.0.0.1"}}
		},
		"AResourceVersionIsNoNews": func(m *v1alpha1.Machine) { m.ResourceVersion = "9" },
		"WhatItsNodeGetsIsNoNews": func(m *v1alpha1.Machine) {
			m.Spec.Metadata.Labels = map[string]string{"zone": "a"}
			m.Spec.Taints = []v1alpha1.Taint{{Key: "gpu", Effect: "NoSchedule"}}
		},
		"HowItIsDrainedIsNoNews": func(m *v1alpha1.Machine) {
			m.Spec.Drain.Timeout.Duration = time.Minute
			m.Status.Drain = &v1alpha1.DrainStatus{Forced: true}
		},
		"AStageOfItsDeletionIsNoNews": func(m *v1alpha1.Machine) {
			m.Status.Deletion = &v1alpha1.DeletionStatus{Stage: v1alpha1.DeletionDraining}
		},
		"ItsCompositionIsNoNews": func(m *v1alpha1.Machine) {
			m.Spec.Crossplane = &v1alpha1.CompositionSelection{}
			m.Status.CompositionRevision = "r1"
		},
		"AGenerationIsNoNews": func(m *v1alpha1.Machine) { m.Status.ObservedGeneration = 7 },
	}
	other := map[string]option{
		"APhaseIsNews": func(m *v1alpha1.Machine) { m.Status.Phase = v1alpha1.MachineRunning },
		"AProblemIsNews": func(m *v1alpha1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: "False", Reason: "VersionSkew"}}
		},
		"AnErrorOfAMachineThatStartsIsNews": func(m *v1alpha1.Machine) {
			m.Status.Conditions = []metav1.Condition{{Type: "Synced", Status: "False", Reason: "ReconcileError"}}
		},
		"AnErrorIsNews":      func(m *v1alpha1.Machine) { m.Status.LastOperation = &v1alpha1.LastOperation{ErrorCode: "Quota"} },
		"AnAnnotationIsNews": func(m *v1alpha1.Machine) { m.Annotations[v1alpha1.AnnotationDeleteMachine] = "now" },
		"ADeletionIsNews":    func(m *v1alpha1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) },
		"AProviderIDIsNews":  func(m *v1alpha1.Machine) { m.Status.ProviderID = "local:///a/b" },
	}
	quiet := func(m *v1alpha1.Machine) { m.Status.LastOperation = &v1alpha1.LastOperation{} }
	for name, o := range same {
		t.Run(name, func(t *testing.T) {
			if digest(machine("a", quiet)) != digest(machine("a", quiet, o)) {
				t.Error("the digest changed")
			}
		})
	}
	for name, o := range other {
		t.Run(name, func(t *testing.T) {
			if digest(machine("a", quiet)) == digest(machine("a", quiet, o)) {
				t.Error("the digest stayed")
			}
		})
	}
	controlled := func(by, phase string) option {
		return func(m *v1alpha1.Machine) {
			m.OwnerReferences[0].UID, m.Status.Phase = types.UID(by), v1alpha1.MachinePhase(phase)
		}
	}
	orphan := func(m *v1alpha1.Machine) { m.OwnerReferences = nil }
	going := func(m *v1alpha1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }
	for name, tc := range map[string]struct {
		a, b []*v1alpha1.Machine
		news bool
	}{
		"AMachineOfAnotherSetIsNews":          {nil, []*v1alpha1.Machine{machine("a", controlled("other", ""))}, true},
		"WhatBecomesOfItIsNot":                {[]*v1alpha1.Machine{machine("a", controlled("other", "Joining"))}, []*v1alpha1.Machine{machine("a", controlled("other", "Running"))}, false},
		"ThatAThirdSetTakesItIs":              {[]*v1alpha1.Machine{machine("a", controlled("other", ""))}, []*v1alpha1.Machine{machine("a", controlled("third", ""))}, true},
		"OneThatNobodyControlsIsNews":         {nil, []*v1alpha1.Machine{machine("a", orphan)}, true},
		"ThatItIsAdoptedIsNews":               {[]*v1alpha1.Machine{machine("a", orphan)}, []*v1alpha1.Machine{machine("a")}, true},
		"OneOfNobodyThatIsBeingDeletedIsNone": {nil, []*v1alpha1.Machine{machine("a", orphan, going)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if news := digest(tc.a...) != digest(tc.b...); news != tc.news {
				t.Errorf("news: %v", news)
			}
		})
	}
	t.Run("TheOrderIsNoNews", func(t *testing.T) {
		if digest(machine("a"), machine("b")) != digest(machine("b"), machine("a")) {
			t.Error("the digest changed")
		}
	})
	t.Run("AMachineIsNotChangedByIt", func(t *testing.T) {
		m := machine("a", func(m *v1alpha1.Machine) {
			m.Status.LastOperation = &v1alpha1.LastOperation{Description: "Waiting"}
			m.Spec.Taints = []v1alpha1.Taint{{Key: "k", Effect: "NoSchedule"}}
		})
		was := m.DeepCopy()
		digest(m)
		if diff := cmp.Diff(was, m); diff != "" {
			t.Errorf("-was +is:\n%s", diff)
		}
	})
}

func TestStatus(t *testing.T) {
	g := &v1alpha1.MachineGroup{}
	g.Generation = 3
	s := Status(g, Plan{Created: []string{"b"}}, Outcome{Created: []string{"c", "a"}, Gone: []string{"z", "y"}, Digest: "d"})
	if s.ObservedGeneration != 3 || s.Digest != "d" || strings.Join(s.Created, "") != "bac" || strings.Join(s.Gone, "") != "yz" {
		t.Errorf("got %+v", s)
	}
	c := s.Conditions[0]
	if c.Type != v1alpha1.ConditionApplied || c.Status != metav1.ConditionTrue || c.LastTransitionTime.IsZero() {
		t.Errorf("got %+v", c)
	}
	c.LastTransitionTime = metav1.Unix(1, 0)
	g.Status.Conditions = []metav1.Condition{c}
	if again := Status(g, Plan{}, Outcome{}).Conditions[0]; again != c {
		t.Errorf("the same condition again: %+v", again)
	}
	if c := Status(g, Plan{}, Outcome{Err: errNo}).Conditions[0]; c.Status != metav1.ConditionFalse || c.Message != "no" {
		t.Errorf("got %+v", c)
	}
}

type anError string

func (e anError) Error() string { return string(e) }

const errNo = anError("no")
