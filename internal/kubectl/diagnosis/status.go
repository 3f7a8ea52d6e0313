package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/schedule"
)

// A State of an object.
type State string

// States, the worst last.
const (
	// Complete objects are as their spec desires.
	Complete State = "Complete"
	// InProgress objects become complete without a user.
	InProgress State = "InProgress"
	// NeedsUser objects become complete only after a user acts.
	NeedsUser State = "NeedsUser"
)

var states = []State{Complete, InProgress, NeedsUser}

// ExitCode of a command that reports the state: 0, 2 or 3. A command that fails ends with 1.
func (s State) ExitCode() int {
	switch s {
	case InProgress:
		return 2
	case NeedsUser:
		return 3
	case Complete:
	}
	return 0
}

func worse(a, b State) State { return states[max(slices.Index(states, a), slices.Index(states, b))] }

// A Report is the output of the command status.
type Report struct {
	State State `json:"state"`
	// Groups, each of an object that no other object of the view controls.
	Groups []Group  `json:"groups"`
	Unread []string `json:"unread,omitempty"`
}

// A Group is a NodePool, MachineDeployment, MachineSet or Machine with all that is below it.
type Group struct {
	view.Ref
	State State `json:"state"`
	// Deleting means that the object is being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Version and Strategy, if the object has them.
	Version  string `json:"version,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	// Owner of a Machine in its target cluster: the NodeClaim that it was made for.
	Owner  string `json:"owner,omitempty"`
	Counts Counts `json:"counts"`
	// Doing is the current activity that the object reports. It is empty if it is complete.
	Doing string `json:"doing,omitempty"`
	// NextByAge is the Machine that spec.rollout.maxAge replaces next.
	NextByAge *NextByAge `json:"nextByAge,omitempty"`
	Members   []Member   `json:"members,omitempty"`
	Machines  []Row      `json:"machines,omitempty"`
	Findings  []Finding  `json:"findings,omitempty"`
}

// NextByAge is the Machine that is replaced next because of its age, and the time from which it is: it is due, and a window is open.
type NextByAge struct {
	Machine string      `json:"machine"`
	From    metav1.Time `json:"from"`
}

// Counts of Machines.
type Counts struct {
	Desired     int32 `json:"desired"`
	Updated     int32 `json:"updated"`
	Available   int32 `json:"available"`
	Unhealthy   int32 `json:"unhealthy,omitempty"`
	Terminating int32 `json:"terminating,omitempty"`
}

// A Member is a MachineDeployment of a NodePool, or a MachineSet of a MachineDeployment.
type Member struct {
	view.Ref
	Version string `json:"version,omitempty"`
	// FailureDomain or revision that sets the member apart.
	Note   string `json:"note,omitempty"`
	Counts Counts `json:"counts"`
}

// A Row is a Machine.
type Row struct {
	view.Ref
	Phase   string `json:"phase"`
	Node    string `json:"node,omitempty"`
	Version string `json:"version"`
	// Waits is the reason for waiting, in a few words. It is empty if the Machine runs.
	Waits   string      `json:"waits,omitempty"`
	Created metav1.Time `json:"created"`
}

// Status reports on all objects in the view, or on one object and the objects below it.
func Status(v *view.View, only *view.Ref, now time.Time) (Report, error) {
	r := Report{State: Complete, Groups: []Group{}, Unread: v.Unread}
	if only != nil {
		g, ok := groupOf(v, *only, now)
		if !ok {
			return r, notFound(v, *only)
		}
		r.Groups, r.State = append(r.Groups, g), g.State
		return r, nil
	}
	for _, ref := range roots(v) {
		if g, ok := groupOf(v, ref, now); ok {
			r.Groups = append(r.Groups, g)
			r.State = worse(r.State, g.State)
		}
	}
	return r, nil
}

// roots are the objects that no other object of the view controls, by namespace, kind and name.
func roots(v *view.View) []view.Ref {
	var out []view.Ref
	for _, p := range v.Pools {
		out = append(out, refOf(view.NodePool, &p))
	}
	for _, d := range v.LoneDeployments() {
		out = append(out, refOf(view.MachineDeployment, d))
	}
	for _, s := range v.LoneSets() {
		out = append(out, refOf(view.MachineSet, s))
	}
	for _, m := range v.LoneMachines() {
		out = append(out, refOf(view.Machine, m))
	}
	slices.SortStableFunc(out, func(a, b view.Ref) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}

func refOf(kind string, o metav1.Object) view.Ref {
	return view.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// groupOf an object. It reports false if the view does not have the object.
func groupOf(v *view.View, ref view.Ref, now time.Time) (Group, bool) {
	g := &group{v: v, now: now, Group: Group{Ref: ref, State: InProgress}}
	var ok bool
	switch ref.Kind {
	case view.NodePool:
		ok = g.pool(v.Pool(ref.Namespace, ref.Name))
	case view.MachineDeployment:
		ok = g.deployment(v.Deployment(ref.Namespace, ref.Name))
	case view.MachineSet:
		ok = g.set(v.Set(ref.Namespace, ref.Name))
	case view.Machine:
		ok = g.machine(v.Machine(ref.Namespace, ref.Name))
	}
	g.Findings = merge(g.Findings)
	for i := range g.Findings {
		// The configuration is a finding of its own then, and has the remedy.
		if f := &g.Findings[i]; f.Reason == machinev1alpha1.ReasonTargetUnreachable && slices.ContainsFunc(g.Findings, func(o Finding) bool { return o.Condition == clusterv1alpha1.ConditionReachable }) {
			f.Do = ""
		}
	}
	terminates := func(r Row) bool { return r.Phase == string(machinev1alpha1.MachineTerminating) }
	switch {
	case slices.ContainsFunc(g.Findings, func(f Finding) bool { return f.NeedsUser }):
		g.State = NeedsUser
	case len(g.Findings) > 0, slices.ContainsFunc(g.Machines, terminates):
		// The object may not have counted the Machine yet.
		g.State = worse(g.State, InProgress)
	}
	if g.State == Complete {
		g.Doing = ""
	}
	return g.Group, ok
}

// A group is built from the top down.
type group struct {
	Group
	v   *view.View
	now time.Time
}

func (g *group) pool(p *machinev1alpha1.NodePool) bool {
	if p == nil {
		return false
	}
	s := p.Status
	g.top(p, s.Conditions, s.ObservedGeneration)
	g.Version, g.Strategy = s.Version, string(p.Spec.Strategy.Type)
	g.Counts = Counts{s.DesiredReplicas, s.UpdatedReplicas, s.AvailableReplicas, s.UnhealthyReplicas, s.TerminatingReplicas}
	var exhausted []machinev1alpha1.Exhaustion
	for _, d := range s.FailureDomains {
		if d.Exhausted != nil {
			exhausted = append(exhausted, *d.Exhausted)
		}
	}
	g.Findings = append(g.Findings, applyToSet(g.Ref, s.Conditions, exhausted)...)
	for _, d := range g.v.DeploymentsOf(p) {
		m := Member{Ref: refOf(view.MachineDeployment, d), Version: d.Spec.Template.Spec.Version, Counts: countsOf(d)}
		if z := d.Spec.Template.Spec.FailureDomain; z != nil {
			m.Note = *z
		}
		g.Members = append(g.Members, m)
		g.below(d)
	}
	return true
}

func (g *group) deployment(d *machinev1alpha1.MachineDeployment) bool {
	if d == nil {
		return false
	}
	g.top(d, d.Status.Conditions, d.Status.ObservedGeneration)
	g.Version, g.Strategy, g.Counts = d.Spec.Template.Spec.Version, string(d.Spec.Strategy.Type), countsOf(d)
	for _, s := range g.v.SetsOf(d) {
		note := "revision " + cmp.Or(s.Annotations[machinev1alpha1.AnnotationRevision], "unknown")
		g.Members = append(g.Members, Member{Ref: refOf(view.MachineSet, s), Version: s.Spec.Template.Spec.Version, Note: note, Counts: countsOfSet(s)})
	}
	g.below(d)
	return true
}

func (g *group) set(s *machinev1alpha1.MachineSet) bool {
	if s == nil {
		return false
	}
	g.top(s, s.Status.Conditions, s.Status.ObservedGeneration)
	g.Version, g.Counts = s.Spec.Template.Spec.Version, countsOfSet(s)
	g.belowSet(s)
	return true
}

func (g *group) machine(m *machinev1alpha1.Machine) bool {
	if m == nil {
		return false
	}
	g.top(m, m.Status.Conditions, m.Status.ObservedGeneration)
	g.Version, g.Counts = m.Spec.Version, Counts{Desired: 1, Updated: 1}
	if m.Status.Phase == machinev1alpha1.MachineRunning {
		g.Counts.Available = 1
	}
	g.Findings = append(g.Findings, ofConfig(g.v.ConfigOf(m.Namespace, m.Spec.ClusterRef))...)
	g.Owner = nodeClaim(g.v, m)
	g.belowMachine(m)
	return true
}

// top adds the object that the group is named after.
func (g *group) top(o metav1.Object, conditions []metav1.Condition, observed int64) {
	g.Deleting = o.GetDeletionTimestamp() != nil
	ready := view.Is(conditions, machinev1alpha1.ConditionReady, metav1.ConditionTrue)
	reconciling := view.Is(conditions, machinev1alpha1.ConditionReconciling, metav1.ConditionTrue)
	if ready != nil && reconciling == nil && observed == o.GetGeneration() && !g.Deleting {
		g.State = Complete
	}
	switch {
	case reconciling != nil:
		g.Doing = reconciling.Message
	case observed != o.GetGeneration() && !g.Deleting && !isRefused(o.GetGeneration(), conditions) && !hasError(conditions):
		g.Doing = "the change of the spec is not observed yet"
	default:
		held := view.Is(conditions, machinev1alpha1.ConditionProgressing, metav1.ConditionUnknown)
		if held == nil {
			// A NodePool quotes the one of its MachineDeployment.
			held = view.Is(conditions, machinev1alpha1.ConditionReconciling, metav1.ConditionFalse)
		}
		if held != nil && slices.Contains(endByThemselves, held.Reason) {
			g.Doing = held.Message
		}
	}
}

// isRefused reports whether the current spec was looked at and is invalid. The object is still of the generation before then.
func isRefused(generation int64, conditions []metav1.Condition) bool {
	synced := meta.FindStatusCondition(conditions, string(xpv2.TypeSynced))
	return synced != nil && synced.ObservedGeneration == generation && view.Is(conditions, machinev1alpha1.ConditionValid, metav1.ConditionFalse) != nil
}

// hasError reports whether an object cannot be reconciled. That is why its spec is not observed.
func hasError(conditions []metav1.Condition) bool {
	synced := view.Is(conditions, string(xpv2.TypeSynced), metav1.ConditionFalse)
	return synced != nil && synced.Reason == machinev1alpha1.ReasonReconcileError
}

func countsOf(d *machinev1alpha1.MachineDeployment) Counts {
	s := d.Status
	return Counts{d.Spec.Replicas, s.UpdatedReplicas, s.AvailableReplicas, s.UnhealthyReplicas, s.TerminatingReplicas}
}

func countsOfSet(s *machinev1alpha1.MachineSet) Counts {
	return Counts{s.Spec.Replicas, s.Status.UpdatedReplicas, s.Status.AvailableReplicas, s.Status.UnhealthyReplicas, s.Status.TerminatingReplicas}
}

// below adds a MachineDeployment and the objects below it.
func (g *group) below(d *machinev1alpha1.MachineDeployment) {
	ref := refOf(view.MachineDeployment, d)
	g.age(d)
	g.target(d.Namespace, d.Spec.Template.Spec.ClusterRef, d.Status.Conditions)
	g.Findings = append(g.Findings, applyToSet(ref, d.Status.Conditions, d.Status.Exhausted)...)
	if f, ok := paused(d, ref); ok && f.Reason == machinev1alpha1.ReasonAwaitingApproval && isApproved(d) {
		g.Doing = "the approval of the step is not observed yet"
	} else if ok {
		g.Findings = append(g.Findings, f)
	}
	for _, s := range g.v.SetsOf(d) {
		g.belowSet(s)
	}
}

// age adds the Machine of a MachineDeployment that is replaced next because of its age, if it is the first of all.
func (g *group) age(d *machinev1alpha1.MachineDeployment) {
	a := d.Status.Aging
	if a == nil {
		return
	}
	w, _ := schedule.Parse(g.now, d.Spec.Rollout) // Another condition reports windows that are invalid.
	from := aging.From(g.now, a.DueTime.Time, w)
	if next := g.NextByAge; next == nil || from.Before(next.From.Time) {
		g.NextByAge = &NextByAge{Machine: a.Machine, From: metav1.NewTime(from.UTC().Truncate(time.Second))}
	}
}

// target adds the findings of a target cluster that freezes a set. A target cluster that is unreachable and
// freezes no set is left to the Machines that join it.
func (g *group) target(namespace string, ref machinev1alpha1.ClusterReference, conditions []metav1.Condition) {
	if c := g.v.ConfigOf(namespace, ref); c != nil && (c.Missing || view.Is(conditions, machinev1alpha1.ConditionFrozen, metav1.ConditionTrue) != nil) {
		g.Findings = append(g.Findings, ofConfig(c)...)
	}
}

// endByThemselves are the reasons of holds that are no finding: the user of the MachineDeployment need not act.
var endByThemselves = []string{machinev1alpha1.ReasonOutsideWindow, machinev1alpha1.ReasonGateHolds, machinev1alpha1.ReasonAwaitingWave}

// waitsForUser are the reasons of Progressing that hold a rollout until a user acts, with the command that ends them.
var waitsForUser = map[string]string{
	machinev1alpha1.ReasonMachineDeploymentPaused: "kubectl drover rollout resume %s -n %s",
	machinev1alpha1.ReasonAwaitingApproval:        "kubectl drover rollout approve %s -n %s",
	machinev1alpha1.ReasonRolloutHeld:             "kubectl drover rollout hold %s -n %s --undo",
}

// isApproved reports whether the step that the rollout is at is approved.
func isApproved(d *machinev1alpha1.MachineDeployment) bool {
	r := d.Status.Rollout
	return r != nil && r.Step > 0 && deployment.ApprovedStep(d, r.ID) >= r.Step
}

// paused returns a finding if a user holds a rollout that has Machines to replace, or must approve one.
func paused(d *machinev1alpha1.MachineDeployment, ref view.Ref) (Finding, bool) {
	c := view.Is(d.Status.Conditions, machinev1alpha1.ConditionProgressing, metav1.ConditionUnknown)
	if c == nil || waitsForUser[c.Reason] == "" || d.Status.UpdatedReplicas >= d.Spec.Replicas {
		return Finding{}, false
	}
	f := newFinding(ref, c)
	f.NeedsUser, f.Commands = true, []string{fmt.Sprintf(waitsForUser[c.Reason], ref, ref.Namespace)}
	return f, true
}

func (g *group) belowSet(s *machinev1alpha1.MachineSet) {
	g.target(s.Namespace, s.Spec.Template.Spec.ClusterRef, s.Status.Conditions)
	g.Findings = append(g.Findings, ofSet(g.v, s)...)
	for _, m := range g.v.MachinesOf(s) {
		g.belowMachine(m)
	}
}

func (g *group) belowMachine(m *machinev1alpha1.Machine) {
	g.Findings = append(g.Findings, ofMachine(g.v, m, g.now)...)
	g.Machines = append(g.Machines, rowOf(m))
}

// Rows of Machines, oldest first.
func Rows(v *view.View) []Row {
	var out []Row
	for _, s := range v.Sets {
		for _, m := range v.MachinesOf(&s) {
			out = append(out, rowOf(m))
		}
	}
	for _, m := range v.LoneMachines() {
		out = append(out, rowOf(m))
	}
	return out
}

func rowOf(m *machinev1alpha1.Machine) Row {
	r := Row{Ref: refOf(view.Machine, m), Phase: phaseOf(m), Version: m.Spec.Version, Created: m.CreationTimestamp}
	if m.Status.NodeRef != nil {
		r.Node = m.Status.NodeRef.Name
	}
	r.Waits = waitsFor(m)
	return r
}

func phaseOf(m *machinev1alpha1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		return string(machinev1alpha1.MachineTerminating)
	}
	return cmp.Or(string(m.Status.Phase), string(machinev1alpha1.MachinePending))
}

// waitsFor returns the reason or the stage that keeps a Machine from its next phase.
func waitsFor(m *machinev1alpha1.Machine) string {
	if !m.DeletionTimestamp.IsZero() {
		if d := m.Status.Deletion; d != nil {
			return string(d.Stage)
		}
		return ""
	}
	if m.Status.Phase == machinev1alpha1.MachineFailed {
		return string(m.Status.FailureReason)
	}
	if m.Status.Phase == machinev1alpha1.MachineRunning {
		return ""
	}
	for _, typ := range []string{machinev1alpha1.ConditionValid, machinev1alpha1.ConditionInfrastructureReady, machinev1alpha1.ConditionNodeReady, machinev1alpha1.ConditionNodeHealthy} {
		for _, c := range m.Status.Conditions {
			if c.Type == typ && c.Status != metav1.ConditionTrue {
				return c.Reason
			}
		}
	}
	return ""
}
