package orphans

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	shared "github.com/drover-dev/drover/internal/plan"
)

var (
	readyNode   = Node{Looked: true, Name: "n", Cluster: "ClusterProviderConfig eu", Ready: true}
	silentNode  = Node{Looked: true, Name: "n", Cluster: "ClusterProviderConfig eu"}
	unknownNode = Node{Looked: true, Problem: "ClusterProviderConfig eu: it does not answer"}
)

func nodeOfUnclaimed(n Node) change[Unclaimed] { return func(u *Unclaimed) { u.Node = n } }
func nodeOfAdopted(n Node) change[Adopted]     { return func(a *Adopted) { a.Node = n } }

func TestOrphansWhoseNodesAreReadyStay(t *testing.T) {
	const (
		report = machinev1alpha1.OrphanReport
		erase  = machinev1alpha1.OrphanDelete
	)
	cases := map[string]struct {
		o    Observed
		want string
	}{
		"AVMWhoseNodeIsReadyIsReported":              {observed(report, seen(unclaimed("a", nodeOfUnclaimed(readyNode)))), "[] [a:Found] Reported"},
		"AVMWhoseNodeIsReadyIsNotDeleted":            {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode)))), "[] [a:Found] OrphansInUse"},
		"NotEvenIfAPersonConfirmedIt":                {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode))), confirmed("a")), "[] [a:Found] OrphansInUse"},
		"AVMWhoseNodeIsSilentIsDeleted":              {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(silentNode)))), "[a:observe] [a:Adopted] Deleting"},
		"AVMWhoseNodeNobodyLookedForStays":           {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(Node{})))), "[] [a:Found] NodesPending"},
		"AVMWhoseNodeNobodyCanLookForStays":          {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(unknownNode)))), "[] [a:Found] OrphansInUse"},
		"UnlessAPersonConfirmedIt":                   {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(unknownNode))), confirmed("a")), "[a:observe] [a:Adopted] Deleting"},
		"AConfirmedVMIsNotDeletedBeforeALook":        {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(Node{}))), confirmed("a")), "[] [a:Found] NodesPending"},
		"OneInUseBesideOneThatIsLookedFor":           {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode)), unclaimed("b", nodeOfUnclaimed(Node{})))), "[] [a:Found b:Found] OrphansInUse"},
		"OneInUseBesideOneThatNobodyCanLookFor":      {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode)), unclaimed("b", nodeOfUnclaimed(unknownNode)))), "[] [a:Found b:Found] OrphansInUse"},
		"OneThatIsLookedForBesideOneThatMayNotGo":    {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(Node{})), unclaimed("b", formerUnclaimed))), "[] [a:Found b:Found] NodesPending"},
		"OthersAreDeleted":                           {observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode)), unclaimed("b"))), "[b:observe] [b:Adopted a:Found] Deleting"},
		"AnAdoptedVMWhoseNodeIsReadyIsGivenBack":     {observed(erase, taken(adopted("a", nodeOfAdopted(readyNode)))), "[] [] NoOrphans"},
		"TheRightToDeleteGoesFirst":                  {observed(erase, taken(adopted("a", mayDelete, nodeOfAdopted(readyNode)))), "[a:observe] [a:Adopted] Deleting"},
		"AnAdoptedVMWaitsForALook":                   {observed(erase, taken(adopted("a", nodeOfAdopted(Node{})))), "[a:observe] [a:Adopted] Deleting"},
		"OneThatMayBeDeletedWaitsForALookToo":        {observed(erase, taken(adopted("a", mayDelete, nodeOfAdopted(Node{})))), "[a:delete] [a:Adopted] Deleting"},
		"AnOldAnswerThatTheNodeIsReadyCounts":        {observed(erase, taken(adopted("a", nodeOfAdopted(Node{Name: "n", Ready: true})))), "[] [] NoOrphans"},
		"TheRightIsTakenBackWhileNobodyCanLook":      {observed(erase, taken(adopted("a", mayDelete, nodeOfAdopted(unknownNode)))), "[a:observe] [a:Adopted] Deleting"},
		"ExceptFromOneThatAPersonConfirmed":          {observed(erase, taken(adopted("a", mayDelete, nodeOfAdopted(unknownNode))), confirmed("a")), "[] [a:Deleting] Deleting"},
		"ADeletionThatHasBegunIsWaitedForAllTheSame": {observed(erase, taken(adopted("a", mayDelete, terminating, nodeOfAdopted(readyNode)))), "[] [a:Deleting] Deleting"},
		"AVMInUseCountsAsOneOfTooMany": {
			observed(erase, seen(unclaimed("a", nodeOfUnclaimed(readyNode)), unclaimed("b")), claimed(0)), "[] [a:Found b:Found] TooManyOrphans",
		},
		"AVMOfAFormerInstallationThatIsInUseStaysWhenThatIsGone": {
			observed(erase, seen(unclaimed("a", formerUnclaimed, nodeOfUnclaimed(readyNode))), gone("former")), "[] [a:Found] OrphansInUse",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := says(Plan(tc.o)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEachPassAsksForANewLook(t *testing.T) {
	searches := func(d Decision) string {
		var out []string
		for _, s := range d.Searches {
			out = append(out, fmt.Sprintf("%s adopted %t deletable %t", s.ExternalName, s.Adopted, s.MayDelete))
		}
		return strings.Join(out, ", ")
	}
	const erase = machinev1alpha1.OrphanDelete
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"of a VM that is found":              {observed(machinev1alpha1.OrphanReport, seen(unclaimed("a"))), "a adopted false deletable false"},
		"of one that is adopted":             {observed(erase, seen(unclaimed("a"))), "a adopted true deletable false"},
		"of one that may be deleted":         {observed(erase, taken(adopted("a"))), "a adopted true deletable true"},
		"of none that is deleted":            {observed(erase, taken(adopted("a", mayDelete))), ""},
		"of none that is not confirmed":      {observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.ConfirmedAt = nil }))), ""},
		"of none whose Machine is there":     {observed(erase, seen(unclaimed("a", func(u *Unclaimed) { u.Machine = true }))), ""},
		"of one that the list is to confirm": {observed(erase, seen(unclaimed("a")), func(o *Observed) { o.Inventory.Pending = true }), "a adopted false deletable false"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := searches(Plan(tc.o)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func TestTheStatusNamesTheNodeAndWhatToDo(t *testing.T) {
	d := Plan(observed(machinev1alpha1.OrphanDelete, seen(
		unclaimed("a", nodeOfUnclaimed(readyNode)), unclaimed("b", nodeOfUnclaimed(unknownNode)), unclaimed("c", nodeOfUnclaimed(Node{})),
	)))
	want := []machinev1alpha1.Orphan{
		{ExternalName: "a", ProviderID: "cloud://a", Namespace: "ns", Machine: "m-a", Node: "n", NodeReady: true, State: "Found", Message: "not deleted: its Node n in the cluster of ClusterProviderConfig eu is Ready; if it is of no use, drain the Node and delete it"},
		{ExternalName: "b", ProviderID: "cloud://b", Namespace: "ns", Machine: "m-b", State: "Found", Message: "not deleted: it is not known whether it has a Node that is Ready: ClusterProviderConfig eu: it does not answer; if it is of no use, name it in spec.confirmedOrphans"},
		{ExternalName: "c", ProviderID: "cloud://c", Namespace: "ns", Machine: "m-c", State: "Found", Message: "its Node is looked for"},
	}
	if diff := cmp.Diff(want, d.Status.VirtualMachines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const message = "3 VMs have no Machine: VM a of Machine ns/m-a (Node n is Ready), VM b of Machine ns/m-b, VM c of Machine ns/m-c; none is deleted: 1 whose Node is Ready, 1 of which it is not known whether a Node is Ready, 1 whose Node is looked for"
	if got := d.Conditions[0].Message; got != message {
		t.Errorf("got  %s\nwant %s", got, message)
	}
	if d.CallAgain != shared.InFlight {
		t.Errorf("again after %s, while a Node is looked for", d.CallAgain)
	}
}

// byName makes a VM one whose tags name no Machine.
func byName(u *Unclaimed) { u.Owner = Owner{Namespace: "ns", VMName: "web-" + u.ExternalName} }

// adoptedByName does the same for an adopted VM.
func adoptedByName(a *Adopted) { a.Owner = Owner{Namespace: "ns", VMName: "web-" + a.ExternalName} }

func TestAVMWhoseMachineIsKnownByItsNameAlone(t *testing.T) {
	const (
		report = machinev1alpha1.OrphanReport
		erase  = machinev1alpha1.OrphanDelete
	)
	machine := Node{Looked: true, Machine: "web"}
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"is reported":              {observed(report, seen(unclaimed("a", byName))), "[] [a:Found] Reported"},
		"is adopted":               {observed(erase, seen(unclaimed("a", byName))), "[a:observe] [a:Adopted] Deleting"},
		"gets the right to delete": {observed(erase, taken(adopted("a", adoptedByName))), "[a:delete] [a:Adopted] Deleting"},
		"is deleted":               {observed(erase, taken(adopted("a", adoptedByName, mayDelete))), "[] [a:Deleting] Deleting"},
		"is none before its Machine was looked for": {observed(erase, seen(unclaimed("a", byName, nodeOfUnclaimed(Node{})))), "[] [] NoOrphans"},
		"is none if its Machine exists":             {observed(erase, seen(unclaimed("a", byName, nodeOfUnclaimed(machine)))), "[] [] NoOrphans"},
		"is none even if a person confirmed it":     {observed(erase, seen(unclaimed("a", byName, nodeOfUnclaimed(machine))), confirmed("a")), "[] [] NoOrphans"},
		"is none if its resource exists":            {observed(erase, seen(unclaimed("a", byName, func(u *Unclaimed) { u.Resource = true }))), "[] [] NoOrphans"},
		"is none within the grace period":           {observed(erase, seen(unclaimed("a", byName, func(u *Unclaimed) { u.ConfirmedAt = nil }))), "[] [] NoOrphans"},
		"waits while its Machine is looked for":     {observed(erase, taken(adopted("a", adoptedByName, mayDelete, func(a *Adopted) { a.Node = Node{} }))), "[a:delete] [a:Adopted] Deleting"},
		"loses the right if its Machine turns up":   {observed(erase, taken(adopted("a", adoptedByName, mayDelete, func(a *Adopted) { a.Node = machine }))), "[a:observe] [a:Adopted] Deleting"},
		"is given back if its Machine turns up":     {observed(erase, taken(adopted("a", adoptedByName, func(a *Adopted) { a.Node = machine }))), "[] [] NoOrphans"},
		"does not count as too many with a Machine": {observed(erase, seen(unclaimed("a", byName, nodeOfUnclaimed(machine)), unclaimed("b", byName)), claimed(0)), "[b:observe] [b:Adopted] Deleting"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := says(Plan(tc.o)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	t.Run("is looked for as long as it is unclaimed", func(t *testing.T) {
		for _, n := range []Node{{}, machine} {
			if d := Plan(observed(report, seen(unclaimed("a", byName, nodeOfUnclaimed(n))))); len(d.Searches) != 1 || d.CallAgain != shared.InFlight && !n.Looked {
				t.Errorf("with %+v it looks for %v, again after %s", n, d.Searches, d.CallAgain)
			}
		}
	})
	t.Run("is named by its name", func(t *testing.T) {
		d := Plan(observed(report, seen(unclaimed("a", byName))))
		if want := "1 VM has no Machine: VM a with the name web-a of the namespace ns; with spec.policy: Delete they would be deleted"; d.Conditions[0].Message != want || d.Status.VirtualMachines[0].Name != "web-a" {
			t.Errorf("message %q, status %+v", d.Conditions[0].Message, d.Status.VirtualMachines)
		}
	})
	t.Run("with tags that were cut is none if its Machine exists", func(t *testing.T) {
		d := Plan(observed(erase, seen(unclaimed("a", nodeOfUnclaimed(machine)))))
		if got := says(d); got != "[] [] NoOrphans" || len(d.Searches) != 1 {
			t.Errorf("%s, it looks for %v", got, d.Searches)
		}
	})
}
