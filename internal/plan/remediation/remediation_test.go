package remediation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
)

func TestLimits(t *testing.T) {
	of := func(s string) *intstr.IntOrString { return ptr.To(intstr.Parse(s)) }
	cases := map[string]struct {
		inFlight, unhealthy *intstr.IntOrString
		replicas            int32
		want                Limits
		problem             string
	}{
		"OneAtATimeByDefault":              {nil, nil, 10, Limits{InFlight: 1, Unhealthy: ptr.To[int32](4)}, ""},
		"TwoFifthsMayBeUnhealthyByDefault": {nil, nil, 30, Limits{InFlight: 1, Unhealthy: ptr.To[int32](12)}, ""},
		"OneMayBeOfOneByDefault":           {nil, nil, 1, Limits{InFlight: 1, Unhealthy: ptr.To[int32](1)}, ""},
		"OneMayBeOfTwoByDefault":           {nil, nil, 2, Limits{InFlight: 1, Unhealthy: ptr.To[int32](1)}, ""},
		"TwoMayBeOfThreeByDefault":         {nil, nil, 3, Limits{InFlight: 1, Unhealthy: ptr.To[int32](2)}, ""},
		"NumbersAreTheirOwn":               {of("3"), of("4"), 10, Limits{InFlight: 3, Unhealthy: ptr.To[int32](4)}, ""},
		"PercentagesAreRoundedUp":          {of("11%"), of("41%"), 10, Limits{InFlight: 2, Unhealthy: ptr.To[int32](5)}, ""},
		"OfOneMachineOneMayBeReplaced":     {of("1%"), of("1%"), 1, Limits{InFlight: 1, Unhealthy: ptr.To[int32](1)}, ""},
		"NothingIsReplacedWithinNoBudget":  {of("0"), of("0"), 10, Limits{Unhealthy: ptr.To[int32](0)}, ""},
		"AnyNumberMayBeUnhealthyOfAll":     {nil, of("100%"), 10, Limits{InFlight: 1}, ""},
		"ANumberMustNotBeNegative": {of("-1"), nil, 10, Limits{},
			`spec.remediation.maxInFlight: "-1" must be a number from 0 to 10000, or a percentage from 0% to 100%; no Machine is replaced until it is`},
		"APercentageMustBeOne": {nil, of("half"), 10, Limits{},
			`spec.remediation.maxUnhealthy: "half" must be a number from 0 to 10000, or a percentage from 0% to 100%; no Machine is replaced until it is`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, problem := LimitsOf(machinev1alpha1.Remediation{MaxInFlight: tc.inFlight, MaxUnhealthy: tc.unhealthy}, tc.replicas)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			said := ""
			if problem != nil {
				said = problem.Message
			}
			if said != tc.problem {
				t.Errorf("the problem is %q, want %q", said, tc.problem)
			}
		})
	}
}

func TestTheConditionAndItsEventsSayWhyNothingIsReplaced(t *testing.T) {
	one := Limits{InFlight: 1, Unhealthy: ptr.To[int32](2)}
	cases := map[string]struct {
		limits          Limits
		state           State
		before          string
		reason, message string
		events          []string
	}{
		"NothingWasEverUnhealthy":              {one, State{Machines: 5, Starting: 3}, "", "", "", nil},
		"WhatCanBeReplacedIs":                  {one, State{Machines: 5, Unhealthy: 2, Waiting: 1}, "", "", "", nil},
		"ABudgetThatNothingWaitsForIsNoReason": {Limits{}, State{Machines: 5}, "", "", "", nil},
		"TooManyAreUnhealthy": {one, State{Machines: 5, Unhealthy: 3}, "", machinev1alpha1.ReasonTooManyUnhealthy,
			"3 of 5 Machines are unhealthy: none is replaced while more than 2 are", []string{machinev1alpha1.ReasonTooManyUnhealthy}},
		"WhichIsReportedOnce": {one, State{Machines: 5, Unhealthy: 4}, machinev1alpha1.ReasonTooManyUnhealthy, machinev1alpha1.ReasonTooManyUnhealthy,
			"4 of 5 Machines are unhealthy: none is replaced while more than 2 are", nil},
		"AndWhenItIsOver": {one, State{Machines: 5, Unhealthy: 2}, machinev1alpha1.ReasonTooManyUnhealthy, machinev1alpha1.ReasonRemediationAllowed, "", []string{machinev1alpha1.ReasonRemediationAllowed}},
		"OneWaitsForAnother": {one, State{Machines: 5, Starting: 1, Unhealthy: 2, Waiting: 2}, "", machinev1alpha1.ReasonWaitingForMachines,
			"2 wait to be replaced, 1 are starting, and the next is replaced when fewer than 1 are; to replace it sooner, delete a Machine that does not start, or raise spec.remediation.maxInFlight", nil},
		"OneWaitsToBeRebooted": {one, State{Machines: 5, Starting: 1, Unhealthy: 2, Rebooting: 1}, "", machinev1alpha1.ReasonWaitingForMachines,
			"1 wait to be rebooted, 1 are starting, and the next is rebooted when fewer than 1 are; to reboot it sooner, delete a Machine that does not start, or raise spec.remediation.maxInFlight", nil},
		"OneWaitsForAReboot": {Limits{}, State{Machines: 5, Waiting: 2, Rebooting: 1}, "", machinev1alpha1.ReasonNoBudget,
			"maxInFlight is 0: 2 wait to be replaced and 1 to be rebooted, and none is", nil},
		"WhichEndsWithoutAWord": {one, State{Machines: 5}, machinev1alpha1.ReasonWaitingForMachines, machinev1alpha1.ReasonRemediationAllowed, "", nil},
		"ThereIsNoBudget": {Limits{}, State{Machines: 5, Waiting: 2}, "", machinev1alpha1.ReasonNoBudget,
			"maxInFlight is 0: 2 wait to be replaced, and none is", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before []metav1.Condition
			if tc.before != "" {
				before = []metav1.Condition{{Type: machinev1alpha1.ConditionRemediationAllowed, Reason: tc.before}}
			}
			c := Condition(tc.limits, nil, tc.state, before)
			reason, message := "", ""
			if c != nil {
				reason, message = c.Reason, c.Message
			}
			if reason != tc.reason || message != tc.message {
				t.Errorf("the condition says %s: %q, want %s: %q", reason, message, tc.reason, tc.message)
			}
			var events []string
			for _, e := range Events(c, before) {
				events = append(events, e.Reason)
			}
			if diff := cmp.Diff(tc.events, events); diff != "" {
				t.Errorf("events: -want +got:\n%s", diff)
			}
		})
	}
}

func TestNothingIsReplacedUntilTheSpecIsValid(t *testing.T) {
	invalid := &plan.Problem{Reason: machinev1alpha1.ReasonInvalidRemediation, Message: "spec.remediation.maxInFlight: must be a number"}
	c := Condition(Limits{}, invalid, State{Machines: 5, Waiting: 2}, nil)
	want := plan.Condition{Type: machinev1alpha1.ConditionRemediationAllowed, Status: "False", Reason: machinev1alpha1.ReasonInvalidRemediation, Message: invalid.Message}
	if c == nil || *c != want {
		t.Errorf("got %+v, want %+v", c, want)
	}
}

func TestRemediationIsStalledIfAUserMustAct(t *testing.T) {
	refused := func(reason string) *plan.Condition {
		return &plan.Condition{Type: machinev1alpha1.ConditionRemediationAllowed, Status: "False", Reason: reason, Message: "why"}
	}
	cases := map[string]struct {
		allowed *plan.Condition
		waiting int32
		want    string
	}{
		"NothingWasEverUnhealthy":           {nil, 0, ""},
		"NothingIsRefused":                  {nil, 1, ""},
		"NothingWaits":                      {refused(machinev1alpha1.ReasonTooManyUnhealthy), 0, ""},
		"TooManyAreUnhealthy":               {refused(machinev1alpha1.ReasonTooManyUnhealthy), 1, "why; repair or delete unhealthy Machines, or raise spec.remediation.maxUnhealthy"},
		"ThereIsNoBudget":                   {refused(machinev1alpha1.ReasonNoBudget), 1, "why; set spec.remediation.maxInFlight to 1 or more"},
		"TheSpecIsInvalid":                  {refused(machinev1alpha1.ReasonInvalidRemediation), 1, "why"},
		"ReplacementsThatWaitForOneAnother": {refused(machinev1alpha1.ReasonWaitingForMachines), 1, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if c := Stalled(tc.allowed, tc.waiting); c != nil {
				got = c.Message
			}
			if got != tc.want {
				t.Errorf("stalled because %q, want %q", got, tc.want)
			}
			if tc.allowed != nil && tc.allowed.Message != "why" {
				t.Error("the condition itself was changed")
			}
		})
	}
}
