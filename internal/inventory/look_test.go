package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func minutes(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

func parameters() v1alpha1.InventoryParameters {
	return v1alpha1.InventoryParameters{
		Installations: []string{"ours"},
		Interval:      metav1.Duration{Duration: 5 * time.Minute},
		ConfirmAfter:  metav1.Duration{Duration: 15 * time.Minute},
	}
}

func vm(id, installation string) VM {
	return VM{ExternalName: id, ProviderID: "cloud://" + id, CreatedAt: noon, Tags: map[string]string{
		machinev1alpha1.TagInstallation: installation, machinev1alpha1.TagNamespace: "ns", machinev1alpha1.TagMachine: "m", machinev1alpha1.TagMachineUID: "uid-" + id,
	}}
}

// unclaimed returns the entry of a VM that was first seen at a minute, and confirmed at another one
// if that is not negative.
func unclaimed(id string, since, confirmed int) v1alpha1.UnclaimedVirtualMachine {
	created := metav1.NewTime(noon)
	u := v1alpha1.UnclaimedVirtualMachine{
		ExternalName: id, ProviderID: "cloud://" + id, Installation: "ours", Namespace: "ns", Machine: "m", MachineUID: "uid-" + id,
		CreatedAt: &created, FirstSeen: metav1.NewTime(minutes(since)),
	}
	if confirmed >= 0 {
		at := metav1.NewTime(minutes(confirmed))
		u.ConfirmedAt = &at
	}
	return u
}

// of returns an entry with another installation.
func of(installation string, u v1alpha1.UnclaimedVirtualMachine) v1alpha1.UnclaimedVirtualMachine {
	u.Installation = installation
	return u
}

// with returns an observation with a number of claimed VMs.
func with(claimed int32, o v1alpha1.InventoryObservation) v1alpha1.InventoryObservation {
	o.ClaimedCount = claimed
	return o
}

func said(u ...v1alpha1.UnclaimedVirtualMachine) v1alpha1.InventoryObservation {
	return v1alpha1.InventoryObservation{Unclaimed: u, UnclaimedCount: int32(len(u))}
}

func TestAfter(t *testing.T) {
	another := unclaimed("a", 0, -1)
	another.MachineUID = "uid-of-another"
	renamed := unclaimed("a", 0, -1)
	renamed.Name = "web-0-abcde"
	named := vm("a", "ours")
	named.Name = "web-1-abcde"
	nowNamed := unclaimed("a", 20, -1)
	nowNamed.Name = "web-1-abcde"
	cases := map[string]struct {
		before v1alpha1.InventoryObservation
		at     int
		vms    []VM
		claims []string
		change func(*v1alpha1.InventoryParameters)
		want   v1alpha1.InventoryObservation
	}{
		"NothingIsThere":                       {want: said()},
		"AClaimedVMIsNotReported":              {vms: []VM{vm("a", "ours")}, claims: []string{"a"}, want: with(1, said())},
		"TheVMsOfOthersAreNotClaimed":          {vms: []VM{vm("a", "ours"), vm("b", "theirs"), vm("c", "ours"), vm("c", "ours")}, claims: []string{"a", "b", "c", "d"}, want: with(2, said())},
		"AnIgnoredVMIsNotClaimedEither":        {vms: []VM{vm("a", "ours")}, claims: []string{"a"}, change: func(p *v1alpha1.InventoryParameters) { p.Ignore = []string{"a"} }, want: said()},
		"AnUnclaimedVMIsSeenForTheFirstTime":   {at: 1, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 1, -1))},
		"AVMOfAnotherInstallationIsNotOurs":    {vms: []VM{vm("a", "theirs"), vm("b", "")}, want: said()},
		"AVMWithoutExternalNameIsPassedOver":   {vms: []VM{vm("", "ours")}, want: said()},
		"AnIgnoredVMIsForgotten":               {before: said(unclaimed("a", 0, 15)), at: 20, vms: []VM{vm("a", "ours")}, change: func(p *v1alpha1.InventoryParameters) { p.Ignore = []string{"a"} }, want: said()},
		"ASecondLookTooSoonConfirmsNothing":    {before: said(unclaimed("a", 0, -1)), at: 14, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 0, -1))},
		"ASecondLookInTimeConfirms":            {before: said(unclaimed("a", 0, -1)), at: 15, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 0, 15))},
		"WhatIsConfirmedStaysAsItIs":           {before: said(unclaimed("a", 0, 15)), at: 90, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 0, 15))},
		"ALongerWaitIsConfirmedAnew":           {before: said(unclaimed("a", 0, 15)), at: 20, vms: []VM{vm("a", "ours")}, change: func(p *v1alpha1.InventoryParameters) { p.ConfirmAfter.Duration = time.Hour }, want: said(unclaimed("a", 0, -1))},
		"AShorterWaitIsConfirmedAtTheNext":     {before: said(unclaimed("a", 0, -1)), at: 2, vms: []VM{vm("a", "ours")}, change: func(p *v1alpha1.InventoryParameters) { p.ConfirmAfter.Duration = time.Minute }, want: said(unclaimed("a", 0, 2))},
		"OneLookIsNeverEnough":                 {at: 5, vms: []VM{vm("a", "ours")}, change: func(p *v1alpha1.InventoryParameters) { p.ConfirmAfter.Duration = 0 }, want: said(unclaimed("a", 5, -1))},
		"AVMThatIsGoneIsForgotten":             {before: said(unclaimed("a", 0, 15)), at: 20, want: said()},
		"AVMThatIsClaimedAgainIsForgotten":     {before: said(unclaimed("a", 0, 15)), at: 20, vms: []VM{vm("a", "ours")}, claims: []string{"a"}, want: with(1, said())},
		"AVMOfAnotherInstallationStartsAnew":   {before: said(of("former", unclaimed("a", 0, -1))), at: 20, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 20, -1))},
		"AVMOfAnotherMachineStartsAnew":        {before: said(another), at: 20, vms: []VM{vm("a", "ours")}, want: said(unclaimed("a", 20, -1))},
		"AVMOfAnotherNameStartsAnew":           {before: said(renamed), at: 20, vms: []VM{named}, want: said(nowNamed)},
		"TheLongestUnclaimedComeFirst":         {before: said(unclaimed("b", 0, -1)), at: 1, vms: []VM{vm("a", "ours"), vm("b", "ours")}, want: said(unclaimed("b", 0, -1), unclaimed("a", 1, -1))},
		"AVMThatIsListedTwiceIsOne":            {at: 1, vms: []VM{vm("a", "ours"), vm("a", "ours")}, want: said(unclaimed("a", 1, -1))},
		"VMsOfFormerInstallationsCanBeOurs":    {at: 1, vms: []VM{vm("a", "former")}, change: func(p *v1alpha1.InventoryParameters) { p.Installations = []string{"ours", "former"} }, want: said(of("former", unclaimed("a", 1, -1)))},
		"AVMOfWhichOnlyTheInstallationIsKnown": {at: 1, vms: []VM{{ExternalName: "a", Tags: map[string]string{machinev1alpha1.TagInstallation: "ours"}}}, want: said(v1alpha1.UnclaimedVirtualMachine{ExternalName: "a", Installation: "ours", FirstSeen: metav1.NewTime(minutes(1))})},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := parameters()
			if tc.change != nil {
				tc.change(&p)
			}
			l := Look{At: minutes(tc.at), VMs: tc.vms, Claims: map[string]v1alpha1.Claim{}}
			for _, c := range tc.claims {
				l.Claims[c] = v1alpha1.Claim{ExternalName: c}
			}
			if d := cmp.Diff(tc.want, l.After(tc.before, p)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestNoMoreThanTheFirstHundredAreNamed(t *testing.T) {
	l := Look{At: noon}
	for i := range 250 {
		l.VMs = append(l.VMs, vm(fmt.Sprintf("vm-%03d", i), "ours"))
	}
	o := l.After(said(unclaimed("vm-249", -5, -1)), parameters())
	if o.UnclaimedCount != 250 || len(o.Unclaimed) != 100 || o.Unclaimed[0].ExternalName != "vm-249" || o.Unclaimed[1].ExternalName != "vm-000" {
		t.Errorf("%d of %d, the first %v", len(o.Unclaimed), o.UnclaimedCount, o.Unclaimed[:2])
	}
}

func TestNext(t *testing.T) {
	cases := map[string]struct {
		says v1alpha1.InventoryObservation
		at   int
		want time.Duration
	}{
		"WithNothingToConfirmAfterTheInterval": {said(unclaimed("a", 0, 15)), 20, 5 * time.Minute},
		"SoonerWhenSomethingIsDue":             {said(unclaimed("a", 0, -1)), 13, 2 * time.Minute},
		"NotLaterThanTheInterval":              {said(unclaimed("a", 0, -1)), 0, 5 * time.Minute},
		"NeverAtOnce":                          {said(unclaimed("a", 0, -1)), 20, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := next(minutes(tc.at), tc.says, parameters()); got != tc.want {
				t.Errorf("after %s, want %s", got, tc.want)
			}
		})
	}
}

// TestWhatIsSaidFollowsFromCompleteLooksAlone checks random looks. A VM is confirmed only if two
// looks at a sufficient distance, and all looks between them, saw it unclaimed. Looks that see the
// same VMs return the same observation.
func TestWhatIsSaidFollowsFromCompleteLooksAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := parameters()
		var before v1alpha1.InventoryObservation
		at := noon
		since := map[string]time.Time{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.Int64Range(1, int64(10*time.Minute)).Draw(t, "later")))
			l := Look{At: at, Claims: map[string]v1alpha1.Claim{}}
			unclaimed := map[string]bool{}
			for _, id := range []string{"a", "b", "c", "d"} {
				there, claimed := rapid.Bool().Draw(t, id+" there"), rapid.Bool().Draw(t, id+" claimed")
				ours := rapid.SampledFrom([]string{"ours", "ours", "theirs"}).Draw(t, id+" of")
				if there {
					l.VMs = append(l.VMs, vm(id, ours))
				}
				if claimed {
					l.Claims[id] = v1alpha1.Claim{ExternalName: id}
				}
				unclaimed[id] = there && !claimed && ours == "ours"
				if !unclaimed[id] {
					delete(since, id)
				} else if since[id].IsZero() {
					since[id] = at
				}
			}
			after := l.After(before, p)
			for _, u := range after.Unclaimed {
				if !unclaimed[u.ExternalName] {
					t.Fatalf("%s is reported, and is not unclaimed", u.ExternalName)
				}
				if u.FirstSeen.Time.Before(since[u.ExternalName]) {
					t.Fatalf("%s was seen first at %s, but not unclaimed before %s", u.ExternalName, u.FirstSeen, since[u.ExternalName])
				}
				if c := u.ConfirmedAt; c != nil && (c.Sub(u.FirstSeen.Time) < p.ConfirmAfter.Duration || at.Sub(since[u.ExternalName]) < p.ConfirmAfter.Duration) {
					t.Fatalf("%s is confirmed after %s", u.ExternalName, at.Sub(since[u.ExternalName]))
				}
				delete(unclaimed, u.ExternalName)
			}
			for id, missing := range unclaimed {
				if missing {
					t.Fatalf("%s is unclaimed, and not reported", id)
				}
			}
			if again := l.After(after, p); cmp.Diff(after, again) != "" {
				t.Fatalf("the same look says something else:\n%s", cmp.Diff(after, again))
			}
			before = after
		}
	})
}
