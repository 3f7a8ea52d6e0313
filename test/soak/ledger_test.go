package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A tale is a sequence of facts for a ledger.
type tale struct {
	*ledger
	now time.Time
	md  *machinev1alpha1.MachineDeployment
	set *machinev1alpha1.MachineSet
}

// beginning returns a tale of five Machines, with maxUnavailable 1 and maxSurge 1.
func beginning() *tale {
	t := &tale{ledger: newLedger(), now: time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)}
	t.md = &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md"}}
	t.md.Spec.Replicas = 5
	t.md.Spec.Strategy.RollingUpdate = machinev1alpha1.RollingUpdateBounds{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	t.md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt32(1))
	t.md.Spec.Template.Spec.Version = "v1"
	t.user(func(*machinev1alpha1.MachineDeployment) {})
	t.set = &machinev1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", Labels: map[string]string{machinev1alpha1.LabelDeployment: "md"}}}
	t.set.Spec.Replicas = 5
	t.sets(func(*machinev1alpha1.MachineSet) {})
	for i := range 5 {
		t.runs(fmt.Sprint("m", i))
	}
	t.settled()
	return t
}

func (t *tale) user(change func(*machinev1alpha1.MachineDeployment)) *tale {
	t.md = t.md.DeepCopy()
	change(t.md)
	t.onDeployment(t.now, t.md)
	return t
}

func (t *tale) sets(change func(*machinev1alpha1.MachineSet)) *tale {
	t.set = t.set.DeepCopy()
	change(t.set)
	t.onSet(t.now, t.set)
	return t
}

func (t *tale) gives(names ...string) *tale {
	return t.sets(func(s *machinev1alpha1.MachineSet) { s.Status.Dropping = append(s.Status.Dropping, names...) })
}

func (t *tale) is(name string, phase machinev1alpha1.MachinePhase, reason machinev1alpha1.FailureReason, change ...func(*machinev1alpha1.Machine)) *tale {
	m := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{machinev1alpha1.LabelDeployment: "md", machinev1alpha1.LabelSet: "set"},
	}}
	if e := t.of("md").machines[name]; e != nil {
		m = e.machine.DeepCopy()
	}
	m.Status.Phase, m.Status.FailureReason = phase, reason
	for _, c := range change {
		c(m)
	}
	t.onMachine(t.now, m)
	return t
}

func (t *tale) runs(name string) *tale {
	return t.is(name, machinev1alpha1.MachineRunning, "", func(m *machinev1alpha1.Machine) {
		m.Status.NodeRef = &machinev1alpha1.NodeReference{Name: name}
		m.Status.ProviderID = "local:///" + name
	})
}

func (t *tale) fails(name string, reason machinev1alpha1.FailureReason) *tale {
	return t.is(name, machinev1alpha1.MachineFailed, reason)
}

// goes starts the deletion of a Machine.
func (t *tale) goes(name string) *tale {
	m := t.of("md").machines[name].machine
	return t.is(name, m.Status.Phase, m.Status.FailureReason, func(m *machinev1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: t.now} })
}

func (t *tale) strikes(k kind, name string) *tale { t.strike(t.now, k, "md", name); return t }

func (t *tale) after(d time.Duration) *tale { t.now = t.now.Add(d); return t }

func rollsTo(version string) func(*machinev1alpha1.MachineDeployment) {
	return func(md *machinev1alpha1.MachineDeployment) { md.Spec.Template.Spec.Version = version }
}

func scalesTo(n int32) func(*machinev1alpha1.MachineDeployment) {
	return func(md *machinev1alpha1.MachineDeployment) { md.Spec.Replicas = n }
}

func TestLedger(t *testing.T) {
	const unhealthy, lost = machinev1alpha1.FailureNodeUnhealthy, machinev1alpha1.FailureVMLost
	coming := machinev1alpha1.MachinePending
	cases := map[string]struct {
		show func(t *tale)
		// broken is a part of the first violation, "" for none.
		broken string
	}{
		"NothingIsFine":              {func(*tale) {}, ""},
		"ARolloutWithinItsBounds":    {func(t *tale) { t.user(rollsTo("v2")).is("n", coming, "").goes("m0").runs("n").goes("m1") }, ""},
		"ARolloutThatTakesTooMany":   {func(t *tale) { t.user(rollsTo("v2")).goes("m0").goes("m1") }, "Machine m1 was deleted, and 3 of md are left available"},
		"ARolloutThatCreatesTooMany": {func(t *tale) { t.user(rollsTo("v2")).is("n", coming, "").is("o", coming, "") }, "with o there are 7 Machines of md, of at most 6"},
		"ThoseThatGoCount":           {func(t *tale) { t.user(rollsTo("v2")).goes("m0").is("n", coming, "").is("o", coming, "") }, "with o there are 7"},
		"ButNotThoseThatFailed": {func(t *tale) {
			t.strikes(vmVanishes, "m0").fails("m0", lost).gives("m0").goes("m0").is("n", coming, "").user(rollsTo("v2")).is("o", coming, "")
		}, ""},
		"ALossIsNoDeletion": {func(t *tale) {
			t.strikes(vmVanishes, "m0").fails("m0", lost).strikes(vmVanishes, "m1").fails("m1", lost).user(rollsTo("v2")).goes("m2")
		}, ""},
		"AndForgottenWhenAllAreThereAgain": {func(t *tale) {
			t.strikes(vmVanishes, "m0").fails("m0", lost).gives("m0").goes("m0").runs("n").user(rollsTo("v2")).goes("m1").goes("m2")
		}, "Machine m2 was deleted, and 3 of md are left"},
		"AScaleDown":                      {func(t *tale) { t.user(scalesTo(3)).goes("m0").goes("m1") }, ""},
		"AScaleDownBelowWhatIsWanted":     {func(t *tale) { t.user(scalesTo(4)).goes("m0").goes("m1").goes("m2") }, "Machine m2 was deleted"},
		"ADeletionForNothing":             {func(t *tale) { t.goes("m0") }, "Machine m0 of md runs, and was deleted for nothing"},
		"ADeletionByHand":                 {func(t *tale) { t.strikes(machineDelete, "m0").goes("m0") }, ""},
		"ADeletionForAPausedRollout":      {func(t *tale) { pauses(t).after(time.Minute).goes("m0") }, "for nothing"},
		"OneThatWasDecidedBeforeThePause": {func(t *tale) { pauses(t).after(time.Second).goes("m0") }, ""},
		"AFailureThatWasDone":             {func(t *tale) { t.strikes(kubeletStops, "m0").fails("m0", unhealthy) }, ""},
		"AFailureForNothing":              {func(t *tale) { t.fails("m0", unhealthy) }, "Machine m0 of md failed with NodeUnhealthy for nothing"},
		"AFailureForWhatWasDoneToAnother": {func(t *tale) { t.strikes(kubeletStops, "m1").fails("m0", unhealthy) }, "for nothing"},
		"AFailureForACutIsForNothing":     {func(t *tale) { t.do(t.now, targetCut); t.fails("m0", unhealthy) }, "for nothing"},
		"OneThatDidNotJoinAfterACutIsNot": {func(t *tale) { t.do(t.now, targetCut); t.fails("m0", machinev1alpha1.FailureJoinTimeout) }, ""},
		"ACreationWhileFrozen":            {func(t *tale) { freezes(t).after(time.Minute).is("n", coming, "") }, "was created while md was frozen"},
		"OneThatWasDecidedBefore":         {func(t *tale) { freezes(t).after(time.Second).is("n", coming, "") }, ""},
		"ACreationWhileTheClusterIsCut":   {func(t *tale) { t.cut = t.now; t.after(2*time.Minute).is("n", coming, "") }, "was created while its cluster was cut off"},
		"TwoVMsOfOneMachine":              {func(t *tale) { t.onVM("m0", "vm-1"); t.onVM("m0", "vm-1"); t.onVM("m0", "vm-2") }, "had the VMs [vm-1 vm-2]"},
		"TwoMachinesOfOneVM": {func(t *tale) {
			t.is("m0", "Running", "", func(m *machinev1alpha1.Machine) { m.Status.ProviderID = "local:///m1" })
		}, "share the VM local:///m1"},
		"OneReplacementAfterTheOther": {func(t *tale) { twoFail(t).gives("m0").goes("m0").runs("n").after(time.Minute).gives("m1").goes("m1") }, ""},
		"TwoReplacementsAtATime":      {func(t *tale) { twoFail(t).gives("m0", "m1").after(time.Minute).goes("m0").goes("m1") }, "was replaced while others were: 2 replacements"},
		"TheNextWhileTheFirstComesUp": {func(t *tale) {
			twoFail(t).gives("m0").goes("m0").is("n", coming, "").gives("m1").after(time.Minute).goes("m1")
		}, "Machine m1 was replaced while others were"},
		"WhatIsReportedLateIsNoReplacementTooMany": {func(t *tale) { twoFail(t).gives("m0").goes("m0").gives("m1").runs("n").after(time.Minute).goes("m1") }, ""},
		"AScaleDownOfFailedOnesIsNone": {func(t *tale) {
			twoFail(t).user(scalesTo(3)).sets(func(s *machinev1alpha1.MachineSet) { s.Spec.Replicas = 3 }).gives("m0", "m1").after(time.Minute).goes("m0").goes("m1")
		}, ""},
		"AReplacementWhileTheClusterIsCut": {func(t *tale) { twoFail(t); t.cut = t.now; t.after(2 * time.Minute).gives("m0") }, "Machine m0 was replaced while its cluster was cut off"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reported := beginning()
			tc.show(reported)
			all := strings.Join(reported.broken, "\n")
			if tc.broken == "" && all != "" || !strings.Contains(all, tc.broken) {
				t.Errorf("it says %q, want %q", all, tc.broken)
			}
		})
	}
}

func pauses(t *tale) *tale {
	return t.user(rollsTo("v2")).user(func(md *machinev1alpha1.MachineDeployment) { md.Spec.Paused = true })
}

func freezes(t *tale) *tale {
	return t.strikes(machineDelete, "m0").goes("m0").user(func(md *machinev1alpha1.MachineDeployment) {
		md.Labels = map[string]string{machinev1alpha1.LabelFreeze: "true"}
	})
}

func twoFail(t *tale) *tale {
	for _, name := range []string{"m0", "m1"} {
		t.strikes(vmVanishes, name).fails(name, machinev1alpha1.FailureVMLost)
	}
	return t
}

func TestTheSameSeedGivesTheSameRounds(t *testing.T) {
	all := map[kind]bool{}
	for n := range 60 {
		a, b := round(7, n, 20), round(7, n, 20)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("round %d: %+v and %+v", n, a[i], b[i])
			}
			all[a[i].kind] = true
		}
	}
	for _, w := range weights {
		if !all[w.kind] {
			t.Errorf("%q never comes", w.kind)
		}
	}
	if a, b := round(7, 1, 20), round(8, 1, 20); a[0] == b[0] && a[1] == b[1] {
		t.Error("another seed gives the same round")
	}
}
