package set

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

func budget(inFlight, unhealthy string) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		s.Spec.Remediation.MaxInFlight, s.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.Parse(inFlight)), ptr.To(intstr.Parse(unhealthy))
	}
}

func createFirst(s *machinev1alpha1.MachineSet) {
	s.Spec.Remediation.Order = machinev1alpha1.CreateFirst
}

// replacing records pairs of a Machine and its replacement in the set's status.
func replacing(pairs ...string) setOption {
	return func(s *machinev1alpha1.MachineSet) {
		for i := 0; i < len(pairs); i += 2 {
			s.Status.Replacing = append(s.Status.Replacing, machinev1alpha1.Replacement{Machine: pairs[i], By: pairs[i+1]})
		}
		s.Status.Created += int64(len(pairs) / 2)
	}
}

func ofDeployment(s *machinev1alpha1.MachineSet) {
	s.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "md", UID: "md", Controller: ptr.To(true)}}
}

// worked makes the Machine one that had a Node.
func worked(m *Machine) {
	m.Status.ProviderID = "local:///zone-a/" + m.Name
	m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: m.Name}
	if m.Status.Phase == failed {
		m.Status.FailureReason = machinev1alpha1.FailureNodeUnhealthy
	}
}

func lost(m *Machine) { m.Status.FailureReason = machinev1alpha1.FailureVMLost }

func unwanted(m *Machine) { m.Status.ReplaceRequested = true }

func kept(m *Machine) {
	m.Annotations = map[string]string{machinev1alpha1.AnnotationPreserve: machinev1alpha1.PreserveNow}
}

// cannotBeCreated makes the provider refuse the Machine's VM for now.
func cannotBeCreated(m *Machine) {
	m.Status.LastOperation = &machinev1alpha1.LastOperation{ErrorCode: "QuotaExceeded", Description: "no more"}
}

// some returns n Machines in a phase, whose names begin with a letter.
func some(n int, letter string, phase machinev1alpha1.MachinePhase, options ...machineOption) []Machine {
	var out []Machine
	for i := range n {
		out = append(out, machine(letter+string(rune('a'+i)), phase, append([]machineOption{worked}, options...)...))
	}
	return out
}

func TestReplacements(t *testing.T) {
	type want struct {
		Dropping                     []string
		Replacing                    []machinev1alpha1.Replacement
		Created                      []string
		Replicas                     int32
		Starting, Unhealthy, Waiting int32
		Allowed                      string
		Events                       []string
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines []Machine
		safety   shared.Safety
		want     want
	}{
		"OneIsReplacedAtATimeByDefault": {
			set: set(4), machines: slices.Concat(some(2, "f", failed), some(2, "r", running)),
			want: want{Dropping: []string{"fa"}, Replicas: 3, Starting: 1, Unhealthy: 1, Waiting: 1, Allowed: "WaitingForMachines", Events: []string{"ReplacingMachine"}},
		},
		"WhatWasDroppedCountsUntilItsReplacementRuns": {
			set: set(4, dropping("fa")), machines: slices.Concat(some(2, "f", failed), some(2, "r", running)),
			want: want{Dropping: []string{"fa"}, Created: []string{nth(100)}, Replicas: 4, Starting: 1, Unhealthy: 1, Waiting: 1, Allowed: "WaitingForMachines", Events: []string{"CreatedMachine"}},
		},
		"SoDoMachinesThatComeUpForAnotherReason": {
			set: set(4), machines: slices.Concat(some(1, "f", failed), some(2, "r", running), some(1, "j", joining)),
			want: want{Replicas: 4, Starting: 1, Unhealthy: 1, Waiting: 1, Allowed: "WaitingForMachines"},
		},
		"AndOneThatCouldNotBeCreated": {
			set: set(4), machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine("y", provisioning, cannotBeCreated)}),
			want: want{Replicas: 4, Starting: 1, Unhealthy: 2, Waiting: 1, Allowed: "WaitingForMachines"},
		},
		"MoreAreReplacedWithinALargerBudget": {
			set: set(10, budget("30%", "100%")), machines: slices.Concat(some(5, "f", failed), some(5, "r", running)),
			want: want{Dropping: []string{"fa", "fb", "fc"}, Replicas: 7, Starting: 3, Unhealthy: 2, Waiting: 2, Allowed: "WaitingForMachines", Events: []string{"ReplacingMachine", "ReplacingMachine", "ReplacingMachine"}},
		},
		"NoneIsReplacedWithoutABudget": {
			set: set(3, budget("0", "100%")), machines: slices.Concat(some(1, "f", failed), some(2, "r", running)),
			want: want{Replicas: 3, Unhealthy: 1, Waiting: 1, Allowed: "NoBudget"},
		},
		"NoneIsReplacedWhenTooManyAreUnhealthy": {
			set: set(10, budget("3", "40%")), machines: slices.Concat(some(1, "f", failed), some(4, "u", unknown), some(5, "r", running)),
			want: want{Replicas: 10, Unhealthy: 5, Waiting: 1, Allowed: "TooManyUnhealthy", Events: []string{"TooManyUnhealthy"}},
		},
		"NorInTheVeryPlanThatGivesThemUpAsTooMuch": {
			set:      set(3, budget("3", "2")),
			machines: slices.Concat(some(3, "f", failed), some(2, "r", running), []Machine{machine("x", running, worked, unwanted)}),
			want:     want{Dropping: []string{"fa", "fb", "fc"}, Replicas: 3, Waiting: 1, Events: []string{"DeletedMachine"}},
		},
		"OneIsReplacedWhenAsManyAreUnhealthyAsMayBe": {
			set: set(10, budget("3", "40%")), machines: slices.Concat(some(1, "f", failed), some(3, "u", unknown), some(6, "r", running)),
			want: want{Dropping: []string{"fa"}, Replicas: 9, Starting: 1, Unhealthy: 3, Events: []string{"ReplacingMachine"}},
		},
		"MachinesThatCannotBeCreatedAreUnhealthy": {
			set: set(5, budget("5", "40%")), machines: slices.Concat(some(1, "f", failed), some(2, "r", running),
				[]Machine{machine("x", provisioning, cannotBeCreated), machine("y", provisioning, cannotBeCreated)}),
			want: want{Replicas: 5, Starting: 2, Unhealthy: 3, Waiting: 1, Allowed: "TooManyUnhealthy", Events: []string{"TooManyUnhealthy"}},
		},
		"PreservedMachinesAreNeitherUnhealthyNorInFlight": {
			set: set(4, budget("1", "1")), machines: slices.Concat(some(2, "p", failed, kept), some(1, "f", failed), some(1, "r", running)),
			want: want{Dropping: []string{"fa"}, Replicas: 3, Starting: 1, Events: []string{"ReplacingMachine"}},
		},
		"AReplacementThatFailedToJoinIsNotInFlightOnceTheSetPreservesIt": {
			set: set(3, autoPreserve(1)), machines: slices.Concat([]Machine{machine("x", failed, withVM)}, some(1, "f", failed, lost), some(1, "r", running)),
			want: want{Dropping: []string{"fa"}, Replicas: 2, Starting: 1, Events: []string{"ReplacingMachine"}},
		},
		"AFailedCreationIsTriedAgainWhateverTheBudget": {
			set: set(3, budget("0", "0")), machines: slices.Concat([]Machine{machine("x", failed)}, some(2, "r", running)),
			want: want{Dropping: []string{"x"}, Replicas: 2, Starting: 1, Events: []string{"ReplacingMachine"}},
		},
		"AllFailedCreationsAreTriedAgainWhateverTheBudget": {
			set: set(4, budget("1", "0")), machines: slices.Concat([]Machine{machine("x", failed), machine("y", failed)}, some(2, "r", running)),
			want: want{Dropping: []string{"x", "y"}, Replicas: 2, Starting: 2, Events: []string{"ReplacingMachine"}},
		},
		"ButHoldsABudgetOfOne": {
			set: set(3, func(s *machinev1alpha1.MachineSet) {
				s.Spec.Remediation.MaxUnhealthy = ptr.To(intstr.FromString("100%"))
				s.Status.Backoff = &machinev1alpha1.Backoff{Failures: 1, Until: metav1.NewTime(now.Add(time.Minute)), Template: (&fleet{Observed: Observed{Set: s}}).templateHash()}
			}),
			machines: slices.Concat([]Machine{machine("x", failed)}, some(1, "f", failed), some(1, "r", unknown)),
			want:     want{Dropping: []string{"x"}, Replicas: 2, Starting: 1, Unhealthy: 2, Waiting: 1, Allowed: "WaitingForMachines", Events: []string{"ReplacingMachine"}},
		},
		"AMachineIsReplacedBecauseSomebodyAsks": {
			set: set(2), machines: slices.Concat(some(1, "q", running, unwanted), some(1, "r", running)),
			want: want{Dropping: []string{"qa"}, Replicas: 1, Starting: 1, Events: []string{"ReplacingMachine"}},
		},
		"WithinTheBudget": {
			set: set(3), machines: slices.Concat(some(1, "q", running, unwanted), some(1, "r", running), some(1, "j", joining)),
			want: want{Replicas: 3, Starting: 1, Waiting: 1, Allowed: "WaitingForMachines"},
		},
		"APreservedMachineIsNotReplacedThoughSomebodyAsks": {
			set: set(1), machines: some(1, "q", running, unwanted, kept),
			want: want{Replicas: 1},
		},
		"WhereAReplacementIsTooMuchOneThatIsToBeReplacedIsSoToo": {
			set:      set(2, createFirst, budget("3", "100%"), replacing("ra", nth(100), "rb", nth(101))),
			machines: slices.Concat(some(2, "r", running, unwanted), some(1, "s", running), []Machine{machine(nth(100), provisioning)}),
			want: want{
				Dropping: []string{nth(100), "ra"}, Replacing: []machinev1alpha1.Replacement{{Machine: "rb", By: nth(102)}},
				Replicas: 2, Starting: 1, Events: []string{"DeletedMachine", "ReplacingMachine"},
			},
		},
		"CreateFirstWritesDownWhoReplacesWhom": {
			set: set(3, createFirst), machines: slices.Concat(some(1, "f", failed), some(2, "r", running)),
			want: want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Replicas: 3, Starting: 1, Unhealthy: 1, Events: []string{"ReplacingMachine"}},
		},
		"ThenItCreatesTheReplacement": {
			set: set(3, createFirst, replacing("fa", nth(100))), machines: slices.Concat(some(1, "f", failed), some(2, "r", running)),
			want: want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Created: []string{nth(100)}, Replicas: 4, Starting: 1, Unhealthy: 1},
		},
		"OnlyOnce": {
			set:      set(3, createFirst, replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), joining)}),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Replicas: 4, Starting: 1, Unhealthy: 1},
		},
		"AndDropsTheMachineWhenItIsAvailable": {
			set:      set(3, createFirst, replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), running, worked)}),
			want:     want{Dropping: []string{"fa"}, Replicas: 3, Events: []string{"ReplacedMachine"}},
		},
		"NotBeforeMinReadySeconds": {
			set:      set(3, createFirst, minReady(3600), replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), running, worked)}),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Replicas: 4, Unhealthy: 1},
		},
		"AReplacementThatFailsIsReplacedItself": {
			set:      set(3, createFirst, replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), failed, failedWith(machinev1alpha1.FailureCreateFailed, "QuotaExceeded", "no more"))}),
			want:     want{Dropping: []string{nth(100)}, Replicas: 3, Unhealthy: 1, Waiting: 1, Events: []string{"ReplacingMachine"}},
		},
		"WhoRecoversMeanwhileStaysAndTheReplacementGoes": {
			set:      set(3, createFirst, replacing("ra", nth(100))),
			machines: slices.Concat(some(3, "r", running), []Machine{machine(nth(100), joining)}),
			want:     want{Dropping: []string{nth(100)}, Replicas: 3, Events: []string{"DeletedMachine"}},
		},
		"AScaleDownTakesTheMachineThatFailed": {
			set:      set(2, createFirst, replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running)),
			want:     want{Dropping: []string{"fa"}, Replicas: 2, Events: []string{"DeletedMachine"}},
		},
		"AReplacementThatSomebodyDeletesIsNotCreatedUnderItsName": {
			set:      set(3, createFirst, replacing("fa", nth(100))),
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), joining, terminating)}),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(101)}}, Replicas: 3, Starting: 1, Unhealthy: 1, Events: []string{"ReplacingMachine"}},
		},
		"AMachineWithoutVMHasNothingToHandOver": {
			set: set(3, createFirst), machines: slices.Concat(some(1, "f", failed, lost), some(2, "r", running)),
			want: want{Dropping: []string{"fa"}, Replicas: 2, Starting: 1, Events: []string{"ReplacingMachine"}},
		},
		"SeveralMayBeAboveReplicasWithinTheBudget": {
			set: set(4, createFirst, budget("2", "100%")), machines: slices.Concat(some(3, "f", failed), some(1, "r", running)),
			want: want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}, {Machine: "fb", By: nth(101)}}, Replicas: 4, Starting: 2, Unhealthy: 3, Waiting: 1, Allowed: "WaitingForMachines", Events: []string{"ReplacingMachine", "ReplacingMachine"}},
		},
		"ButNotMore": {
			set:      set(4, createFirst, minReady(3600), replacing("fa", nth(100))),
			machines: slices.Concat(some(2, "f", failed), some(2, "r", running), []Machine{machine(nth(100), running, worked)}),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Replicas: 5, Unhealthy: 2, Waiting: 1},
		},
		"NotMoreThanTheBudgetWithThoseThatAreAddedNow": {
			set:      set(4, createFirst, minReady(3600), budget("2", "100%"), replacing("fa", nth(100))),
			machines: slices.Concat(some(3, "f", failed), some(1, "r", running), []Machine{machine(nth(100), running, worked)}),
			want: want{
				Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}, {Machine: "fb", By: nth(101)}},
				Replicas:  5, Starting: 1, Unhealthy: 3, Waiting: 1, Events: []string{"ReplacingMachine"},
			},
		},
		"AReplacementIsOneOfThoseThatAreCreated": {
			set:      set(2, createFirst, replacing("fa", nth(100))),
			machines: some(1, "f", failed),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Created: []string{nth(100)}, Replicas: 2, Starting: 2, Unhealthy: 1},
		},
		"ASetThatCreatesNoneCountsWhatItHasGivenUp": {
			set:      set(3, createsNone, budget("2", "100%"), dropping("fa")),
			machines: some(3, "f", failed),
			want:     want{Dropping: []string{"fa", "fb"}, Replicas: 1, Starting: 2, Unhealthy: 1, Waiting: 1, Allowed: "WaitingForMachines", Events: []string{"ReplacingMachine"}},
		},
		"FrozenHandsNothingOver": {
			set: set(3, createFirst, replacing("fa", nth(100))), safety: frozen,
			machines: slices.Concat(some(1, "f", failed), some(2, "r", running), []Machine{machine(nth(100), running, worked)}),
			want:     want{Replacing: []machinev1alpha1.Replacement{{Machine: "fa", By: nth(100)}}, Replicas: 4, Unhealthy: 1},
		},
		"AnOldSetGivesUpNoMoreThanAnotherHasCreatedForIt": {
			set: set(3, createsNone, ofDeployment), machines: slices.Concat(some(2, "f", failed), []Machine{machine("x", failed, terminating)}),
			want: want{Replicas: 2, Starting: 1, Unhealthy: 2, Waiting: 2, Allowed: "WaitingForMachines"},
		},
		"AReplacementThatIsYetToBeCreatedHidesNoMachineThatIsTooMany": {
			set: set(3, budget("3", "100%"), createFirst, replacing("fa", nth(100), "fb", nth(101))), machines: slices.Concat(some(3, "f", failed), some(1, "j", joining)),
			want: want{
				Dropping: []string{"fa"}, Replacing: []machinev1alpha1.Replacement{{Machine: "fb", By: nth(102)}, {Machine: "fc", By: nth(103)}},
				Replicas: 3, Starting: 3, Unhealthy: 2, Events: []string{"DeletedMachine", "ReplacingMachine", "ReplacingMachine"},
			},
		},
		"ABudgetThatIsNoneReplacesNone": {
			set: set(3, budget("some", "100%")), machines: slices.Concat(some(1, "f", failed), some(2, "r", running)),
			want: want{Replicas: 3, Unhealthy: 1, Waiting: 1, Allowed: "InvalidRemediation", Events: []string{"InvalidRemediation"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := map[string]bool{}
			for _, m := range tc.machines {
				before[m.Name] = true
			}
			d := Plan(now, Observed{Set: tc.set, Machines: tc.machines, Safety: tc.safety})
			s := d.Status
			got := want{
				Dropping: s.Dropping, Replacing: s.Replacing, Replicas: s.Replicas,
				Starting: s.StartingReplicas, Unhealthy: s.UnhealthyReplicas, Waiting: s.ReplaceableReplicas, Events: reasons(d),
			}
			for _, m := range d.Machines {
				if !before[m.Name] {
					got.Created = append(got.Created, m.Name)
				}
			}
			for _, c := range d.Conditions {
				if c.Type == "RemediationAllowed" {
					got.Allowed = c.Reason
				}
			}
			for _, l := range []*[]string{&got.Dropping, &got.Events, &tc.want.Dropping, &tc.want.Events} {
				if len(*l) == 0 {
					*l = nil
				}
			}
			// Other tests cover backoff and refusals.
			got.Events = slices.DeleteFunc(got.Events, func(s string) bool { return s == "BackingOff" || s == "QuotaExceeded" })
			if len(got.Events) == 0 {
				got.Events = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (len(tc.want.Replacing) > len(tc.set.Status.Replacing) || len(tc.want.Dropping) > len(tc.set.Status.Dropping)) && d.CallAgain != shared.Soonest {
				t.Errorf("what was decided is carried out in %s", d.CallAgain)
			}
		})
	}
}

func TestAMachineForWhichThereIsNoRoomIsNotUnhealthy(t *testing.T) {
	const full = "CapacityExhausted"
	shown := func(m *Machine) {
		m.Spec.CapacityTimeout = &metav1.Duration{Duration: machinev1alpha1.DefaultCapacityTimeout}
	}
	none := failedWith(machinev1alpha1.FailureCapacityTimeout, full, "none left")
	for name, tc := range map[string]struct {
		machine Machine
		want    int32
	}{
		"IfAnAutoscalerSeesIt":        {machine("a", failed, shown, none), 0},
		"ElseItIs":                    {machine("a", failed, none), 1},
		"ForAnotherErrorItIs":         {machine("a", failed, shown, failedWith(machinev1alpha1.FailureCreateFailed, "Internal", "oops")), 1},
		"WithoutAVMThatIsRefusedItIs": {machine("a", provisioning, shown, refused(full, "none left")), 1},
		"OnceItHadANodeItIs":          {machine("a", failed, shown, none, withNode), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(now, Observed{Set: set(1), Machines: []Machine{tc.machine}, Safety: frozen}).Status.UnhealthyReplicas; got != tc.want {
				t.Errorf("%d are unhealthy, want %d", got, tc.want)
			}
		})
	}
}

// TestAConfirmedLossIsNotUnhealthy is about VMs that the cloud no longer has. If their replacements were
// held back, the set would stay too small forever.
func TestAConfirmedLossIsNotUnhealthy(t *testing.T) {
	confirmed := func(m *Machine) { m.Status.LossConfirmed = true }
	fleet := func(is ...machineOption) []Machine {
		return []Machine{
			machine("a", failed, append([]machineOption{worked, lost}, is...)...), machine("b", failed, append([]machineOption{worked, lost}, is...)...),
			machine("c", failed, append([]machineOption{worked, lost}, is...)...), machine("d", running, worked), machine("e", running, worked),
		}
	}
	for name, tc := range map[string]struct {
		reason    string
		machines  []Machine
		unhealthy int32
		dropping  int
	}{
		"Confirmed": {"A VM that is gone cannot recover: it is replaced within the budget.", fleet(confirmed), 0, 1},
		"Claimed":   {"A provider that asks the wrong account reports VMs as lost whose Nodes are Ready: none is replaced.", fleet(), 3, 0},
		"NodeFirst": {"A Machine may have failed for its Node before its VM was missed.", fleet(confirmed, func(m *Machine) { m.Status.FailureReason = machinev1alpha1.FailureNodeDeleted }), 0, 1},
		"Recovered": {"A Machine that is not Failed any more is judged by its phase.", fleet(confirmed, func(m *Machine) { m.Status.Phase = machinev1alpha1.MachineUnknown }), 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Plan(now, Observed{Set: set(5, budget("1", "40%")), Machines: tc.machines})
			if d.Status.UnhealthyReplicas != tc.unhealthy || len(d.Status.Dropping) != tc.dropping {
				t.Errorf("%s\n%d are unhealthy, want %d; replaced %v, want %d", tc.reason, d.Status.UnhealthyReplicas, tc.unhealthy, d.Status.Dropping, tc.dropping)
			}
		})
	}
}

func TestAReplacementReportsWhy(t *testing.T) {
	say := func(s *machinev1alpha1.MachineSet, m Machine) string {
		for _, e := range Plan(now, Observed{Set: s, Machines: []Machine{m}}).Events {
			if e.Reason == "ReplacingMachine" {
				return e.Message
			}
		}
		return ""
	}
	broken := machine("m", failed, worked)
	broken.Status.FailureMessage = "Node condition Ready is Unknown"
	for want, got := range map[string]string{
		"Replacing Machine m, which failed with NodeUnhealthy: Node condition Ready is Unknown":                     say(set(1), broken),
		"Replacing Machine m by " + nth(100) + ", which failed with NodeUnhealthy: Node condition Ready is Unknown": say(set(1, createFirst), broken),
		"Replacing Machine m, as machine.drover.dev/replace asks":                                                   say(set(1), machine("m", running, worked, unwanted)),
	} {
		if !strings.HasPrefix(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

func TestManyMachinesThatAreCreatedAgainAreOneEvent(t *testing.T) {
	ms := several(30, failed, withVM, failedWith(machinev1alpha1.FailureJoinTimeout, "", "no Node joined within 20m"))
	var got []string
	for _, e := range Plan(now, Observed{Set: set(30), Machines: ms}).Events {
		if e.Reason == "ReplacingMachine" {
			got = append(got, e.Message)
		}
	}
	if len(got) != 1 || !strings.HasPrefix(got[0], "Replacing 30 Machines: Failed-000, ") ||
		!strings.HasSuffix(got[0], "and 20 more, which failed before they joined, first with JoinTimeout: no Node joined within 20m") {
		t.Errorf("got %q", got)
	}
}

func TestARequestInATemplateReplacesNothing(t *testing.T) {
	s := set(1)
	s.Spec.Template.Metadata.Annotations = map[string]string{machinev1alpha1.AnnotationReplace: "true", "a": "b"}
	d := Plan(now, Observed{Set: s})
	if diff := cmp.Diff(map[string]string{"a": "b"}, d.Machines[0].Annotations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
