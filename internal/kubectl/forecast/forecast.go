// Package forecast predicts the effect of a change of a MachineDeployment: the Machines that are replaced,
// updated in place, created and deleted, their order, how many at a time, blockers, and the shortest duration.
//
// The planners that Drover itself runs decide which MachineSet the template belongs to
// (internal/plan/deployment) and in which order Machines are deleted (internal/plan/set). The rest is the
// arithmetic of the bounds. Tests compare each forecast with the decisions of the planners in their simulator.
package forecast

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1alpha1 "github.com/drover-dev/drover/apis/cluster/v1alpha1"
	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/view"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/plan/aging"
	"github.com/drover-dev/drover/internal/plan/deployment"
	"github.com/drover-dev/drover/internal/plan/freeze"
	"github.com/drover-dev/drover/internal/plan/set"
	"github.com/drover-dev/drover/internal/plan/waves"
	"github.com/drover-dev/drover/internal/schedule"
)

// Input of a forecast.
type Input struct {
	// Before is the MachineDeployment as it is, and After as the API server would store the change.
	Before, After *machinev1alpha1.MachineDeployment
	Sets          []machinev1alpha1.MachineSet
	Machines      []machinev1alpha1.Machine
	// ClassMissing means that the class of After does not exist.
	ClassMissing bool
	// AnalysesMissing are the RolloutAnalyses that steps of After name and that do not exist.
	AnalysesMissing []string
	// Policies are the RolloutPolicies that were read, and Labels those by which they select: of the NodePool that controls the
	// MachineDeployment, or else its own.
	Policies []machinev1alpha1.RolloutPolicy
	Labels   map[string]string
	// Profiles that the health of After names.
	Profiles plan.HealthProfiles
	// Config of the target cluster of After, nil if it was not read.
	Config *view.Config
	// Pods and Budgets of the target cluster, nil if it was not read.
	Pods    []corev1.Pod
	Budgets []policyv1.PodDisruptionBudget
	// TargetRead means that the last two were read.
	TargetRead bool
}

// An Effect is the effect of a change of a field.
type Effect string

// Effects of fields.
const (
	Rolls    Effect = "rolls"
	InPlace  Effect = "reaches Machines in place"
	Scales   Effect = "scales"
	NoEffect Effect = "changes no Machine"
)

// A Field that changes.
type Field struct {
	Path   string `json:"path"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Effect Effect `json:"effect"`
}

// A Forecast of a change.
type Forecast struct {
	view.Ref
	Fields []Field `json:"fields,omitempty"`
	// Strategy that the change follows.
	Strategy machinev1alpha1.StrategyType `json:"strategy"`
	// Replaced Machines are deleted, in this order, and new ones are created.
	Replaced []string `json:"replaced,omitempty"`
	// Updated Machines stay, and an agent on their Nodes updates them, in this order.
	Updated []string `json:"updated,omitempty"`
	// Deleted Machines are deleted without a replacement, in this order.
	Deleted []string `json:"deleted,omitempty"`
	// Created is how many Machines are created.
	Created int32 `json:"created"`
	// Waiting Machines are of an old template, and stay until a user acts.
	Waiting []string `json:"waiting,omitempty"`
	// Most is the highest number of Machines at a time, and Least the lowest number of available ones.
	Most  int32 `json:"most"`
	Least int32 `json:"least"`
	// AtATime is how many Machines are replaced or updated at a time, 0 if none is.
	AtATime int32 `json:"atATime,omitempty"`
	// Steps of the rollout, in their order.
	Steps []Step `json:"steps,omitempty"`
	// Window has the times in which Machines are replaced. It is empty without windows and blackouts.
	Window string `json:"window,omitempty"`
	// Waves name what each RolloutPolicy lets go first. There are none if no policy holds the rollout.
	Waves []string `json:"waves,omitempty"`
	// Follows is the MachineDeployment of the pool whose rollout is complete before this one begins. It is empty if there is none.
	Follows string `json:"follows,omitempty"`
	// Aging has the Machines that are replaced because of their age, and when. It is empty without spec.rollout.maxAge.
	Aging string `json:"aging,omitempty"`
	// Blocks are the blockers of the change, now or later.
	Blocks []Block `json:"blocks,omitempty"`
	// Health are the conditions of Nodes and the actions that follow after the change, if the change concerns them.
	Health []HealthRule `json:"health,omitempty"`
	// AtLeast is the shortest duration. It is 0 if that is not known.
	AtLeast metav1.Duration `json:"atLeast"`
	// Basis of AtLeast.
	Basis string `json:"basis,omitempty"`
}

// A Step of a rollout holds it until its Machines have been available for Soak, its Analyses have passed, and a user approves it.
type Step struct {
	Updated  int32                    `json:"updated"`
	Soak     metav1.Duration          `json:"soak"`
	Approval machinev1alpha1.Approval `json:"approval,omitempty"`
	Analyses []string                 `json:"analyses,omitempty"`
}

// A Block is a blocker of a change.
type Block struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Do is the action for a user.
	Do string `json:"do,omitempty"`
	// All means that it blocks the whole change.
	All bool `json:"all,omitempty"`
}

// Of forecasts a change.
func Of(now time.Time, in Input) Forecast {
	f := &foresight{in: in, now: now}
	f.Forecast = Forecast{
		Ref:      view.Ref{Kind: view.MachineDeployment, Namespace: in.After.Namespace, Name: in.After.Name},
		Fields:   fieldsOf(in.Before, in.After),
		Strategy: cmp.Or(in.After.Spec.Strategy.Type, machinev1alpha1.RollingUpdate),
	}
	f.decide()
	f.held()
	f.machines()
	f.bounds()
	f.blocks()
	f.health()
	f.duration()
	f.gates()
	f.ages()
	return f.Forecast
}

type foresight struct {
	Forecast
	in  Input
	now time.Time

	// target is the set of the template, nil if it does not exist.
	target *machinev1alpha1.MachineSet
	// composed is the target as the planner desires it.
	composed *machinev1alpha1.MachineSet
	// decision of the planner without a pause, and with it.
	decision deployment.Decision
	// rollHeld means that nothing is replaced, and createHeld that nothing is created.
	rollHeld, createHeld bool
}

// decide which set the template belongs to, as if no pause and no freeze held it.
func (f *foresight) decide() {
	free := f.in.After.DeepCopy()
	free.Spec.Paused = false
	delete(free.Annotations, machinev1alpha1.AnnotationPaused)
	delete(free.Annotations, machinev1alpha1.AnnotationRolloutHold)
	free.Spec.Rollout.Windows, free.Spec.Rollout.Blackouts = nil, nil
	f.decision = deployment.Plan(f.now, f.observed(free))
	if n := len(f.decision.Sets); n > 0 {
		f.composed = f.decision.Sets[n-1].MachineSet
		for i := range f.in.Sets {
			if f.in.Sets[i].Name == f.composed.Name {
				f.target = &f.in.Sets[i]
			}
		}
	}
}

func (f *foresight) observed(d *machinev1alpha1.MachineDeployment) deployment.Observed {
	// The class is judged apart: without one, the planner composes no set.
	o := deployment.Observed{Deployment: d, ClassFound: true, Analysis: deployment.AnalysesFound(d)}
	for _, name := range f.in.AnalysesMissing {
		s := &o.Analysis.Status
		s.Found = slices.DeleteFunc(s.Found, func(found string) bool { return found == name })
		s.Problems = append(s.Problems, machinev1alpha1.AnalysisProblem{Name: name, Reason: machinev1alpha1.ReasonAnalysisNotFound, Message: fmt.Sprintf("the namespace %s has no RolloutAnalysis of the name", d.Namespace)})
	}
	for i := range f.in.Sets {
		s := f.in.Sets[i].DeepCopy()
		o.Sets = append(o.Sets, deployment.Set{MachineSet: s, Observed: true, Terminating: s.DeletionTimestamp != nil})
	}
	return o
}

// held finds the blockers of the whole change.
func (f *foresight) held() {
	after := f.in.After
	_, annotated := after.Annotations[machinev1alpha1.AnnotationPaused]
	problem := f.problem()
	frozen := f.frozen()
	noCluster := f.in.Config != nil && f.in.Config.Missing
	f.createHeld = frozen != nil || f.in.ClassMissing || noCluster
	_, held := after.Annotations[machinev1alpha1.AnnotationRolloutHold]
	if held {
		f.block(true, machinev1alpha1.ReasonRolloutHeld, "the annotation "+machinev1alpha1.AnnotationRolloutHold+" holds rollouts: nothing is replaced or updated", "Run kubectl drover rollout hold --undo.")
	}
	if _, err := schedule.Parse(f.now, after.Spec.Rollout); err != nil && problem == nil {
		problem = &plan.Condition{Reason: machinev1alpha1.ReasonInvalidWindow, Message: err.Error()}
	}
	f.rollHeld = after.Spec.Paused || annotated || held || problem != nil || f.createHeld
	switch {
	case after.Spec.Paused:
		f.block(true, machinev1alpha1.ReasonMachineDeploymentPaused, "spec.paused is true: nothing is replaced or updated", "Run kubectl drover rollout resume.")
	case annotated:
		f.block(true, machinev1alpha1.ReasonMachineDeploymentPaused, "the annotation "+machinev1alpha1.AnnotationPaused+" pauses rollouts: nothing is replaced or updated", "Run kubectl drover rollout resume.")
	}
	if problem != nil {
		f.block(true, problem.Reason, problem.Message, "Correct the field.")
	}
	if f.in.ClassMissing {
		c := after.Spec.Template.Spec.ClassRef
		f.block(true, machinev1alpha1.ReasonClassNotFound, fmt.Sprintf("%s %q does not exist: nothing is created or replaced", cmp.Or(c.Kind, "MachineClass"), c.Name), "Create the class first.")
	}
	if noCluster {
		problem := plan.NoCluster(f.in.Config.Namespace, after.Spec.Template.Spec.ClusterRef, "spec.template.spec.clusterRef")
		f.block(true, problem.Reason, problem.Message+": nothing is created or replaced", "Create the configuration first.")
	}
	if frozen != nil {
		f.block(true, frozen.Reason, frozen.Message, "Nothing is created or replaced until the freeze ends.")
	}
}

func (f *foresight) block(all bool, reason, message, do string) {
	f.Blocks = append(f.Blocks, Block{Reason: reason, Message: message, Do: do, All: all})
}

// problem of the spec that the planner finds.
func (f *foresight) problem() *plan.Condition {
	for _, c := range f.decision.Conditions {
		if c.Type == machinev1alpha1.ConditionValid && c.Status == string(metav1.ConditionFalse) {
			return &c
		}
	}
	return nil
}

// frozen returns why no Machine may be created, nil if some may.
func (f *foresight) frozen() *plan.Condition {
	o := freeze.OfDeployment(f.in.After)
	if c := f.in.Config; c != nil {
		if r := view.Is(c.Conditions, clusterv1alpha1.ConditionReachable, metav1.ConditionFalse); r != nil {
			o.Cluster = &freeze.Cluster{Kind: c.Kind, Name: c.Name, Unreachable: true, Reason: r.Reason, Since: r.LastTransitionTime.Time}
		}
	}
	p := freeze.Plan(f.now, o)
	if !p.Safety.Frozen {
		return nil
	}
	return &p.Condition
}

// machines determines the Machines that the change affects.
func (f *foresight) machines() {
	replicas := f.in.After.Spec.Replicas
	kept, old := f.sorted()
	f.updates()
	var have int32
	switch {
	case f.rollHeld || f.Strategy == machinev1alpha1.OnDelete:
		// Machines of old templates stay: only the number counts.
		have = int32(len(kept) + len(old))
		f.Waiting = old
		if have > replicas {
			f.scaleDown(old, kept, have-replicas)
		}
	default:
		have = int32(len(kept))
		if have > replicas {
			f.scaleDown(nil, kept, have-replicas)
		}
		// Old Machines are replaced as far as new ones are created in their place. The rest of the old ones is
		// deleted.
		missing := max(0, replicas-have)
		n := min(int32(len(old)), missing)
		f.Replaced, f.Deleted = old[int32(len(old))-n:], slices.Concat(f.Deleted, old[:int32(len(old))-n])
	}
	if f.createHeld {
		return
	}
	f.Created = max(0, replicas-have)
}

// scaleDown deletes a number of Machines, those of old templates first.
func (f *foresight) scaleDown(old, kept []string, n int32) {
	all := slices.Concat(old, kept)
	f.Deleted = all[:min(int(n), len(all))]
	f.Waiting = slices.DeleteFunc(slices.Clone(f.Waiting), func(name string) bool { return slices.Contains(f.Deleted, name) })
}

// sorted returns the Machines of the template's set, and those of other sets, in the order of deletion, the
// oldest set first.
func (f *foresight) sorted() (kept, old []string) {
	sets := slices.Clone(f.in.Sets)
	slices.SortFunc(sets, func(a, b machinev1alpha1.MachineSet) int {
		return cmp.Or(cmp.Compare(revisionOf(a), revisionOf(b)), cmp.Compare(a.Name, b.Name))
	})
	for i := range sets {
		s := sets[i].DeepCopy()
		isTarget := f.target != nil && s.Name == f.target.Name
		if !isTarget && !f.rollHeld {
			// A rollout deletes preserved Machines like any other: the planner recognizes a rollout by this taint.
			s.Spec.NodeMarks.Taints = append(s.Spec.NodeMarks.Taints, machinev1alpha1.Taint{Key: machinev1alpha1.TaintOutdated})
		}
		order := set.OrderOf(f.now, f.observedSet(s)).Deletion
		if isTarget {
			kept = append(kept, order...)
		} else {
			old = append(old, order...)
		}
	}
	return kept, old
}

func revisionOf(s machinev1alpha1.MachineSet) int64 {
	n := int64(0)
	_, _ = fmt.Sscan(s.Annotations[machinev1alpha1.AnnotationRevision], &n)
	return n
}

func (f *foresight) observedSet(s *machinev1alpha1.MachineSet) set.Observed {
	o := set.Observed{Set: s}
	for i := range f.in.Machines {
		m := f.in.Machines[i].DeepCopy()
		if by := metav1.GetControllerOf(m); by != nil && by.UID == s.UID {
			o.Machines = append(o.Machines, set.Machine{Machine: m, Terminating: m.DeletionTimestamp != nil})
		}
	}
	return o
}

// updates determines the updates in place, if the set takes over the new template.
func (f *foresight) updates() {
	if f.Strategy != machinev1alpha1.InPlaceUpdate || f.target == nil || f.composed == nil || f.composed.Spec.InPlaceUpdate == nil || f.rollHeld {
		return
	}
	s := f.target.DeepCopy()
	s.Spec = *f.composed.Spec.DeepCopy()
	f.Updated = set.OrderOf(f.now, f.observedSet(s)).Outdated
}

// gates adds the steps, and the time at which a window opens, if the change replaces or updates Machines.
func (f *foresight) gates() {
	if f.rollHeld || len(f.Replaced)+len(f.Updated) == 0 || f.Strategy == machinev1alpha1.OnDelete {
		return
	}
	replicas, soak := f.in.After.Spec.Replicas, time.Duration(0)
	for _, s := range deployment.StepsOf(f.in.After) {
		if s.Updated < replicas {
			f.Steps = append(f.Steps, Step{Updated: s.Updated, Soak: metav1.Duration{Duration: s.Soak}, Approval: s.Approval, Analyses: s.Analyses})
			soak += s.Soak
		}
	}
	wait := time.Duration(0)
	if w, err := schedule.Parse(f.now, f.in.After.Spec.Rollout); err == nil && w != nil {
		switch {
		case !w.IsOpen(f.now):
			opens := w.Opens(f.now)
			wait = opens.Sub(f.now).Truncate(time.Second)
			f.Window = "It begins at " + opens.UTC().Format(time.RFC3339) + ", when the next window opens"
		case w.Closes(f.now).IsZero():
			f.Window = "It begins at once"
		default:
			f.Window = "It begins at once, and pauses when the window closes at " + w.Closes(f.now).UTC().Format(time.RFC3339)
		}
	}
	after := f.in.After
	member := waves.Member{Namespace: after.Namespace, Name: after.Name, Labels: f.in.Labels, Cluster: after.Spec.Template.Spec.ClusterRef}
	for i := range f.in.Policies {
		if text := waves.Before(&f.in.Policies[i], member); text != "" {
			f.Waves = append(f.Waves, text)
		}
	}
	if f.AtLeast.Duration > 0 && soak+wait > 0 {
		f.AtLeast.Duration += soak + wait
		f.Basis += fmt.Sprintf("; %s of soaking and %s until the window are included", soak, wait)
	}
}

// ages adds the Machine that is replaced next because of its age. Those that the change replaces begin a new one.
func (f *foresight) ages() {
	r := f.in.After.Spec.Rollout
	if r.MaxAge == nil || f.problem() != nil {
		return
	}
	var stay []*machinev1alpha1.Machine
	due := 0
	for i := range f.in.Machines {
		m := &f.in.Machines[i]
		if m.DeletionTimestamp != nil || slices.Contains(f.Replaced, m.Name) || slices.Contains(f.Deleted, m.Name) {
			continue
		}
		stay = append(stay, m)
		if !f.now.Before(aging.Due(m, r.MaxAge.Duration)) {
			due++
		}
	}
	f.Aging = fmt.Sprintf("Machines are replaced one at a time when they are %s old at most", r.MaxAge.Duration)
	next := aging.Next(stay, r.MaxAge.Duration)
	if next == nil {
		return
	}
	w, _ := schedule.Parse(f.now, r) // Windows that are invalid block the change.
	from := aging.From(f.now, next.DueTime.Time, w)
	f.Aging += fmt.Sprintf(": the next one is %s, from %s on", next.Machine, from.UTC().Format(time.RFC3339))
	if due > 1 {
		f.Aging += fmt.Sprintf("; %d are due already", due)
	}
}

// bounds computes the bounds of the change.
func (f *foresight) bounds() {
	after := f.in.After
	surge, unavailable, problem := deployment.Bounds(after.Spec.Replicas, after.Spec.Strategy)
	have := int32(0)
	for _, m := range f.in.Machines {
		if m.DeletionTimestamp == nil {
			have++
		}
	}
	f.Most, f.Least = max(have, after.Spec.Replicas), min(have, after.Spec.Replicas)
	if problem != nil || f.rollHeld || len(f.Replaced)+len(f.Updated) == 0 {
		return
	}
	switch f.Strategy {
	case machinev1alpha1.Recreate:
		f.Least, f.AtATime = 0, int32(len(f.Replaced))
	case machinev1alpha1.InPlaceUpdate:
		f.Least = max(0, min(have, after.Spec.Replicas)-unavailable)
		f.AtATime = max(1, unavailable)
		if last := len(f.Updated) - 1; last >= 0 && unavailable == 0 {
			// One new Machine takes the place of those that are updated, one after another. In the end it replaces the
			// last outdated one.
			f.Replaced, f.Updated = append(f.Replaced, f.Updated[last]), f.Updated[:last]
			f.Created++
			f.Most = max(f.Most, after.Spec.Replicas+1)
		}
	case machinev1alpha1.OnDelete:
	default:
		f.Most = max(have, after.Spec.Replicas+surge)
		f.Least = max(0, min(have, after.Spec.Replicas)-unavailable)
		f.AtATime = surge + unavailable
	}
}

// blocks adds the blockers of a part of the change.
func (f *foresight) blocks() {
	if f.Strategy == machinev1alpha1.OnDelete && len(f.Waiting) > 0 && !f.rollHeld {
		f.block(false, "OnDelete", fmt.Sprintf("%d Machines of the old template stay until each is deleted", len(f.Waiting)), "Delete them: kubectl drover drain ma/NAME --delete.")
	}
	if u := f.composed; u != nil && len(f.Updated) > 0 && f.in.After.Spec.Strategy.InPlaceUpdate.Orchestration == machinev1alpha1.OrchestrationManual {
		f.block(false, "ManualOrchestration", "each Machine is updated once it is selected", "Annotate Machines with "+machinev1alpha1.LabelUpdateSelected+".")
	}
	going := slices.Concat(f.Deleted, f.Replaced, f.Updated)
	if len(going) == 0 {
		return
	}
	if !f.in.TargetRead {
		f.block(false, "BudgetsUnknown", "the PodDisruptionBudgets of the target cluster were not read", "Name the target cluster by --target-context.")
		return
	}
	f.budgets(going)
}

// budgets adds the PodDisruptionBudgets that do not allow any eviction of a Machine's pod now.
func (f *foresight) budgets(going []string) {
	nodes := map[string]string{}
	for _, m := range f.in.Machines {
		if slices.Contains(going, m.Name) && m.Status.NodeRef != nil {
			nodes[m.Status.NodeRef.Name] = m.Name
		}
	}
	for _, b := range f.in.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Status.DisruptionsAllowed > 0 {
			continue
		}
		held := []string{}
		for _, p := range f.in.Pods {
			if m := nodes[p.Spec.NodeName]; m != "" && p.Namespace == b.Namespace && selector.Matches(labels.Set(p.Labels)) && !slices.Contains(held, m) {
				held = append(held, m)
			}
		}
		if len(held) > 0 {
			f.block(false, "PodDisruptionBudget", fmt.Sprintf("%s/%s allows no disruption now; it holds pods on the Nodes of %s", b.Namespace, b.Name, strings.Join(held, ", ")),
				"Drains wait for it until spec.drain.timeout. Correct the budget if it never allows one.")
		}
	}
}

// duration computes the shortest duration: each wave of Machines takes as long as the fastest Machine of the
// pool took to become Ready.
func (f *foresight) duration() {
	boot, n := f.fastest()
	if n == 0 || f.rollHeld && f.Created == 0 {
		return
	}
	waves := int32(0)
	switch {
	case len(f.Replaced) > 0 && f.AtATime > 0:
		waves = int32(math.Ceil(float64(len(f.Replaced)) / float64(f.AtATime)))
	case f.Created > 0:
		waves = 1
	}
	if waves == 0 {
		return
	}
	each := boot + time.Duration(f.in.After.Spec.MinReadySeconds)*time.Second
	f.AtLeast = metav1.Duration{Duration: time.Duration(waves) * each}
	f.Basis = fmt.Sprintf("%d times %s: the fastest of %d Machines of the pool took %s until its Node was Ready; drains come on top", waves, each, n, boot)
}

// fastest returns the boot time of the fastest Machine of the pool, and the number of Machines that were
// compared.
func (f *foresight) fastest() (boot time.Duration, n int) {
	for _, m := range f.in.Machines {
		ready := m.Status.Join.At(machinev1alpha1.JoinNodeReady)
		if ready == nil {
			ready = m.Status.ReadySince
		}
		if ready == nil {
			continue
		}
		if d := ready.Sub(m.CreationTimestamp.Time); d > 0 && (n == 0 || d < boot) {
			boot = d
		}
		n++
	}
	return boot.Truncate(time.Second), n
}
