package orphans

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

const grace = 15 * time.Minute

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func vm(id string) VM {
	return VM{ExternalName: id, ProviderID: "cloud://" + id, Installation: "ours", Owner: Owner{Namespace: "ns", Machine: "m-" + id, UID: types.UID("uid-" + id)}}
}

type change[T any] func(*T)

// unclaimed returns a confirmed unclaimed VM without a Machine, a VM resource or a Node.
func unclaimed(id string, changes ...change[Unclaimed]) Unclaimed {
	at := noon.Add(grace)
	u := Unclaimed{VM: vm(id), FirstSeen: noon, ConfirmedAt: &at, Node: Node{Looked: true}}
	for _, c := range changes {
		c(&u)
	}
	return u
}

// adopted returns an adopted VM that its provider found, without a Node.
func adopted(id string, changes ...change[Adopted]) Adopted {
	a := Adopted{VM: vm(id), Observed: true, Seen: true, Node: Node{Looked: true}}
	for _, c := range changes {
		c(&a)
	}
	return a
}

func mayDelete(a *Adopted)   { a.MayDelete = true }
func terminating(a *Adopted) { a.Terminating, a.Observed = true, false }

func observed(policy machinev1alpha1.OrphanPolicy, changes ...change[Observed]) Observed {
	c := &machinev1alpha1.OrphanCollector{ObjectMeta: metav1.ObjectMeta{Name: "local", UID: "c", Generation: 3}}
	c.Spec.Policy = policy
	c.Spec.GracePeriod.Duration = grace
	c.Spec.MaxOrphans = 10
	o := Observed{Collector: c, Installation: "ours", Inventory: Inventory{Claimed: 200}}
	for _, c := range changes {
		c(&o)
	}
	return o
}

func seen(u ...Unclaimed) change[Observed] {
	return func(o *Observed) {
		o.Inventory.Unclaimed, o.Inventory.Count = u, int32(len(u))
	}
}

// claimed sets the number of claimed VMs.
func claimed(n int32) change[Observed] { return func(o *Observed) { o.Inventory.Claimed = n } }

// confirmed by a user.
func confirmed(names ...string) change[Observed] {
	return func(o *Observed) { o.Collector.Spec.ConfirmedOrphans = names }
}

// gone makes installations proven to be gone.
func gone(installations ...string) change[Observed] {
	return func(o *Observed) {
		o.Gone = map[string]bool{}
		for _, i := range installations {
			o.Gone[i] = true
		}
	}
}

// Former VMs are those that another installation created.
func formerUnclaimed(u *Unclaimed) { u.Installation = "former" }
func formerAdopted(a *Adopted)     { a.Installation = "former" }

func taken(a ...Adopted) change[Observed] { return func(o *Observed) { o.Adopted = a } }

// says formats a decision: the desired resources, and the status.
func says(d Decision) string {
	var resources, orphans []string
	for _, r := range d.Resources {
		right := "observe"
		if r.MayDelete {
			right = "delete"
		}
		resources = append(resources, r.ExternalName+":"+right)
	}
	slices.Sort(resources)
	for _, o := range d.Status.VirtualMachines {
		orphans = append(orphans, o.ExternalName+":"+string(o.State))
	}
	return fmt.Sprintf("%v %v %s", resources, orphans, d.Conditions[0].Reason)
}

func TestPlan(t *testing.T) {
	const (
		report = machinev1alpha1.OrphanReport
		erase  = machinev1alpha1.OrphanDelete
	)
	pending := func(o *Observed) { o.Inventory.Pending = true }
	broken := func(o *Observed) { o.Inventory.Problem = "the list failed" }
	cases := map[string]struct {
		o    Observed
		want string
	}{
		"WithoutUnclaimedVMsThereIsNoOrphan": {observed(erase), "[] [] NoOrphans"},
		"AnOrphanIsReported":                 {observed(report, seen(unclaimed("a"))), "[] [a:Found] Reported"},
		"AnOrphanIsAdoptedFirst":             {observed(erase, seen(unclaimed("a"))), "[a:observe] [a:Adopted] Deleting"},
		"AVMThatIsNotConfirmedIsNone": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.ConfirmedAt = nil }))), "[] [] NoOrphans",
		},
		"AVMThatIsConfirmedTooSoonForTheGracePeriodIsNone": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { at := noon.Add(grace - time.Second); u.ConfirmedAt = &at }))), "[] [] NoOrphans",
		},
		"AVMWhoseMachineIsThereIsNone": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.Machine = true }))), "[] [] NoOrphans",
		},
		"AVMThatMayBeBeingCreatedIsNone": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.Resource = true }))), "[] [] NoOrphans",
		},
		"FromAListThatFailedNothingIsConcluded":        {observed(erase, seen(unclaimed("a")), broken), "[] [] InventoryUnavailable"},
		"FromAListThatIsStillToComeNothingIsConcluded": {observed(erase, seen(unclaimed("a")), pending), "[] [] InventoryPending"},
		"WithoutAnInstallationNothingIsConcluded": {observed(erase, seen(unclaimed("a")), func(o *Observed) {
			o.InstallationProblem = &shared.Problem{Reason: "InstallationUnknown"}
			o.InstallationProblem.Message = "none"
		}), "[] [] InstallationUnknown"},
		"AnAdoptedVMThatWasSeenMayBeDeleted":             {observed(erase, taken(adopted("a"))), "[a:delete] [a:Adopted] Deleting"},
		"AnAdoptedVMThatWasNotSeenYetMayNot":             {observed(erase, taken(adopted("a", func(a *Adopted) { a.Seen = false }))), "[a:observe] [a:Adopted] Deleting"},
		"AVMThatMayBeDeletedIs":                          {observed(erase, taken(adopted("a", mayDelete))), "[] [a:Deleting] Deleting"},
		"AVMThatMayBeDeletedIsLookedAtOnceMore":          {observed(erase, taken(adopted("a", mayDelete, func(a *Adopted) { a.Seen = false }))), "[a:delete] [a:Adopted] Deleting"},
		"ADeletionIsWaitedFor":                           {observed(erase, taken(adopted("a", mayDelete, terminating))), "[] [a:Deleting] Deleting"},
		"AForgottenVMIsNamedAgainBeforeAnythingElse":     {observed(erase, taken(adopted("a", mayDelete, func(a *Adopted) { a.Observed = false }))), "[a:delete] [a:Adopted] Deleting"},
		"AnAdoptedVMWhoseMachineIsThereIsGivenBack":      {observed(erase, taken(adopted("a", func(a *Adopted) { a.Machine = true }))), "[] [] NoOrphans"},
		"TheRightToDeleteGoesBeforeAVMIsGivenBack":       {observed(erase, taken(adopted("a", mayDelete, func(a *Adopted) { a.Resource = true }))), "[a:observe] [a:Adopted] Deleting"},
		"WithThePolicyReportAdoptedVMsAreGivenBack":      {observed(report, taken(adopted("a"), adopted("b", mayDelete))), "[b:observe] [b:Adopted] Reported"},
		"AnAdoptedVMThatIsGoneIsForgotten":               {observed(erase, taken(adopted("a", func(a *Adopted) { a.Seen, a.Missing = false, true }))), "[] [a:Adopted] Deleting"},
		"WhileTheListFailsAdoptedVMsStayAsTheyAre":       {observed(erase, taken(adopted("a"), adopted("b", mayDelete)), broken), "[a:observe b:delete] [a:Adopted b:Adopted] InventoryUnavailable"},
		"WhileTheListIsStillToComeTheyStayToo":           {observed(erase, taken(adopted("a"), adopted("b", mayDelete)), pending), "[a:observe b:delete] [a:Adopted b:Adopted] InventoryPending"},
		"AVMThatIsAdoptedIsNotAdoptedAgain":              {observed(erase, seen(unclaimed("a")), taken(adopted("a", func(a *Adopted) { a.Seen = false }))), "[a:observe] [a:Adopted] Deleting"},
		"ADeletedVMThatTheListStillHasIsNotAdoptedAgain": {observed(erase, seen(unclaimed("a")), taken(adopted("a", mayDelete, terminating))), "[] [a:Deleting] Deleting"},
		"ManyOrphansAreLeftToPeople": {
			observed(erase, seen(unclaimed("a"), unclaimed("b"), unclaimed("c")), func(o *Observed) { o.Collector.Spec.MaxOrphans = 2 }),
			"[] [a:Found b:Found c:Found] TooManyOrphans",
		},
		"ThenNoAdoptedVMIsDeletedEither": {
			observed(erase, seen(unclaimed("a"), unclaimed("b")), taken(adopted("c", mayDelete), adopted("d")), func(o *Observed) { o.Collector.Spec.MaxOrphans = 2 }),
			"[c:observe d:observe] [c:Adopted d:Adopted a:Found b:Found] TooManyOrphans",
		},
		"NoMoreThanAFifthOfTheFleetIsDeleted": {
			observed(erase, seen(unclaimed("a"), unclaimed("b"), unclaimed("c")), claimed(14)), "[] [a:Found b:Found c:Found] TooManyOrphans",
		},
		"AFifthOfTheFleetIs": {
			observed(erase, seen(unclaimed("a"), unclaimed("b"), unclaimed("c")), claimed(15)), "[a:observe b:observe c:observe] [a:Adopted b:Adopted c:Adopted] Deleting",
		},
		"OneOrphanIsDeletedWithoutAnyFleet":                 {observed(erase, seen(unclaimed("a")), claimed(0)), "[a:observe] [a:Adopted] Deleting"},
		"TwoAreNotDeletedWithoutAFleet":                     {observed(erase, seen(unclaimed("a"), unclaimed("b")), claimed(0)), "[] [a:Found b:Found] TooManyOrphans"},
		"TheRightToDeleteIsTakenBackWhenTheFleetIsTooSmall": {observed(erase, taken(adopted("a", mayDelete), adopted("b")), claimed(0)), "[a:observe b:observe] [a:Adopted b:Adopted] TooManyOrphans"},
		"ConfirmedOrphansAreDeletedHoweverManyThereAre": {
			observed(erase, seen(unclaimed("a"), unclaimed("b"), unclaimed("c"), unclaimed("d")), claimed(0), confirmed("a", "c")),
			"[a:observe c:observe] [a:Adopted c:Adopted b:Found d:Found] TooManyOrphans",
		},
		"ConfirmedOrphansDoNotCount": {
			observed(erase, seen(unclaimed("a"), unclaimed("b"), unclaimed("c")), claimed(0), confirmed("a", "c")),
			"[a:observe b:observe c:observe] [a:Adopted b:Adopted c:Adopted] Deleting",
		},
		"AConfirmedAdoptedVMIsDeletedAmongTooMany": {
			observed(erase, seen(unclaimed("x"), unclaimed("y")), taken(adopted("a"), adopted("b", mayDelete), adopted("c", mayDelete)), claimed(0), confirmed("a", "b")),
			"[a:delete c:observe] [a:Adopted b:Deleting c:Adopted x:Found y:Found] TooManyOrphans",
		},
		"AConfirmedVMWhoseMachineIsThereIsNoOrphan": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.Machine = true })), confirmed("a")), "[] [] NoOrphans",
		},
		"AVMOfAFormerInstallationIsReported": {
			observed(erase, seen(unclaimed("a", formerUnclaimed))), "[] [a:Found] InstallationNotGone",
		},
		"ItIsNotEvenDeletedIfItIsConfirmed": {
			observed(erase, seen(unclaimed("a", formerUnclaimed)), confirmed("a")), "[] [a:Found] InstallationNotGone",
		},
		"AVMOfAnInstallationThatIsGoneIsDeleted": {
			observed(erase, seen(unclaimed("a", formerUnclaimed)), gone("former")), "[a:observe] [a:Adopted] Deleting",
		},
		"ThatAnotherOneIsGoneProvesNothing": {
			observed(erase, seen(unclaimed("a", formerUnclaimed), unclaimed("b")), gone("another")), "[b:observe] [b:Adopted a:Found] Deleting",
		},
		"VMsOfFormerInstallationsDoNotCountAsTooMany": {
			observed(erase, seen(unclaimed("a", formerUnclaimed), unclaimed("b", formerUnclaimed), unclaimed("c")), claimed(0)), "[c:observe] [c:Adopted a:Found b:Found] Deleting",
		},
		"AnAdoptedVMOfAnInstallationThatIsNotProvenToBeGoneIsGivenBack": {
			observed(erase, taken(adopted("a", formerAdopted), adopted("b", formerAdopted, mayDelete))), "[b:observe] [b:Adopted] Deleting",
		},
		"AVMOfNoKnownInstallationIsReported": {
			observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.Installation = "" })), gone("former")), "[] [a:Found] InstallationNotGone",
		},
		"ThoseThatAreBeingDeletedDoNotCount": {
			observed(erase, seen(unclaimed("a"), unclaimed("b")), taken(adopted("c", mayDelete, terminating)), func(o *Observed) { o.Collector.Spec.MaxOrphans = 2 }),
			"[a:observe b:observe] [a:Adopted b:Adopted c:Deleting] Deleting",
		},
		"AnAdoptedVMWhoseMachineIsThereDoesNotCount": {
			observed(erase, seen(unclaimed("b")), taken(adopted("a", mayDelete, func(a *Adopted) { a.Machine = true })), claimed(0)),
			"[a:observe b:observe] [a:Adopted b:Adopted] Deleting",
		},
		"AnAdoptedVMOfAnInstallationThatIsNotProvenToBeGoneDoesNotCount": {
			observed(erase, seen(unclaimed("b")), taken(adopted("a", formerAdopted, mayDelete)), claimed(0)),
			"[a:observe b:observe] [a:Adopted b:Adopted] Deleting",
		},
		"ConfirmedAdoptedVMsDoNotCount": {
			observed(erase, taken(adopted("a"), adopted("b")), claimed(0), confirmed("a")), "[a:delete b:delete] [a:Adopted b:Adopted] Deleting",
		},
		"TheStatusIsSortedByNameWhateverTheCloudSays": {
			observed(erase, seen(unclaimed("d", formerUnclaimed), unclaimed("c", formerUnclaimed)), taken(adopted("b"), adopted("a"))),
			"[a:delete b:delete] [a:Adopted b:Adopted c:Found d:Found] Deleting",
		},
		"ACollectorThatIsBeingDeletedAdoptsNothing": {
			observed(erase, seen(unclaimed("a")), func(o *Observed) { o.Collector.DeletionTimestamp = &metav1.Time{Time: noon} }), "[] [a:Found] Reported",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Plan(tc.o)
			if got := says(d); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if d := cmp.Diff(d, Plan(tc.o), cmp.AllowUnexported(Decision{})); d != "" {
				t.Errorf("the same view gives another decision:\n%s", d)
			}
		})
	}
}

func TestNoMoreThanTenAreDeletedAtOnce(t *testing.T) {
	var many []Unclaimed
	for i := range 30 {
		many = append(many, unclaimed(fmt.Sprintf("vm-%02d", i)))
	}
	o := observed(machinev1alpha1.OrphanDelete, seen(many...), taken(adopted("x", mayDelete, terminating), adopted("y", func(a *Adopted) { a.Seen = false })))
	o.Collector.Spec.MaxOrphans = 100
	d := Plan(o)
	if len(d.Resources) != 9 || d.Status.Orphans != 32 || len(d.Status.VirtualMachines) != 20 || d.CallAgain != shared.InFlight {
		t.Errorf("%d resources, %d orphans, %d in the status, again after %s", len(d.Resources), d.Status.Orphans, len(d.Status.VirtualMachines), d.CallAgain)
	}
	if got := d.Ignored(); len(got) != 10 || !slices.IsSorted(got) || !slices.Contains(got, "x") || !slices.Contains(got, "y") {
		t.Errorf("the inventory ignores %v", got)
	}
	if m := d.Conditions[0].Message; !strings.Contains(m, "32 VMs") || !strings.Contains(m, "and 27 more") {
		t.Error(m)
	}
}

func TestTheMessageSaysWhatBecomesOfOrphans(t *testing.T) {
	const (
		report = machinev1alpha1.OrphanReport
		erase  = machinev1alpha1.OrphanDelete
	)
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"one is reported":      {observed(report, seen(unclaimed("a"))), "1 VM has no Machine: "},
		"some are reported":    {observed(report, seen(unclaimed("a"), unclaimed("b"))), "2 VMs have no Machine: "},
		"a policy would":       {observed(report, seen(unclaimed("a"))), "; with spec.policy: Delete they would be deleted"},
		"all are deleted":      {observed(erase, seen(unclaimed("a"))), "; they are deleted"},
		"some are deleted":     {observed(erase, seen(unclaimed("a", formerUnclaimed), unclaimed("b"))), "; they are deleted, except 1 of installations that are not proven to be gone"},
		"what keeps all fails": {observed(erase, func(o *Observed) { o.Inventory.Problem = "the list failed" }), "the list failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(tc.o).Conditions[0].Message; !strings.Contains(got, tc.want) || name == "all are deleted" && !strings.HasSuffix(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestACollectorIsReadyOnceItKnowsItsVMs(t *testing.T) {
	for name, tc := range map[string]struct {
		world change[Observed]
		want  bool
	}{
		"a list":                 {seen(), true},
		"a list that is to come": {func(o *Observed) { o.Inventory.Pending = true }, false},
		"a list that failed":     {func(o *Observed) { o.Inventory.Problem = "it failed" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(observed(machinev1alpha1.OrphanReport, tc.world)).Ready; got != tc.want {
				t.Errorf("ready %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTheStatusSaysWhatAnOrphanWaitsFor(t *testing.T) {
	const erase = machinev1alpha1.OrphanDelete
	trouble := func(text string) change[Adopted] { return func(a *Adopted) { a.Trouble = text } }
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"for nothing":                  {observed(erase, taken(adopted("a"))), ""},
		"for its provider":             {observed(erase, taken(adopted("a", trouble("no rights")))), "no rights"},
		"for the list":                 {observed(erase, taken(adopted("a", trouble("no rights"))), func(o *Observed) { o.Inventory.Problem = "the list failed" }), "the list failed"},
		"for the next list":            {observed(erase, taken(adopted("a", trouble("no rights"))), func(o *Observed) { o.Inventory.Pending = true }), "no rights"},
		"for a person":                 {observed(erase, taken(adopted("a"), adopted("b")), claimed(0)), tooMany},
		"for a provider that is brief": {observed(erase, taken(adopted("a", trouble(strings.Repeat("x", 256))))), strings.Repeat("x", 256)},
		"for one that is not":          {observed(erase, taken(adopted("a", trouble(strings.Repeat("x", 257))))), strings.Repeat("x", 256) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(tc.o).Status.VirtualMachines[0].Message; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhenOrphansAreLookedForAgain(t *testing.T) {
	const erase = machinev1alpha1.OrphanDelete
	machine := func(u *Unclaimed) { u.Machine = true }
	for name, tc := range map[string]struct {
		o    Observed
		want time.Duration
	}{
		"at rest":                            {observed(erase), shared.AtRest},
		"soon while a VM is adopted":         {observed(erase, taken(adopted("a"))), shared.InFlight},
		"soon while one is to be":            {observed(erase, seen(unclaimed("a"))), shared.InFlight},
		"soon while one is given back":       {observed(erase, taken(adopted("a", func(a *Adopted) { a.Machine = true }))), shared.InFlight},
		"soon after a list that failed":      {observed(erase, func(o *Observed) { o.Inventory.Problem = "it failed" }), shared.InFlight},
		"soon before a list that is to come": {observed(erase, func(o *Observed) { o.Inventory.Pending = true }), shared.InFlight},
		// No event reports the deletion of the Machine.
		"soon while its Machine holds a VM that is an orphan without": {observed(erase, seen(unclaimed("a", machine))), shared.InFlight},
		"soon while the Node of an orphan is looked for":              {observed(machinev1alpha1.OrphanReport, seen(unclaimed("a", nodeOfUnclaimed(Node{})))), shared.InFlight},
		"not for an orphan that is only reported":                     {observed(machinev1alpha1.OrphanReport, seen(unclaimed("a"))), shared.AtRest},
		"not for a VM that was seen once":                             {observed(erase, seen(unclaimed("a", machine, func(u *Unclaimed) { u.ConfirmedAt = nil }))), shared.AtRest},
		"not for a VM of no Machine":                                  {observed(erase, seen(unclaimed("a", machine, func(u *Unclaimed) { u.Owner = Owner{} }))), shared.AtRest},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plan(tc.o).CallAgain; got != tc.want {
				t.Errorf("after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAConditionLastsUntilTheCloudWasLookedAtAgain(t *testing.T) {
	was := metav1.Condition{Type: machinev1alpha1.ConditionOrphansFound, Status: "True", Reason: machinev1alpha1.ReasonReported, Message: "1 VM"}
	for name, tc := range map[string]struct {
		world change[Observed]
		want  string
	}{
		"a list that is to come":         {func(o *Observed) { o.Inventory.Pending = true }, "True Reported: 1 VM"},
		"a list":                         {seen(), "False NoOrphans: "},
		"a list that failed":             {func(o *Observed) { o.Inventory.Problem = "it failed" }, "Unknown InventoryUnavailable: it failed"},
		"one that is to come and failed": {func(o *Observed) { o.Inventory.Pending, o.Inventory.Problem = true, "it failed" }, "Unknown InventoryUnavailable: it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(machinev1alpha1.OrphanReport, tc.world)
			o.Collector.Status.Conditions = []metav1.Condition{was}
			c := Plan(o).Conditions[0]
			if got := c.Status + " " + c.Reason + ": " + c.Message; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestAMessageNamesFiveVMs(t *testing.T) {
	for n, want := range map[int]string{
		5: "VM d of Machine ns/m-d, VM e of Machine ns/m-e; with",
		6: "VM d of Machine ns/m-d, VM e of Machine ns/m-e, and 1 more; with",
	} {
		var us []Unclaimed
		for i := range n {
			us = append(us, unclaimed(string(rune('a'+i))))
		}
		if got := Plan(observed(machinev1alpha1.OrphanReport, seen(us...))).Conditions[0].Message; !strings.Contains(got, want) {
			t.Errorf("of %d: %q, want %q", n, got, want)
		}
	}
}

func TestAMessageNamesWhatHoldsOrphans(t *testing.T) {
	few := Plan(observed(machinev1alpha1.OrphanDelete, seen(unclaimed("a"), unclaimed("b")), claimed(7)))
	if want := "2 are not confirmed, and 1 may be deleted without: the least of spec.maxOrphans, 10, and a fifth of the 7 claimed VMs"; !strings.Contains(few.Conditions[0].Message, want) {
		t.Errorf("%q, want %q", few.Conditions[0].Message, want)
	}
	former := Plan(observed(machinev1alpha1.OrphanDelete, seen(unclaimed("a", formerUnclaimed))))
	want := `not deleted: the ConfigMap crossplane-system/drover-installations does not have it that installation "former" was replaced or lost`
	if got := former.Status.VirtualMachines[0].Message; got != want || !strings.Contains(former.Conditions[0].Message, want) {
		t.Errorf("%q, condition %q", got, former.Conditions[0].Message)
	}
}

func TestWhatWasFoundIsRememberedWhileTheListFails(t *testing.T) {
	before := Plan(observed(machinev1alpha1.OrphanReport, seen(unclaimed("a"), unclaimed("b"))))
	o := observed(machinev1alpha1.OrphanReport, func(o *Observed) { o.Inventory.Problem = "the list failed" })
	o.Collector.Status = before.Status
	after := Plan(o)
	if d := cmp.Diff(before.Status, after.Status); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if after.Ready || after.Conditions[0].Status != "Unknown" {
		t.Errorf("ready %v, condition %+v", after.Ready, after.Conditions[0])
	}
}

func TestWhileTheListFailsTheStatusForgetsNoOrphanAndInventsNone(t *testing.T) {
	o := observed(machinev1alpha1.OrphanDelete, taken(adopted("a")), func(o *Observed) { o.Inventory.Problem = "the list failed" })
	found, adopted := machinev1alpha1.OrphanFound, machinev1alpha1.OrphanAdopted
	o.Collector.Status = machinev1alpha1.OrphanCollectorStatus{
		Installation: "ours", Unclaimed: 40, Orphans: 30,
		// a was adopted since then, b was adopted and is released, and c is only reported.
		VirtualMachines: []machinev1alpha1.Orphan{{ExternalName: "a", State: found}, {ExternalName: "b", State: adopted}, {ExternalName: "c", State: found}},
	}
	d := Plan(o)
	if got, want := says(d), "[a:observe] [a:Adopted c:Found] InventoryUnavailable"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := d.Status; s.Unclaimed != 40 || s.Orphans != 30 || s.Installation != "ours" || s.ObservedGeneration != 3 {
		t.Errorf("got %+v", s)
	}
	o.Inventory.Problem = ""
	if s := Plan(o).Status; s.Unclaimed != 0 || s.Orphans != 1 {
		t.Errorf("once it is back: %+v", s)
	}
}

func TestTooManyOrphansAreAWarningOnce(t *testing.T) {
	o := observed(machinev1alpha1.OrphanDelete, seen(unclaimed("a"), unclaimed("b")), claimed(0))
	warnings := func() []string {
		var out []string
		for _, e := range Plan(o).Events {
			if e.Warning && e.Reason == machinev1alpha1.ReasonTooManyOrphans {
				out = append(out, e.Message)
			}
		}
		return out
	}
	c := Plan(o).Conditions[0]
	if got := warnings(); !slices.Equal(got, []string{c.Message}) {
		t.Errorf("warnings %q, want %q", got, c.Message)
	}
	o.Collector.Status.Conditions = []metav1.Condition{{Type: c.Type, Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message}}
	if got := warnings(); len(got) > 0 {
		t.Errorf("again: %q", got)
	}
}

// TestEventsReportWhatChanged follows a VM from the first event to the last.
func TestEventsReportWhatChanged(t *testing.T) {
	c := observed(machinev1alpha1.OrphanReport).Collector
	stages := []struct {
		name   string
		policy machinev1alpha1.OrphanPolicy
		world  change[Observed]
		want   string
	}{
		{"Found", machinev1alpha1.OrphanReport, seen(unclaimed("a")), "OrphanFound: No Machine has VM a of Machine ns/m-a"},
		{"StillThere", machinev1alpha1.OrphanReport, seen(unclaimed("a")), ""},
		{"TheListFails", machinev1alpha1.OrphanReport, func(o *Observed) { o.Inventory.Problem = "it failed" }, "InventoryUnavailable: it failed"},
		{"ItFailsAgain", machinev1alpha1.OrphanReport, func(o *Observed) { o.Inventory.Problem = "it failed" }, ""},
		{"ItIsBack", machinev1alpha1.OrphanReport, seen(unclaimed("a")), ""},
		{"ToBeDeleted", machinev1alpha1.OrphanDelete, seen(unclaimed("a")), "OrphanAdopted: To be deleted, if a last look at the cloud finds it: VM a of Machine ns/m-a"},
		{"TheInventoryLooksAgain", machinev1alpha1.OrphanDelete, func(o *Observed) { o.Inventory.Pending = true; o.Adopted = []Adopted{adopted("a")} }, ""},
		{"MayBeDeleted", machinev1alpha1.OrphanDelete, taken(adopted("a")), ""},
		{"Dropped", machinev1alpha1.OrphanDelete, taken(adopted("a", mayDelete)), "DeletingOrphan: Deleting VM a of Machine ns/m-a"},
		{"OnItsWay", machinev1alpha1.OrphanDelete, taken(adopted("a", mayDelete, terminating)), ""},
		{"Gone", machinev1alpha1.OrphanDelete, func(*Observed) {}, "OrphanGone: Gone: VM a of Machine ns/m-a"},
		{"AtRest", machinev1alpha1.OrphanDelete, func(*Observed) {}, ""},
		{"FoundAnew", machinev1alpha1.OrphanReport, seen(unclaimed("a")), "OrphanFound: No Machine has VM a of Machine ns/m-a"},
		{"SomebodyDeletedIt", machinev1alpha1.OrphanReport, seen(), ""},
	}
	for _, s := range stages {
		o := observed(s.policy, s.world)
		o.Collector.Status = c.Status
		d := Plan(o)
		var got []string
		for _, e := range d.Events {
			got = append(got, e.Reason+": "+e.Message)
		}
		if strings.Join(got, "; ") != s.want {
			t.Errorf("%s: events %q, want %q", s.name, got, s.want)
		}
		c.Status = d.Status
		for _, n := range d.Conditions {
			c.Status.Conditions = []metav1.Condition{{Type: n.Type, Status: metav1.ConditionStatus(n.Status), Reason: n.Reason, Message: n.Message}}
		}
	}
	if d := Plan(observed(machinev1alpha1.OrphanDelete)); d.CallAgain != shared.AtRest {
		t.Errorf("at rest it asks to be called after %s", d.CallAgain)
	}
}
