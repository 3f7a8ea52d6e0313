package set

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

func inErrorOf(code, message string) machineOption {
	return func(m *Machine) {
		m.Status.LastOperation = &machinev1alpha1.LastOperation{
			Type: machinev1alpha1.OperationCreate, State: machinev1alpha1.OperationProcessing, ErrorCode: code, Description: message,
		}
	}
}

func withVM(m *Machine) { m.Status.ProviderID = "local:///zone-a/" + m.Name }

func withNode(m *Machine) {
	m.Status.NodeRef = &machinev1alpha1.NodeReference{Kind: "Node", Name: m.Name}
}

// several returns n equal Machines.
func several(n int, phase machinev1alpha1.MachinePhase, options ...machineOption) []Machine {
	var out []Machine
	for i := range n {
		out = append(out, machine(fmt.Sprintf("%s-%03d", phase, i), phase, options...))
	}
	return out
}

func provenClass(s *machinev1alpha1.MachineSet) {
	s.Annotations = map[string]string{machinev1alpha1.AnnotationClassProven: "true"}
}

func refusedUntil(at time.Time) machineOption {
	return func(m *Machine) { m.Status.RefusedUntil = &metav1.Time{Time: at} }
}

func ofClass(name string) machineOption {
	return func(m *Machine) { m.Spec.ClassRef.Name = name }
}

// failingToJoin makes the set one whose last attempt failed, and whose next attempt is under way.
func failingToJoin(s *machinev1alpha1.MachineSet) {
	s.Status.Backoff = &machinev1alpha1.Backoff{
		Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: 1,
		Until: metav1.NewTime(now.Add(-10 * time.Minute)), Reason: machinev1alpha1.FailureJoinTimeout, ErrorCode: "JoinTimeout",
	}
}

func TestCreationStartsSlowly(t *testing.T) {
	quota := inErrorOf("QuotaExceeded", "no more")
	failing := func(failures int32) setOption {
		return func(s *machinev1alpha1.MachineSet) {
			s.Status.Backoff = &machinev1alpha1.Backoff{
				Template: (&fleet{Observed: Observed{Set: s}}).templateHash(), Failures: failures,
				Until: metav1.NewTime(now), Reason: machinev1alpha1.FailureCreateFailed, ErrorCode: "QuotaExceeded",
			}
		}
	}
	cases := map[string]struct {
		set      *machinev1alpha1.MachineSet
		machines [][]Machine
		want     int
	}{
		"ATemplateThatIsNotProvenStartsWithOne":         {set(100), nil, 1},
		"AClassThatAnotherSetHasProvenStartsWithAll":    {set(100, provenClass), nil, 100},
		"ACreationInErrorHoldsAProvenClassToo":          {set(100, provenClass), [][]Machine{several(2, provisioning, quota)}, 0},
		"NothingMoreUntilTheFirstHasAVM":                {set(100), [][]Machine{several(1, provisioning, age(9*time.Second))}, 0},
		"AllWhenTheFirstHasHadTenSeconds":               {set(100), [][]Machine{several(1, provisioning, age(10*time.Second))}, 99},
		"NothingMoreWhileOneIsBeingDeleted":             {set(100), [][]Machine{several(1, provisioning, age(10*time.Second)), {machine("x", running, terminating)}}, 0},
		"TwoMoreWhenOneHangsThatWasRefused":             {set(100), [][]Machine{several(1, provisioning, refusedUntil(now.Add(-time.Minute)))}, 2},
		"NothingMoreUntilTheyHangAsWell":                {set(100), [][]Machine{several(1, provisioning, refusedUntil(now.Add(-2*time.Minute))), several(2, provisioning, age(30*time.Second))}, 0},
		"TwiceAsManyWhenTheyDo":                         {set(100), [][]Machine{several(3, provisioning, refusedUntil(now.Add(-time.Minute)))}, 4},
		"AMachineWhoseVMIsNotRequestedDoesNotHang":      {set(100), [][]Machine{several(1, pending)}, 0},
		"AMachineThatIsRefusedDoesNotHang":              {set(100), [][]Machine{several(1, provisioning, quota)}, 0},
		"AMachineHangsAMinuteAfterItWasRefused":         {set(100), [][]Machine{several(1, provisioning, refusedUntil(now.Add(-59*time.Second)))}, 0},
		"ThoseThatHangDoNotHoldARefusedTemplate":        {set(100), [][]Machine{several(2, provisioning), {machine("x", provisioning, quota)}}, 0},
		"AfterFailedJoinsAVMIsNoProof":                  {set(100, failingToJoin), [][]Machine{several(1, joining, age(4*time.Minute))}, 0},
		"AFailedMachineThatIsPreservedIsNoTrial":        {set(100, failingToJoin), [][]Machine{several(1, failed, withVM, age(4*time.Minute), asks(preserveNow))}, 1},
		"OneThatIsOrderedIsOnTrialBeforeItIsSeen":       {set(100, failing(40), creating("b")), nil, 0},
		"AndAMachineHangsThatDoesNotJoinForFiveMinutes": {set(100, failingToJoin), [][]Machine{several(1, joining, age(5*time.Minute))}, 2},
		"AVMOpensTheWindowThoughItDoesNotRun":           {set(100), [][]Machine{several(1, provisioning, withVM)}, 99},
		"WhatIsInFlightCountsAfterAFailure":             {set(100, failing(1)), [][]Machine{several(7, joining), several(2, pending, age(0))}, 2},
		"MoreInFlightThanMayBeAddsNothing":              {set(100, failing(1)), [][]Machine{several(1, joining), several(5, pending, age(0))}, 0},
		"NoMoreThanAreMissing":                          {set(5), [][]Machine{several(3, joining)}, 2},
		"AHealthySetGrowsAtOnce":                        {set(1000), [][]Machine{several(100, running)}, 900},
		"AHealthySetIsNotHeldByOneThatIsSlow":           {set(200), [][]Machine{several(100, running), several(1, pending)}, 99},
		"MachinesOfAnotherVersionProveTheirClass":       {set(100), [][]Machine{several(50, running, outdated)}, 50},
		"TheirVMsAloneDoNot":                            {set(100), [][]Machine{several(50, joining, outdated)}, 1},
		"MachinesOfAnotherClassProveNothing":            {set(100), [][]Machine{several(50, running, ofClass("large"))}, 1},
		"MachinesOfAnotherFailureDomainProveNothing":    {set(100), [][]Machine{several(50, running, at("zone-b"))}, 1},
		"AVMThatFailedProvesNothing":                    {set(100), [][]Machine{several(50, failed, withVM)}, 1},
		"ACreationInErrorHoldsTheWindowDown":            {set(1000), [][]Machine{several(100, running), several(1, provisioning, quota, age(time.Minute))}, 0},
		"ACreationInErrorHoldsNothingAfterASuccess":     {set(1000), [][]Machine{several(100, running, age(time.Minute)), several(1, provisioning, quota, age(2*time.Minute))}, 899},
		"OneThatFlakesAmongManyOfItsAgeHoldsNothing":    {set(1000), [][]Machine{several(31, joining, age(time.Minute)), several(1, provisioning, quota, age(time.Minute))}, 968},
		"AnErrorOfAVMThatIsThereHoldsNothing":           {set(1000), [][]Machine{several(3, joining, quota)}, 997},
		"EachFailureInARowHalvesTheWindow":              {set(1000, failing(1)), [][]Machine{several(99, running)}, 50},
		"ManyFailuresInARowLeaveOneAtATime":             {set(1000, failing(40)), [][]Machine{several(99, running)}, 1},
		"WhileOneIsInFlightAfterFailuresNoneIsAdded":    {set(1000, failing(40)), [][]Machine{several(99, running), several(1, pending, age(0))}, 0},
		"WhatIsInFlightSinceBeforeTheFailureIsNoTrial":  {set(1000, failing(40)), [][]Machine{several(99, running), several(10, pending)}, 1},
		"AProviderIDThatOnlyTheSpecHasIsAVMAllTheSame":  {set(100), [][]Machine{several(1, provisioning, func(m *Machine) { id := "local:///a/b"; m.Spec.ProviderID = &id })}, 99},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Observed{Set: tc.set}
			for _, ms := range tc.machines {
				o.Machines = append(o.Machines, ms...)
			}
			if got := int(Plan(now, o).Status.Created) - 100; got != tc.want {
				t.Errorf("created %d, want %d", got, tc.want)
			}
		})
	}
}

// TestAFleetGrowsInTwoRounds counts the rounds until all requested Machines have their VM.
func TestAFleetGrowsInTwoRounds(t *testing.T) {
	s := set(300, created(0))
	var ms []Machine
	var rounds []int
	for len(ms) < 300 && len(rounds) < 20 {
		d := Plan(now, Observed{Set: s, Machines: ms})
		rounds = append(rounds, len(d.Machines)-len(ms))
		for _, m := range d.Machines[len(ms):] {
			ms = append(ms, machine(m.Name, provisioning, withVM))
		}
		s.Status = d.Status
	}
	if got := fmt.Sprint(rounds); got != "[1 299]" {
		t.Errorf("got %s", got)
	}
}

// TestCreationIsBounded holds for any set. While no Machine has a VM, at most one Machine is in flight
// until ten seconds after its VM was requested. Once one was refused, at most two are for each that hangs.
// None is added while one is refused, and there are never more than the set wants.
func TestCreationIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := set(rapid.Int32Range(0, 60).Draw(t, "replicas"))
		var ms []Machine
		withVMs, inFlight, hanging, refused, slow, wereRefused := 0, 0, 0, 0, 0, 0
		for i := range rapid.IntRange(0, 40).Draw(t, "machines") {
			phase := rapid.SampledFrom([]machinev1alpha1.MachinePhase{"", pending, provisioning, joining, running, unknown, failed}).Draw(t, "phase")
			old := rapid.SampledFrom([]time.Duration{5 * time.Second, 30 * time.Second, time.Hour}).Draw(t, "age")
			m := machine(fmt.Sprintf("m%02d", i), phase, age(old))
			if rapid.Bool().Draw(t, "in error") {
				inErrorOf("QuotaExceeded", "no more")(&m)
			}
			if rapid.IntRange(0, 3).Draw(t, "was refused") == 0 {
				refusedUntil(now.Add(-old))(&m)
			}
			if hasVM(m) {
				withVMs++
			} else if phase != failed {
				inFlight++
				if m.Status.RefusedUntil != nil {
					wereRefused++
				}
				if phase == provisioning && !inError(m) && old > 10*time.Second {
					slow++
				}
				switch {
				case inError(m):
					refused++
				case phase == provisioning && old > time.Minute:
					hanging++
				}
			}
			ms = append(ms, m)
		}
		d := Plan(now, Observed{Set: s, Machines: ms})
		n := int(d.Status.Created) - 100
		if n > 0 && withVMs == 0 && refused > 0 {
			t.Fatalf("%d created while %d are refused", n, refused)
		}
		if isFirstTry := wereRefused == 0 && slow > 0; !isFirstTry && n > 0 && withVMs == 0 && inFlight+n > 1+2*hanging {
			t.Fatalf("%d created beside %d in flight, with %d VMs", n, inFlight, withVMs)
		}
		if n > 0 && len(ms)+n > int(s.Spec.Replicas) {
			t.Fatalf("%d created beside %d of %d", n, len(ms), s.Spec.Replicas)
		}
		if n == 0 && inFlight == 0 && len(ms) < int(s.Spec.Replicas) {
			t.Fatalf("nothing is created though nothing is in flight, %d of %d are there", len(ms), s.Spec.Replicas)
		}
	})
}
