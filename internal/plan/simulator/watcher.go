package simulator

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
)

// A watcher asserts, at every creation and deletion of a Machine, the promises of docs/rollouts.md,
// docs/health.md and docs/autoscaler.md. It knows the wishes of the user and the facts of the
// world, but not how planners decide. The comment of each function that checks a rule states the
// rule.
type watcher struct {
	// Violations that were found.
	Violations []string

	// wishes in force: the latest one, and earlier ones by which a planner may still act.
	wishes []*wish
	// losses of Machines that no number of replicas caused, and marks of the cluster-autoscaler, by
	// Machine. Losses are kept while they are news, and marks while the Machine exists.
	losses map[string]*loss
	marks  map[string]*news
	// causes of the deletions that sets recorded, by Machine. rolled are Machines whose deletion
	// belongs to a rollout that is not over, with the length of the sets' log from before that
	// rollout could begin.
	causes map[string]cause
	rolled map[string]int
	// unavailable Machines were unavailable when their set recorded the deletion, or when the
	// deployment recorded the number of replicas that causes it.
	unavailable map[string]bool
	// starting Machines never had a Node when their set counted them for a number that the deployment lowered, or are
	// marked and deleted in the place of such a Machine.
	starting map[string]bool
	// updates in place that sets recorded, the last one of each Machine.
	updates map[string]*inPlaceUpdate
	// spared names, for a Machine that a scale-down deletes, the unavailable preserved Machines
	// that are kept in its place. The user requested that: a preserved Machine counts as a replica,
	// and a scale-down deletes it last. So it excuses one missing Machine per preserved one.
	spared map[string][]string
	// outside are Machines whose deletion a scale-down decided outside of a rollout. A set records
	// a decision shortly before it deletes. If the template changes in between, the scale-down is
	// not part of the rollout: its Machines drain while the set creates new ones.
	outside map[string]bool
	// canceled Machines became excess because a replacement of their set ended, and not because of
	// a number of replicas.
	cancelled map[string]bool
	// places are the numbers of Machines that each set may create for those that it lost.
	places map[string]int
	// owed are the Machines that each set must still create by an earlier number.
	owed map[string]*owed

	// counts of the sets, oldest first.
	counts map[string][]count
	// proof of the template, nil while there is none.
	proof *proof

	replacements
	reboots
	aged
	departures departures
	scaleDowns scaleDowns
}

// A wish of the user, computed from the spec without the planners.
type wish struct {
	news
	// most is the number of Machines that may exist, and least the number that must be available.
	most, least int
	// budget of replacements.
	budget   int
	strategy machinev1alpha1.StrategyType
	order    machinev1alpha1.RemediationOrder
	// inPlaceOnly means that a change replaces no Machine.
	inPlaceOnly bool
	paused      bool
	kind        kind
	after       *metav1.Time
	// chosen is the number of marked Machines deleted before, only because of the mark.
	chosen int
	// written is the earlier length of the sets' log.
	written int
}

// An owed number of Machines of a set that has acted on its number of replicas and not created all
// of them while an earlier wish was in force. most is the number of Machines that may exist for
// these creations.
type owed struct {
	machines, most int
	replicas       int32
}

// A loss of a Machine that no number of replicas caused: it failed, its Node was lost, a user
// deleted it, or its set deletes it to replace it.
type loss struct {
	news
	// available means that the Machine was available, and removed that it is deleted or about to
	// be.
	available, removed bool
}

// An inPlaceUpdate has the state of the time at which the set recorded it.
type inPlaceUpdate struct {
	// available means that the Machine was available. beside has the remaining Machines of the set,
	// and whether each was available and not about to be deleted.
	available bool
	beside    map[string]bool
	// taken is the number of those Machines that a scale-down deleted since then because they are
	// marked.
	taken int
}

// A proof of the template is a Machine of it that has been available since.
type proof struct {
	news
	machine string
}

// A cause for which a set deletes a Machine.
type cause string

const (
	// tooMany means that the deployment lowered the set's number.
	tooMany cause = "too many"
	// replaced means that the Machine failed, or that a user requested a replacement.
	replaced cause = "replaced"
	// retried means that the Machine failed before it had a Node.
	retried cause = "retried"
	// remade means that the Machine was outdated before it had a VM.
	remade cause = "remade"
	// byAge means that the Machine is due by its age, and is deleted before its replacement is created.
	byAge cause = "by age"
	// handedOver means that the replacement of the Machine is available.
	handedOver cause = "handed over"
	// expired means that the Machine is marked, and was preserved until now.
	expired cause = "no longer preserved"
)

func newWatcher() watcher {
	return watcher{losses: map[string]*loss{}, marks: map[string]*news{}, causes: map[string]cause{}, unavailable: map[string]bool{}, starting: map[string]bool{}, updates: map[string]*inPlaceUpdate{}, spared: map[string][]string{}, outside: map[string]bool{}, cancelled: map[string]bool{}, rolled: map[string]int{}, places: map[string]int{}, aged: aged{due: map[string]bool{}}, owed: map[string]*owed{}, counts: map[string][]count{}, departures: newDepartures()}
}

// wishFor returns the wish that the deployment expresses now.
func (c *Cluster) wishFor(d *machinev1alpha1.MachineDeployment) *wish {
	w := &wish{news: news{generation: d.Generation, replicas: d.Spec.Replicas}, strategy: d.Spec.Strategy.Type,
		order: d.Spec.Remediation.Order, paused: d.Spec.Paused, kind: c.wanted(), after: d.Spec.Rollout.After}
	w.most, w.least = bounds(d)
	w.inPlaceOnly = w.strategy == machinev1alpha1.InPlaceUpdate && d.Spec.Strategy.InPlaceUpdate.Fallback == machinev1alpha1.FallbackNever
	w.budget = budgetOf(d)
	return w
}

// Settled asserts, when the cluster matches the spec and is at rest, that all planners have
// observed all facts.
func (w *watcher) Settled(c *Cluster) {
	w.age(c)
	if len(w.wishes) > 1 {
		w.violated("at rest, %d earlier wishes may still be acted on", len(w.wishes)-1)
	}
	if len(w.losses) > 0 {
		w.violated("at rest, losses are news: %v", w.losses)
	}
	clear(w.rolled)
	c.checkReplacements()
}

func (w *watcher) violated(format string, args ...any) {
	w.Violations = append(w.Violations, fmt.Sprintf(format, args...))
}

// all news, of wishes, losses and marks.
func (w *watcher) all() []*news {
	var out []*news
	for _, wish := range w.wishes {
		out = append(out, &wish.news)
	}
	for _, l := range w.losses {
		out = append(out, &l.news)
	}
	for _, m := range w.marks {
		out = append(out, m)
	}
	if w.proof != nil {
		out = append(out, &w.proof.news)
	}
	return out
}

// prove the template by a Machine that is available, unless the rollout is held.
func (w *watcher) prove(c *Cluster) {
	if w.isHeld(c) {
		w.proof = nil
		return
	}
	if p := w.proof; p != nil {
		if e, there := c.machines.last[p.machine]; there && w.isProof(c, e.object) {
			return
		}
		w.proof = nil
	}
	for name, e := range c.machines.last {
		if w.isProof(c, e.object) && (w.proof == nil || name < w.proof.machine) {
			n := c.newsOf(e.object)
			n.machines = len(c.machines.log)
			w.proof = &proof{news: n, machine: name}
		}
	}
}

// isProof reports whether a Machine of the template is available and stays.
func (w *watcher) isProof(c *Cluster, m *machinev1alpha1.Machine) bool {
	s, there := c.sets.last[m.OwnerReferences[0].Name]
	return there && s.object.DeletionTimestamp == nil && c.isReplica(m) && !isMarked(m) && c.Available(m) && !c.IsOld(m) &&
		!slices.Contains(s.object.Status.Dropping, m.Name) && int(s.object.Status.MarkedReplicas) == 0
}

// isHeld reports whether a rollout does not continue: by the user, an invalid spec, the class, or a
// freeze.
func (w *watcher) isHeld(c *Cluster) bool {
	d := c.deployment()
	for _, class := range c.Classes {
		if class.Missing || class.Problem != nil {
			return true
		}
	}
	// A gate that holds lets each set replace the Machines that it loses. Which gate holds when, gateWatch knows.
	rollout := d.Spec.Rollout
	_, byUser := d.Annotations[machinev1alpha1.AnnotationRolloutHold]
	if byUser || d.Status.Rollout != nil || c.Gate != nil || len(d.Spec.Strategy.RollingUpdate.Steps)+len(rollout.Windows)+len(rollout.Blackouts) > 0 {
		return true
	}
	after := rollout.After
	return len(w.wishes) > 1 || w.latest().paused || after != nil && c.Now.Before(after.Time) ||
		isTrue(d.Status.Conditions, machinev1alpha1.ConditionFrozen) || !isTrue(d.Status.Conditions, machinev1alpha1.ConditionValid)
}

// age removes wishes and losses that are old, and marks of Machines that do not exist any more.
func (w *watcher) age(c *Cluster) {
	for _, n := range w.all() {
		n.age(c)
	}
	for i, wish := range slices.Backward(w.wishes) {
		if wish.old && i > 0 {
			w.owe(c, w.most(w.wishes[:i]))
			w.wishes = w.wishes[i:]
			break
		}
	}
	for set, o := range w.owed {
		if s, there := c.sets.last[set]; !there || s.object.Spec.Replicas != o.replicas || c.holes(s.object) <= 0 {
			delete(w.owed, set)
		}
	}
	w.prove(c)
	w.onScaledDown(c)
	for name, l := range w.losses {
		if l.old {
			delete(w.losses, name)
		}
	}
	for name := range w.marks {
		if _, there := c.machines.last[name]; !there {
			delete(w.marks, name)
		}
	}
	for set, n := range w.places {
		switch s, there := c.sets.last[set]; {
		case !there:
			delete(w.places, set)
		case c.holes(s.object) <= 0:
			// A requested Machine is created although replicas has been lowered since.
			w.places[set] = min(n, c.unseen(s.object))
		}
	}
	if len(w.rolled) > 0 && w.isOver(c) {
		clear(w.rolled)
	}
}

// unseen is the number of Machines that a set has recorded to create, and that do not exist yet.
func (c *Cluster) unseen(s *machinev1alpha1.MachineSet) int {
	n := 0
	for _, name := range s.Status.Creating {
		if _, there := c.machines.last[name]; !there {
			n++
		}
	}
	return n
}

// isOver reports whether no rollout is in progress: the live Machines are exactly the desired ones,
// and no old ones are being deleted.
func (w *watcher) isOver(c *Cluster) bool {
	live := 0
	for _, e := range c.machines.last {
		if c.isReplica(e.object) {
			live++
		}
		if c.IsOld(e.object) {
			return false
		}
	}
	return len(w.wishes) == 1 && live == int(w.latest().replicas)
}

func (w *watcher) latest() *wish { return w.wishes[len(w.wishes)-1] }

// onUpdate is called when a user changed the MachineDeployment.
func (w *watcher) onUpdate(c *Cluster, now *machinev1alpha1.MachineDeployment) {
	wish := c.wishFor(now)
	wish.chosen, wish.written = w.scaleDowns.chosen, len(c.sets.log)
	if len(w.wishes) > 0 {
		w.scaleDowns.onLowered(c, w.latest(), wish)
	}
	w.wishes = append(w.wishes, wish)
}

// onLoss is called with a Machine that is about to be lost, and whether it is deleted.
func (w *watcher) onLoss(c *Cluster, m *machinev1alpha1.Machine, removed bool) {
	l := &loss{news: c.newsOf(m), available: c.Available(m), removed: removed}
	if before := w.losses[m.Name]; before != nil {
		l.available = l.available || before.available
		l.removed = l.removed || before.removed
	}
	if l.removed && (w.losses[m.Name] == nil || !w.losses[m.Name].removed) {
		w.places[l.set]++
		w.scaleDowns.lost++
	}
	w.losses[m.Name] = l
}

// onMark is called when the cluster-autoscaler, or a user, marks a Machine. A repeated mark is no
// news.
func (w *watcher) onMark(c *Cluster, m *machinev1alpha1.Machine) {
	if isMarked(m) {
		return
	}
	n := c.newsOf(m)
	w.marks[m.Name] = &n
}

// onCreate checks the upper bound: there are at most replicas + maxSurge Machines. With the order
// CreateFirst, the number of replacements that may be in flight is added. A Machine that a rollout
// deletes counts until its VM is gone. With OnDelete, only Machines that are not being deleted
// count. These Machines never count: those that a user or a replacement deletes, those whose
// deletion was decided outside of a rollout, those that never had a VM, those that are excess
// because a replacement is no longer needed, and those that were set aside. One that was replaced because of its age
// counts until its VM is gone. No outdated Machine is
// created while a Machine of the template is available. The replacement of a
// lost Machine waits for no deletion. A set creates the Machines of the last number that it has
// acted on. Recreate creates none while a Machine of another template exists.
func (w *watcher) onCreate(c *Cluster, created *machinev1alpha1.Machine) {
	w.age(c)
	w.fill(created)
	if p := w.proof; p != nil && p.old && c.IsOld(created) {
		w.violated("creation of %s, which is of the kind %v, while %s of the template is available", created.Name, kindOf(created.Spec), p.machine)
	}
	total, others := 1, 0
	set := created.OwnerReferences[0].Name
	fills := w.places[set] > 0
	if fills {
		w.places[set]--
	}
	for _, e := range c.machines.last {
		m := e.object
		rolled := w.isRolled(c, m) && !w.cancelled[m.Name] || w.due[m.Name]
		if c.isReplica(m) || rolled && m.Status.ProviderID != "" && !fills {
			total++
		}
		if kindOf(m.Spec) != kindOf(created.Spec) && !c.isSetAside(m) {
			others++
		}
	}
	if w.latest().strategy == machinev1alpha1.Recreate && others > 0 {
		w.violated("creation of %s: there are still %d Machines of another kind than %v", created.Name, others, kindOf(created.Spec))
	}
	most := w.most(w.wishes)
	if o := w.owed[set]; o != nil && o.machines > 0 {
		o.machines--
		most = max(most, o.most)
	}
	if total > most {
		w.violated("creation of %s: there are %d Machines, of at most %d", created.Name, total, most)
	}
}

// most is the number of Machines that may exist by any of the wishes.
func (w *watcher) most(wishes []*wish) int {
	most := 0
	for _, wish := range wishes {
		n := wish.most
		if wish.order == machinev1alpha1.CreateFirst {
			n += wish.budget
		}
		most = max(most, n)
	}
	return most
}

// owe each set the Machines that it must still create by the number that it has acted on.
func (w *watcher) owe(c *Cluster, most int) {
	for name, e := range c.sets.last {
		if n := c.holes(e.object); n > 0 && w.owed[name] == nil {
			w.owed[name] = &owed{machines: n, most: most, replicas: e.object.Spec.Replicas}
		}
	}
}

// onDelete checks that no Machine is deleted without a reason. A deletion for a replacement, or
// after a failure, was checked when the set recorded it. Any other Machine is deleted because a
// number was lowered: a rollout replaces it, or it is excess. No number deletes a Machine that was
// set aside: it stays as long as it is preserved.
func (w *watcher) onDelete(c *Cluster, deleted *machinev1alpha1.Machine) {
	w.age(c)
	if isMarked(deleted) {
		w.scaleDowns.deleted++
		for _, u := range w.updates {
			if u.beside[deleted.Name] {
				u.taken++
			}
		}
	}
	if why, recorded := w.causes[deleted.Name]; recorded && why != tooMany {
		if why == byAge && !w.unavailable[deleted.Name] {
			w.onGoing(c, deleted, "replacement by age", 0)
		}
		return
	}
	if c.isSetAside(deleted) && isPreserved(deleted, c.Now) {
		w.violated("deletion of %s, which was set aside and is preserved", deleted.Name)
		return
	}
	rolls, scales := w.rolls(c, deleted) || w.startsOver(deleted), w.scalesDown(c, deleted)
	scales = scales || w.cancelled[deleted.Name]
	if !rolls && !scales && isMarked(deleted) {
		w.scaleDowns.chosen++
		scales = w.scaleDowns.chosen-w.wishes[0].chosen <= w.lowered()
	}
	switch {
	case !rolls && !scales:
		w.violated("deletion of %s, which is %s and of the kind %v, though no rollout replaces it, and there are not too many", deleted.Name, deleted.Status.Phase, kindOf(deleted.Spec))
	case !rolls:
		w.onUnmarked(c, deleted)
	}
	if !w.outside[deleted.Name] && w.mayRoll(c, deleted) {
		w.rolled[deleted.Name] = w.wishes[0].written
	}
	// A marked Machine is deleted because the client that marked it requests that, regardless of
	// the lower bound. A Machine that was unavailable at the time of the decision is deleted
	// although it became available since.
	if c.Available(deleted) && !isMarked(deleted) && !w.unavailable[deleted.Name] {
		w.onGoing(c, deleted, "deletion", 0)
	}
}

// isRolled reports whether the deletion of a Machine belongs to a rollout that is not over. A
// template that the user reverted before the deployment acted on it began no rollout: no set but
// that of the Machine has replicas, or was written since.
func (w *watcher) isRolled(c *Cluster, m *machinev1alpha1.Machine) bool {
	written, rolled := w.rolled[m.Name]
	if !rolled {
		return false
	}
	own := m.OwnerReferences[0].Name
	for name, e := range c.sets.last {
		if name != own && e.object.Spec.Replicas > 0 {
			return true
		}
	}
	return slices.ContainsFunc(c.sets.log[written:], func(e entry[*machinev1alpha1.MachineSet]) bool { return e.name != own })
}

// mayRoll reports whether the deletion of a Machine may be part of a rollout.
func (w *watcher) mayRoll(c *Cluster, m *machinev1alpha1.Machine) bool {
	return w.rolls(c, m) || w.latest().strategy != machinev1alpha1.OnDelete && !w.isAlone(c)
}

// rolls reports whether a rollout may delete a Machine. A wish in force must have another template,
// or require younger Machines. It must neither hold the rollout nor leave the deletion to the user.
// A change that can be updated in place is no reason to delete.
func (w *watcher) rolls(c *Cluster, m *machinev1alpha1.Machine) bool {
	return slices.ContainsFunc(w.wishes, func(wish *wish) bool {
		switch {
		case wish.paused || wish.strategy == machinev1alpha1.OnDelete || wish.inPlaceOnly:
			return false
		case wish.strategy == machinev1alpha1.InPlaceUpdate:
			return wish.kind.failureDomain != kindOf(m.Spec).failureDomain
		}
		return wish.kind != kindOf(m.Spec) || c.isBefore(m, wish.after)
	})
}

// startsOver reports whether a rollout with OnDelete may delete a Machine that no user deleted. It may delete those of
// another template that start or failed. One that became available since its set counted it is still deleted, and a
// client that marked a Machine wants that one to go first when its set shrinks.
func (w *watcher) startsOver(m *machinev1alpha1.Machine) bool {
	return (w.starting[m.Name] || isMarked(m)) && slices.ContainsFunc(w.wishes, func(wish *wish) bool {
		return wish.strategy == machinev1alpha1.OnDelete && !wish.paused && wish.kind != kindOf(m.Spec)
	})
}

// isBefore reports whether the set of a Machine is older than a time that has come. If a set was
// deleted, and a reconcile with a stale view creates it again, it has its original revision: the
// rollout to a newer revision replaces its Machines, regardless of their age.
func (c *Cluster) isBefore(m *machinev1alpha1.Machine, after *metav1.Time) bool {
	created, set := m.CreationTimestamp, m.OwnerReferences[0].Name
	if i := slices.IndexFunc(c.sets.log, func(e entry[*machinev1alpha1.MachineSet]) bool { return e.name == set }); i >= 0 {
		created = c.sets.log[i].object.CreationTimestamp
	}
	return after != nil && !after.After(c.Now) && created.Before(after)
}

// scalesDown reports whether a scale-down may delete a Machine. A scale-down is spread over all
// Machines, including those that sets must still create. So there must be more Machines than the
// least replicas of the wishes in force. If no wish lowered replicas, only excess Machines may be
// deleted: of the template above replicas, and of all templates above replicas + maxSurge.
func (w *watcher) scalesDown(c *Cluster, m *machinev1alpha1.Machine) bool {
	all, wanted := 0, 0
	count := func(m *machinev1alpha1.Machine) {
		all++
		if slices.ContainsFunc(w.wishes, func(wish *wish) bool {
			return wish.kind == kindOf(m.Spec) || wish.strategy == machinev1alpha1.InPlaceUpdate
		}) {
			wanted++
		}
	}
	for _, e := range c.machines.last {
		if c.isReplica(e.object) {
			count(e.object)
		}
	}
	// The planners may not have observed other deletions yet. They also count Machines that a set
	// has requested and not observed yet.
	counted := map[string]bool{}
	for name, l := range w.losses {
		if e, there := c.machines.last[name]; l.removed && (!there || e.object.DeletionTimestamp != nil) {
			counted[name] = true
		}
	}
	for _, s := range c.sets.last {
		for _, name := range s.object.Status.Creating {
			if _, there := c.machines.last[name]; !there {
				counted[name] = true
			}
		}
	}
	all, wanted = all+len(counted), wanted+len(counted)
	replicas, most, lowered := w.wishes[0].replicas, w.wishes[0].most, false
	for i, wish := range w.wishes {
		lowered = lowered || i > 0 && wish.replicas < w.wishes[i-1].replicas
		replicas, most = min(replicas, wish.replicas), min(most, wish.most)
	}
	holes := 0
	for name, s := range c.sets.last {
		if name != m.OwnerReferences[0].Name {
			holes += max(0, c.holes(s.object))
		}
	}
	return lowered && all+holes > int(replicas) || wanted > int(replicas) || all > most
}

// lowered is the sum of the numbers by which the wishes in force lowered replicas. As many marked
// Machines may be deleted although other desired Machines are still missing.
func (w *watcher) lowered() int {
	n := 0
	for i, wish := range w.wishes[1:] {
		n += max(0, int(w.wishes[i].replicas-wish.replicas))
	}
	return n
}

// isAlone reports whether all Machines, including those that are being deleted, are of one kind,
// and no other kind is desired: there is no rollout.
func (w *watcher) isAlone(c *Cluster) bool {
	kinds := map[kind]bool{}
	for _, wish := range w.wishes {
		kinds[wish.kind] = true
	}
	for _, e := range c.machines.last {
		kinds[kindOf(e.object.Spec)] = true
	}
	return len(kinds) == 1
}

// onUnmarked checks that a scale-down deletes marked Machines first, in all sets: a healthy Machine
// is not deleted while there is a Machine whose mark all planners have observed. Preserved ones do
// not count as marked. A Machine is healthy if it was available when its set recorded the deletion.
func (w *watcher) onUnmarked(c *Cluster, deleted *machinev1alpha1.Machine) {
	if isMarked(deleted) || !c.Available(deleted) || w.unavailable[deleted.Name] {
		return
	}
	for name, n := range w.marks {
		m := c.machines.last[name].object
		_, goes := w.causes[name]
		if n.old && !goes && m.DeletionTimestamp == nil && !isPreserved(m, c.Now) {
			w.violated("deletion of %s, which is healthy and not marked, while %s is marked", deleted.Name, name)
		}
	}
}

// onDrain checks the lower bound for a Machine that is updated in place. A Machine that was
// unavailable at the time of the decision is updated although it became available since. The update
// does not wait for marked Machines that were deleted since: those are deleted regardless of the
// lower bound.
func (w *watcher) onDrain(c *Cluster, drained *machinev1alpha1.Machine) {
	w.age(c)
	if u := w.updates[drained.Name]; u == nil || u.available {
		aside := c.availableAside()
		if u != nil {
			aside += u.taken
		}
		w.onGoing(c, drained, "drain", aside)
	}
}

// availableAside is the number of available Machines that are set aside. They count as gone for
// decisions, but they still run, and an earlier decision to drain counted on them.
func (c *Cluster) availableAside() int {
	n := 0
	for _, e := range c.machines.last {
		if e.object.DeletionTimestamp == nil && c.isSetAside(e.object) && c.Available(e.object) {
			n++
		}
	}
	return n
}

// onGoing checks the lower bound: when an available Machine is deleted or drained, at least
// replicas - maxUnavailable other Machines are available. A loss counts as available until all
// planners could have observed it. After that, only a replacement makes up for it. A Machine that is
// deleted in place of a preserved one is not counted as missing. aside is the number of available
// Machines that are no replicas.
func (w *watcher) onGoing(c *Cluster, going *machinev1alpha1.Machine, how string, aside int) {
	left, excused := aside, 0
	for _, e := range c.machines.last {
		if e.name != going.Name && c.isReplica(e.object) && c.Available(e.object) {
			left++
		}
	}
	for name, l := range w.losses {
		if e, there := c.machines.last[name]; l.available && name != going.Name && (!there || !c.Available(e.object)) {
			excused++
		}
	}
	for _, name := range w.spared[going.Name] {
		l, e := w.losses[name], c.machines.last[name]
		if (l == nil || !l.available) && (e.object == nil || !c.Available(e.object)) {
			excused++
		}
	}
	least := w.wishes[0].least
	for _, wish := range w.wishes {
		least = min(least, wish.least)
	}
	if left+excused < least {
		w.violated("%s of %s: %d Machines are left available, and %d were lost just now, of at least %d", how, going.Name, left, excused, least)
	}
}

// isReplica reports whether a Machine is a replica: it is neither being deleted nor set aside.
func (c *Cluster) isReplica(m *machinev1alpha1.Machine) bool {
	return m.DeletionTimestamp == nil && !c.isSetAside(m)
}

// isSetAside reports whether a Machine counts as gone, because it is preserved although its
// deletion is decided.
func (c *Cluster) isSetAside(m *machinev1alpha1.Machine) bool {
	s, there := c.sets.last[m.OwnerReferences[0].Name]
	return there && slices.Contains(s.object.Status.SetAside, m.Name)
}

func isMarked(m *machinev1alpha1.Machine) bool {
	_, marked := m.Annotations[machinev1alpha1.AnnotationDeleteMachine]
	return marked
}

// isPreserved reports whether a Machine is preserved, or is about to be.
func isPreserved(m *machinev1alpha1.Machine, now time.Time) bool {
	if p := m.Status.Preservation; p != nil {
		return now.Before(p.Until.Time)
	}
	switch m.Annotations[machinev1alpha1.AnnotationPreserve] {
	case machinev1alpha1.PreserveNow:
		return true
	case machinev1alpha1.PreserveWhenFailed, machinev1alpha1.PreserveAuto:
		return m.Status.Phase == machinev1alpha1.MachineFailed
	}
	return false
}

// bounds of a rollout, which tests compute from the spec without the planners: the number of
// Machines that may exist, and the number that must be available.
func bounds(d *machinev1alpha1.MachineDeployment) (most, least int) {
	replicas := int(d.Spec.Replicas)
	up, down := d.Spec.Strategy.RollingUpdate.MaxSurge, d.Spec.Strategy.RollingUpdate.MaxUnavailable
	ups, downs := 1, 0
	switch d.Spec.Strategy.Type {
	case machinev1alpha1.Recreate:
		return replicas, 0
	case machinev1alpha1.OnDelete:
		return replicas, replicas
	case machinev1alpha1.InPlaceUpdate:
		up, down = d.Spec.Strategy.InPlaceUpdate.MaxSurge, d.Spec.Strategy.InPlaceUpdate.MaxUnavailable
		ups, downs = 0, 1
	}
	surge, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(up, intstr.FromInt(ups)), replicas, true)
	unavailable, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(down, intstr.FromInt(downs)), replicas, false)
	never := d.Spec.Strategy.Type == machinev1alpha1.InPlaceUpdate && d.Spec.Strategy.InPlaceUpdate.Fallback == machinev1alpha1.FallbackNever
	if unavailable == 0 && (surge == 0 || never) {
		unavailable = 1
	}
	return replicas + surge, max(0, replicas-unavailable)
}
