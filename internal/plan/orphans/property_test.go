package orphans

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	inventoryv1alpha1 "github.com/drover-dev/drover/apis/inventory/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/inventory"
)

// A world has a cloud, Machines with their VM resources, and a collector with its resources.
type world struct {
	t   *rapid.T
	now time.Time

	// vms at the cloud.
	vms map[string]inventory.VM
	// machines that exist, and the VM resources of Machines by their UID. The value is the external
	// name, "" while the VM is being created.
	machines  map[types.UID]bool
	resources map[types.UID]string
	// past are earlier states of Machines and VM resources, newest last.
	past []past

	collector *machinev1alpha1.OrphanCollector
	adopted   map[string]*resourceOfOrphan
	// asked is the request to the inventory, says its report, and answered means that the report
	// answers this request.
	asked    inventoryv1alpha1.InventoryParameters
	says     inventoryv1alpha1.InventoryObservation
	answered bool
	failing  bool

	// ready are the VMs whose Nodes are Ready. looked has the results of the last searches in the
	// target cluster, and lookedFor these searches.
	ready           map[string]bool
	searches        []Search
	looked          map[string]Node
	lookedFor       []Search
	clusterIsSilent bool

	// gone means that the former installation is proven not to run any more.
	gone bool

	deleted, made int
}

type past struct {
	at        time.Time
	machines  map[types.UID]bool
	resources map[types.UID]string
}

// resourceOfOrphan is a VM resource of the collector.
type resourceOfOrphan struct {
	Resource
	observed    bool // in the collector's references
	terminating bool
	seen        bool
	missing     bool
}

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, now: noon,
		vms: map[string]inventory.VM{}, machines: map[types.UID]bool{}, resources: map[types.UID]string{},
		adopted: map[string]*resourceOfOrphan{}, ready: map[string]bool{}, looked: map[string]Node{},
		collector: observed(machinev1alpha1.OrphanDelete).Collector,
	}
	w.collector.Spec.MaxOrphans = 50
	w.remember()
	return w
}

func (w *world) remember() {
	w.past = append(w.past, past{w.now, maps.Clone(w.machines), maps.Clone(w.resources)})
}

func owner(uid types.UID) Owner { return Owner{Namespace: "ns", Machine: "m", UID: uid} }

func (w *world) createVM(installation string, uid types.UID) string {
	w.made++
	id := fmt.Sprint("vm-", w.made)
	w.vms[id] = inventory.VM{ExternalName: id, Tags: map[string]string{
		machinev1alpha1.TagInstallation: installation, machinev1alpha1.TagNamespace: "ns",
		machinev1alpha1.TagMachine: "m", machinev1alpha1.TagMachineUID: string(uid),
	}}
	return id
}

func (w *world) pick(uids []types.UID) types.UID {
	slices.Sort(uids)
	return rapid.SampledFrom(uids).Draw(w.t, "machine")
}

// step lets one action happen.
func (w *world) step(action string) {
	all := slices.Collect(maps.Keys(w.machines))
	switch action {
	case "time passes":
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 600).Draw(w.t, "seconds")) * time.Second)
	case "a Machine is created":
		w.made++
		uid := types.UID(fmt.Sprint("uid-", w.made))
		w.machines[uid], w.resources[uid] = true, ""
		w.createVM("ours", uid)
	case "a creation is recorded":
		for _, uid := range all {
			for id, vm := range w.vms {
				if name, ok := w.resources[uid]; ok && name == "" && vm.Tags[machinev1alpha1.TagMachineUID] == string(uid) {
					w.resources[uid] = id
				}
			}
		}
	case "a Machine is deleted":
		if len(all) > 0 {
			uid := w.pick(all)
			// A VM whose creation was never recorded is left behind.
			delete(w.vms, w.resources[uid])
			delete(w.machines, uid)
			delete(w.resources, uid)
		}
	case "a Machine loses its finalizers":
		if len(all) > 0 {
			uid := w.pick(all)
			delete(w.machines, uid)
			delete(w.resources, uid)
		}
	case "a Machine goes before its VM resource":
		if len(all) > 0 {
			delete(w.machines, w.pick(all))
		}
	case "the last VM resources go":
		for uid, name := range w.resources {
			if !w.machines[uid] {
				delete(w.vms, name)
				delete(w.resources, uid)
			}
		}
	case "a VM resource loses its finalizers":
		if len(all) > 0 {
			delete(w.resources, w.pick(all))
		}
	case "another installation creates a VM":
		w.createVM("theirs", types.UID(fmt.Sprint("their-", w.made)))
	case "a VM of a former installation is found":
		w.createVM("former", types.UID(fmt.Sprint("former-", w.made)))
	case "the former installation is recorded as lost":
		w.gone = true
	case "a person confirms an orphan":
		if ids := slices.Sorted(maps.Keys(w.vms)); len(ids) > 0 {
			// It may be confirmed by mistake: a VM in use, or of another installation.
			w.collector.Spec.ConfirmedOrphans = []string{rapid.SampledFrom(ids).Draw(w.t, "confirmed")}
		}
	case "somebody deletes a VM":
		if ids := slices.Sorted(maps.Keys(w.vms)); len(ids) > 0 {
			delete(w.vms, rapid.SampledFrom(ids).Draw(w.t, "vm"))
		}
	case "a Node becomes Ready":
		if ids := slices.Sorted(maps.Keys(w.vms)); len(ids) > 0 {
			w.ready[rapid.SampledFrom(ids).Draw(w.t, "ready")] = true
		}
	case "a Node is lost":
		if ids := slices.Sorted(maps.Keys(w.ready)); len(ids) > 0 {
			delete(w.ready, rapid.SampledFrom(ids).Draw(w.t, "lost"))
		}
	case "the target cluster is silent":
		w.clusterIsSilent = !w.clusterIsSilent
	case "the target cluster is looked at":
		w.lookForNodes()
	case "the inventory looks":
		w.look()
	case "the list fails":
		w.failing, w.answered = true, true
	case "the provider works":
		w.provide()
	case "the function runs":
		w.reconcile(w.view())
	case "the collector forgets":
		for _, a := range w.adopted {
			a.observed = false
		}
	case "the policy changes":
		w.collector.Spec.Policy = rapid.SampledFrom([]machinev1alpha1.OrphanPolicy{machinev1alpha1.OrphanDelete, machinev1alpha1.OrphanReport}).Draw(w.t, "policy")
	}
	w.remember()
}

func (w *world) look() {
	l := inventory.Look{At: w.now, Claims: map[string]inventoryv1alpha1.Claim{}}
	for _, vm := range w.vms {
		l.VMs = append(l.VMs, vm)
	}
	for _, name := range w.resources {
		l.Claims[name] = inventoryv1alpha1.Claim{ExternalName: name}
	}
	for name := range w.adopted {
		l.Claims[name] = inventoryv1alpha1.Claim{ExternalName: name}
	}
	w.says, w.answered, w.failing = l.After(w.says, w.asked), true, false
}

// lookForNodes carries out the searches as provider-drover does.
func (w *world) lookForNodes() {
	w.looked, w.lookedFor = map[string]Node{}, slices.Clone(w.searches)
	for _, s := range w.searches {
		n := Node{Ready: w.ready[s.ExternalName]}
		if w.clusterIsSilent {
			n = Node{Problem: "it does not answer"}
		}
		w.looked[s.ExternalName] = n
	}
}

// nodeOf returns the result of the search for the Node of a VM. Only a result of the current
// searches counts.
func (w *world) nodeOf(name string) Node {
	n, ok := w.looked[name]
	n.Looked = ok && slices.Equal(w.searches, w.lookedFor)
	return n
}

// mustHaveLooked fails if a VM is deleted without a search for its Node since its resource got the
// right to delete.
func (w *world) mustHaveLooked(a *resourceOfOrphan) {
	name := a.ExternalName
	if !slices.ContainsFunc(w.lookedFor, func(s Search) bool { return s.ExternalName == name && s.MayDelete }) {
		w.t.Fatalf("VM %s is to be deleted, and nobody looked for its Node since it may be", name)
	}
	if n := w.looked[name]; n.Ready || n.Problem != "" && !slices.Contains(w.collector.Spec.ConfirmedOrphans, name) {
		w.t.Fatalf("VM %s is to be deleted, although its Node is %+v", name, n)
	}
}

// provide acts as the provider of the collector's resources.
func (w *world) provide() {
	for name, a := range w.adopted {
		_, there := w.vms[name]
		if !a.terminating {
			a.seen, a.missing = there, !there
			continue
		}
		if a.MayDelete && there {
			w.deleteVM(name)
		}
		delete(w.adopted, name)
	}
}

// deleteVM checks the invariants of this test: a VM in use must not be deleted.
func (w *world) deleteVM(name string) {
	vm := w.vms[name]
	uid := types.UID(vm.Tags[machinev1alpha1.TagMachineUID])
	if w.machines[uid] {
		w.t.Fatalf("VM %s is deleted, although its Machine %s is there", name, uid)
	}
	if _, ok := w.resources[uid]; ok {
		w.t.Fatalf("VM %s is deleted, although the VM resource of its Machine %s is there", name, uid)
	}
	switch installation := vm.Tags[machinev1alpha1.TagInstallation]; {
	case installation == "theirs":
		w.t.Fatalf("VM %s of another installation is deleted", name)
	case installation == "former" && !w.gone:
		w.t.Fatalf("VM %s of a former installation is deleted, and nothing proves that it is gone", name)
	}
	delete(w.vms, name)
	w.deleted++
}

// view returns Machines and VM resources, each with a random age that a cache may have.
func (w *world) view() past {
	stale := func() past {
		var young []past
		for _, p := range w.past {
			if w.now.Sub(p.at) < grace {
				young = append(young, p)
			}
		}
		return young[rapid.IntRange(0, len(young)-1).Draw(w.t, "view")]
	}
	return past{machines: stale().machines, resources: stale().resources}
}

func (w *world) reconcile(v past) {
	stand := func(uid types.UID) Standing {
		_, resource := v.resources[uid]
		return Standing{Machine: v.machines[uid], Resource: resource}
	}
	o := Observed{Collector: w.collector, Installation: "ours", Gone: map[string]bool{"former": w.gone}}
	o.Inventory.Pending = !w.answered
	if w.failing {
		o.Inventory.Problem = "the list failed"
	}
	o.Inventory.Count, o.Inventory.Claimed = w.says.UnclaimedCount, w.says.ClaimedCount
	for _, u := range w.says.Unclaimed {
		uid := types.UID(u.MachineUID)
		n := Unclaimed{VM: VM{ExternalName: u.ExternalName, Installation: u.Installation, Owner: owner(uid)}, FirstSeen: u.FirstSeen.Time, Standing: stand(uid), Node: w.nodeOf(u.ExternalName)}
		if u.ConfirmedAt != nil {
			n.ConfirmedAt = &u.ConfirmedAt.Time
		}
		o.Inventory.Unclaimed = append(o.Inventory.Unclaimed, n)
	}
	for _, name := range slices.Sorted(maps.Keys(w.adopted)) {
		a := w.adopted[name]
		o.Adopted = append(o.Adopted, Adopted{
			VM: a.VM, Standing: stand(a.Owner.UID), Observed: a.observed, Terminating: a.terminating,
			MayDelete: a.MayDelete, Seen: a.seen, Missing: a.missing, Node: w.nodeOf(name),
		})
	}
	w.apply(Plan(o))
}

// apply a decision as Crossplane does: a resource that is in the references and no longer desired
// is deleted.
func (w *world) apply(d Decision) {
	desired := map[string]Resource{}
	for _, r := range d.Resources {
		desired[r.ExternalName] = r
	}
	for name, a := range w.adopted {
		if _, ok := desired[name]; !ok && a.observed {
			if a.MayDelete && !a.missing {
				w.mustHaveLooked(a)
			}
			a.terminating, a.observed = true, false
		}
	}
	for name, r := range desired {
		a, ok := w.adopted[name]
		if !ok {
			w.adopted[name] = &resourceOfOrphan{Resource: r, observed: true}
			continue
		}
		if a.MayDelete != r.MayDelete {
			a.seen, a.missing = false, false // It was observed for another generation.
		}
		a.Resource, a.observed = r, true
	}
	asked := inventoryv1alpha1.InventoryParameters{
		Installations: []string{"ours", "former"}, Ignore: d.Ignored(),
		Interval: metav1.Duration{Duration: 5 * time.Minute}, ConfirmAfter: metav1.Duration{Duration: grace},
	}
	if !slices.Equal(asked.Ignore, w.asked.Ignore) || w.asked.Installations == nil {
		w.answered = false
	}
	w.asked = asked
	w.searches = d.Searches
	w.collector.Status = d.Status
}

// settle lets everything succeed until nothing changes any more. The user confirms every VM.
func (w *world) settle() {
	w.collector.Spec.Policy, w.gone, w.clusterIsSilent = machinev1alpha1.OrphanDelete, true, false
	w.collector.Spec.ConfirmedOrphans = slices.Collect(maps.Keys(w.vms))
	for range 60 {
		w.now = w.now.Add(5 * time.Minute)
		w.look()
		w.lookForNodes()
		w.reconcile(past{machines: w.machines, resources: w.resources})
		w.provide()
	}
}

// inUse returns the VMs whose Nodes are Ready and whose deletion has not begun.
func (w *world) inUse() []string {
	var out []string
	for name := range w.ready {
		_, there := w.vms[name]
		if a := w.adopted[name]; there && (a == nil || !a.terminating) {
			out = append(out, name)
		}
	}
	return out
}

// TestNoVMInUseIsEverDeletedAndNoOrphanStays runs random histories: Machines are created, deleted,
// and removed with their finalizers, lists fail, and views are as old as the grace period.
func TestNoVMInUseIsEverDeletedAndNoOrphanStays(t *testing.T) {
	actions := []string{
		"time passes", "time passes", "time passes",
		"a Machine is created", "a creation is recorded", "a Machine is deleted",
		"a Machine loses its finalizers", "a Machine goes before its VM resource", "the last VM resources go", "a VM resource loses its finalizers",
		"another installation creates a VM", "a VM of a former installation is found", "the former installation is recorded as lost", "a person confirms an orphan", "somebody deletes a VM",
		"the inventory looks", "the inventory looks", "the list fails",
		"a Node becomes Ready", "a Node is lost", "the target cluster is silent", "the target cluster is looked at", "the target cluster is looked at",
		"the provider works", "the provider works",
		"the function runs", "the function runs", "the function runs", "the collector forgets", "the policy changes",
	}
	deleted := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			w.step(rapid.SampledFrom(actions).Draw(t, "action"))
		}
		inUse := w.inUse()
		w.settle()
		for _, name := range inUse {
			if _, ok := w.vms[name]; !ok {
				t.Fatalf("VM %s is deleted, although its Node is Ready", name)
			}
		}
		clear(w.ready)
		w.settle()
		for name, vm := range w.vms {
			uid := types.UID(vm.Tags[machinev1alpha1.TagMachineUID])
			_, resource := w.resources[uid]
			if ours := vm.Tags[machinev1alpha1.TagInstallation] != "theirs"; ours && !w.machines[uid] && !resource {
				t.Fatalf("the orphan %s of %s stays; the collector says %+v", name, uid, w.collector.Status)
			}
		}
		if len(w.adopted) > 0 || w.collector.Status.Orphans > 0 {
			t.Fatalf("at rest, the collector has %v and says %+v", w.adopted, w.collector.Status)
		}
		deleted += w.deleted
	})
	if deleted == 0 {
		t.Error("no history had an orphan: this test shows nothing")
	}
}
