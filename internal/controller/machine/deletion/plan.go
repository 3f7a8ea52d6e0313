// Package deletion decides the order in which everything of a Machine is deleted: pre-drain hooks, the drain, the Node,
// pre-terminate hooks, the companions that depend on the VM, the VM, and the other companions. Every wait has a timeout or names
// what it waits for. A Decision that cannot be undone is made again from live reads: see Decision.IsIrrevocable.
package deletion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
)

const (
	// reportNodeAfter is how long the deletion of a Node lasts before the status reports it. It usually takes no
	// time, and each stage in the status is a write.
	reportNodeAfter = 3 * time.Second

	// DependentsTimeout is how long the companions that depend on the VM may hold it: without them the deletion
	// of the VM usually succeeds, too.
	DependentsTimeout = 5 * time.Minute

	// UnmadeAfter is how long the provider of a resource that it never began to create may take to let it go. It cannot
	// if it lacks its configuration.
	UnmadeAfter = 10 * time.Second

	// ForceDeleteAfter is how long the provider of a released VM may take. After that, a forced deletion of the
	// Machine abandons the VM.
	ForceDeleteAfter = 10 * time.Second
)

// A State has the facts about a Machine and its composed resources.
type State struct {
	Self      finalizer.State
	Now       time.Time
	DeletedAt time.Time
	// Stage is the last one in the status, since its start. Both are zero if there is none.
	Stage machinev1alpha1.DeletionStage
	Since time.Time
	// NodeDeleted is when the deletion left the stages of the Node, nil if it did not yet.
	NodeDeleted *metav1.Time

	ForceDelete bool
	// Collected is the MachineSet that controls the Machine and does not exist any more, empty if it exists or if
	// a user confirmed the deletion.
	Collected string
	// Restored means that the Machine had a VM before its status was lost, as in a restore.
	Restored bool

	// Foreign are the finalizers of other controllers that the Machine has.
	Foreign []string
	// HadVM means that the Machine had a VM or a Node, or took one over.
	HadVM bool
	// ProviderError is why the provider of the resource that the deletion waits for cannot delete it, empty if it
	// reports no error.
	ProviderError string
	// ResourcePaused means that an annotation keeps the provider from deleting that resource.
	ResourcePaused bool

	// PassedOver are the annotations whose value is neither true nor false, each with its value, empty if there are none.
	PassedOver string

	PreDrain, PreTerminate []string // hooks
	HookTimeout            time.Duration

	// Node is nil once the Node is gone.
	Node *Node
	VMs  []Resource
	// Companions of the VMs that were created before them, and dependents that were created after them. Both are in
	// the order of their creation.
	Companions, Dependents []Resource
	// Unreadable is why there may be VMs that cannot be read, empty if all were read.
	Unreadable string
}

// A Node is that of a Machine that is being deleted.
type Node struct {
	Name string
	// Stage of its drain since a time, "" before the drain starts.
	Stage   machinev1alpha1.DeletionStage
	Since   time.Time
	Hooks   []string
	Pods    []machinev1alpha1.DrainedPod // that block the drain
	Trouble string                       // with the target cluster
	// Finalizers hold the Node although it is deleted, until a time at which it is left behind.
	Finalizers []string
	Until      time.Time
}

// A Resource is that of a VM, or of a companion.
type Resource struct {
	Kind     string
	Name     string
	Held     bool // has FinalizerDrain
	Deleting bool
	// Uncertain means that its creation began, and that its end was not recorded.
	Uncertain bool
	Order     int // of a companion
	// AfterVM means that a companion depends on the VM.
	AfterVM bool
	// Unmade means that its provider never began to create it.
	Unmade bool
	// HeldBy are the finalizers of other controllers, separated by commas.
	HeldBy string
}

// finalizers of other controllers.
func (v Resource) finalizers() []string {
	if v.HeldBy == "" {
		return nil
	}
	return strings.Split(v.HeldBy, ", ")
}

// A Decision has the actions on a Machine and its composed resources.
type Decision struct {
	Step    finalizer.Step
	Release []Resource
	Abandon []Resource // without waiting for their provider
	Forget  []Resource // a mark of their creation keeps their provider from deleting them
	Unmade  []Resource // nothing exists that their provider would have to delete
	// TimedOut are hooks that are no longer waited for.
	TimedOut []string
	// Overdue are the companions that depend on the VM, and that it no longer waits for.
	Overdue []Resource
	// Operation and deletion are the changes of the Machine's status, nil for no change.
	Operation *machinev1alpha1.LastOperation
	Deletion  *machinev1alpha1.DeletionStatus
	// Again is when to reconcile again if no event arrives, 0 for never.
	Again time.Duration
}

// IsIrrevocable reports whether the plan cannot be undone, and must not come from a stale view.
func (p Decision) IsIrrevocable() bool {
	return p.Step == finalizer.Remove || len(p.Release) > 0 || len(p.Abandon) > 0 || len(p.Unmade) > 0
}

// RequeueWithin requeues after d at the latest, unless d is 0.
func (p *Decision) RequeueWithin(d time.Duration) {
	if d > 0 && (p.Again == 0 || d < p.Again) {
		p.Again = d
	}
}

// Plan decides on the next actions. A Machine that is not being deleted gets its finalizer.
func Plan(s State) Decision {
	p := Decision{Step: s.Self.Next(s.hasResources() || s.Unreadable != "" && !s.ForceDelete)}
	if !s.Self.Deleting {
		return p
	}
	if s.IsHeld() && p.Step == finalizer.DeleteAgain {
		p.Step = finalizer.Nothing // In a foreground deletion its VM resource would be deleted too.
	}
	at := s.place()
	p.TimedOut, p.Overdue, p.Again = at.timedOut, at.overdue, at.again
	p.Operation, p.Deletion = operation(s, at), s.deletion(at)
	for _, v := range s.due(at.stage) {
		switch {
		case v.Held:
			p.Release = append(p.Release, v)
		case v.Uncertain && v.Deleting && !s.ForceDelete:
			p.Forget = append(p.Forget, v)
		case v.Unmade && v.Deleting && !s.HadVM && s.Stage == at.stage && !s.Now.Before(s.Since.Add(UnmadeAfter)):
			p.Unmade = append(p.Unmade, v)
		case v.Unmade && v.Deleting && !s.HadVM && !s.ForceDelete:
			p.RequeueWithin(UnmadeAfter)
		case !s.ForceDelete || !v.Deleting:
		case s.Stage == at.stage && !s.Now.Before(s.Since.Add(ForceDeleteAfter)):
			p.Abandon = append(p.Abandon, v)
		default:
			p.Again = ForceDeleteAfter
		}
	}
	return p
}

// hasResources reports whether the Machine has to wait for a resource. The VM resource of a restored Machine may be
// restored later.
func (s State) hasResources() bool {
	return s.IsHeld() && s.Restored || s.Node != nil || len(s.VMs)+len(s.Companions)+len(s.Dependents) > 0
}

// due returns the resources that are deleted in a stage. Of the companions, these are the last created ones, on
// which no remaining companion depends. A forced deletion deletes all at once.
func (s State) due(stage machinev1alpha1.DeletionStage) []Resource {
	switch {
	case stage == machinev1alpha1.DeletionDeletingDependents:
		return lastOf(s.Dependents)
	case stage == machinev1alpha1.DeletionDeletingVM && len(s.VMs) == 0:
		return nil // There may be a VM that cannot be read.
	case stage == machinev1alpha1.DeletionDeletingVM && s.ForceDelete:
		return slices.Concat(s.Dependents, s.VMs)
	case stage == machinev1alpha1.DeletionDeletingVM:
		// Dependents that no longer hold the VM are still deleted.
		return slices.Concat(lastOf(s.Dependents), s.VMs)
	case stage == machinev1alpha1.DeletionDeletingCompanions && s.ForceDelete:
		return slices.Concat(s.Companions, s.Dependents)
	case stage == machinev1alpha1.DeletionDeletingCompanions && len(s.Dependents) > 0:
		return lastOf(s.Dependents)
	case stage == machinev1alpha1.DeletionDeletingCompanions:
		return lastOf(s.Companions)
	}
	return nil
}

// lastOf returns the companions that were created last. Those with the same number were created together.
func lastOf(companions []Resource) []Resource {
	if len(companions) == 0 {
		return nil
	}
	last := companions[len(companions)-1].Order
	return companions[slices.IndexFunc(companions, func(c Resource) bool { return c.Order == last }):]
}

// A place is the progress of a deletion.
type place struct {
	stage machinev1alpha1.DeletionStage
	hooks []string
	pods  []machinev1alpha1.DrainedPod
	// quiet means that the stage is not to be reported yet.
	quiet    bool
	timedOut []string
	overdue  []Resource
	again    time.Duration
}

// place returns the progress of the deletion. It never returns to hooks that it has passed.
func (s State) place() place {
	if s.IsHeld() {
		return place{stage: machinev1alpha1.DeletionHeld}
	}
	if s.Node != nil {
		return s.draining(*s.Node)
	}
	if !s.hasResources() && s.Unreadable == "" {
		return place{stage: machinev1alpha1.DeletionFinalizers}
	}
	at := place{stage: machinev1alpha1.DeletionDeletingVM}
	if len(s.VMs) == 0 {
		// A VM that cannot be read may need its companions.
		if len(s.Companions)+len(s.Dependents) > 0 && (s.Unreadable == "" || s.ForceDelete) {
			at.stage = machinev1alpha1.DeletionDeletingCompanions
		}
		return at
	}
	// Without a Node these hooks do not hold a drain.
	if s.isBefore() || s.Stage == machinev1alpha1.DeletionPreDrainHooks {
		if left := s.DeletedAt.Add(s.HookTimeout).Sub(s.Now); len(s.PreDrain) > 0 && left > 0 {
			return place{stage: machinev1alpha1.DeletionPreDrainHooks, hooks: s.PreDrain, again: left}
		}
		at.timedOut = append(at.timedOut, s.PreDrain...)
	}
	if !s.hasPassedHooks() {
		since := s.Now
		if s.Stage == machinev1alpha1.DeletionPreTerminateHooks {
			since = s.Since
		}
		if left := since.Add(s.HookTimeout).Sub(s.Now); len(s.PreTerminate) > 0 && left > 0 {
			return place{stage: machinev1alpha1.DeletionPreTerminateHooks, hooks: s.PreTerminate, timedOut: at.timedOut, again: left}
		}
		at.timedOut = append(at.timedOut, s.PreTerminate...)
	}
	return s.deletingDependents(at)
}

// deletingDependents returns the progress of a deletion whose hooks no longer hold the VM. Companions that depend
// on the VM hold it for a limited time. A forced deletion does not wait for them.
func (s State) deletingDependents(at place) place {
	isWaiting := s.Stage == machinev1alpha1.DeletionDeletingDependents
	if len(s.Dependents) == 0 || s.ForceDelete || s.hasPassedHooks() && !isWaiting {
		return at
	}
	since := s.Now
	if isWaiting {
		since = s.Since
	}
	if left := since.Add(DependentsTimeout).Sub(s.Now); left > 0 {
		return place{stage: machinev1alpha1.DeletionDeletingDependents, timedOut: at.timedOut, again: left}
	}
	at.overdue = s.Dependents
	return at
}

// hasPassedHooks reports whether the deletion has come so far that hooks hold it no longer.
func (s State) hasPassedHooks() bool {
	return slices.Contains([]machinev1alpha1.DeletionStage{
		machinev1alpha1.DeletionDeletingDependents, machinev1alpha1.DeletionDeletingVM, machinev1alpha1.DeletionDeletingCompanions, machinev1alpha1.DeletionFinalizers,
	}, s.Stage)
}

// draining returns the progress of a deletion whose Node still exists.
func (s State) draining(wn Node) place {
	at := place{stage: wn.Stage, hooks: wn.Hooks, pods: wn.Pods}
	switch {
	case wn.Stage == "" && len(s.PreDrain) > 0 && (s.isBefore() || s.Stage == machinev1alpha1.DeletionPreDrainHooks):
		at.stage, at.hooks = machinev1alpha1.DeletionPreDrainHooks, s.PreDrain
	case wn.Stage == "":
		at.stage = machinev1alpha1.DeletionDraining
	case wn.Stage == machinev1alpha1.DeletionDeletingNode && !s.isBefore() && s.Stage != wn.Stage && len(wn.Finalizers) == 0:
		if left := wn.Since.Add(reportNodeAfter).Sub(s.Now); left > 0 {
			at.quiet, at.again = true, left
		}
	}
	return at
}

// deletion returns the new deletion status, nil for no change.
func (s State) deletion(at place) *machinev1alpha1.DeletionStatus {
	if at.quiet || at.stage == machinev1alpha1.DeletionFinalizers && len(s.Foreign) == 0 {
		return nil
	}
	d := &machinev1alpha1.DeletionStatus{Stage: at.stage, Hooks: at.hooks, Pods: at.pods, Finalizers: s.finalizers(at.stage)}
	d.Since.Time = s.sinceOf(at.stage)
	if d.NodeDeletedTime = s.NodeDeleted; d.NodeDeletedTime == nil && at.stage.IsPastNode() {
		d.NodeDeletedTime = d.Since.DeepCopy()
	}
	return d
}

// maxFinalizers is how many finalizers a status names.
const maxFinalizers = 10

// finalizers of other controllers that hold a stage.
func (s State) finalizers(stage machinev1alpha1.DeletionStage) []string {
	var out []string
	if s.Node != nil && stage == machinev1alpha1.DeletionDeletingNode {
		out = s.Node.Finalizers
	}
	if v, ok := s.Awaited(stage); ok && v.Deleting {
		out = v.finalizers()
	}
	if stage == machinev1alpha1.DeletionFinalizers {
		out = s.Foreign
	}
	return out[:min(len(out), maxFinalizers)]
}

// Awaited returns the resource that a stage waits for.
func (s State) Awaited(stage machinev1alpha1.DeletionStage) (Resource, bool) {
	last := func(all []Resource) (Resource, bool) {
		if len(all) == 0 {
			return Resource{}, false
		}
		return all[len(all)-1], true
	}
	switch stage {
	case machinev1alpha1.DeletionDeletingDependents:
		return last(s.Dependents)
	case machinev1alpha1.DeletionDeletingVM:
		return last(s.VMs[:min(1, len(s.VMs))])
	case machinev1alpha1.DeletionDeletingCompanions:
		return last(slices.Concat(s.Companions, s.Dependents))
	case machinev1alpha1.DeletionHeld, machinev1alpha1.DeletionPaused, machinev1alpha1.DeletionPreDrainHooks, machinev1alpha1.DeletionDraining,
		machinev1alpha1.DeletionDetachingVolumes, machinev1alpha1.DeletionDeletingNode, machinev1alpha1.DeletionPreTerminateHooks, machinev1alpha1.DeletionFinalizers:
	}
	return Resource{}, false
}

// hold describes what keeps a resource that is being deleted, and who can end that.
func (s State) hold(v Resource) string {
	text := ""
	if v.Deleting && v.HeldBy != "" {
		text = fmt.Sprintf("; the finalizers %s of other controllers hold it", v.HeldBy)
	}
	if s.ResourcePaused {
		text += fmt.Sprintf("; its annotation %s keeps its provider from deleting it", xpmeta.AnnotationKeyReconciliationPaused)
	}
	if s.ProviderError == "" {
		return text
	}
	text += "; its provider reports: " + s.ProviderError
	if kind, name := plan.MissingConfigIn(s.ProviderError); name != "" {
		text += fmt.Sprintf("; create the %s %s again, or, if nothing of it exists at the cloud, set the annotation %s=true", kind, name, machinev1alpha1.AnnotationForceDelete)
	}
	return text
}

// sinceOf returns the start of a stage: now, unless it is the last one in the status.
func (s State) sinceOf(stage machinev1alpha1.DeletionStage) time.Time {
	if s.Stage == stage {
		return s.Since.UTC().Truncate(time.Second)
	}
	return s.Now.UTC().Truncate(time.Second)
}

// operation returns a description of the event that the deletion waits for, and of the annotations that do not shorten the
// wait because of their value.
func operation(s State, at place) *machinev1alpha1.LastOperation {
	out := waitOf(s, at)
	if out != nil && s.PassedOver != "" {
		out.Description += "; " + s.PassedOver
	}
	return out
}

func waitOf(s State, at place) *machinev1alpha1.LastOperation {
	op := func(t machinev1alpha1.OperationType, format string, args ...any) *machinev1alpha1.LastOperation {
		return &machinev1alpha1.LastOperation{Type: t, State: machinev1alpha1.OperationProcessing, Description: fmt.Sprintf(format, args...)}
	}
	if at.quiet {
		return nil
	}
	if s.Node != nil && s.Node.Trouble != "" {
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: %s", s.Node.Name, s.Node.Trouble)
	}
	switch at.stage {
	case machinev1alpha1.DeletionHeld:
		return op(machinev1alpha1.OperationDelete, "Held: MachineSet %s does not exist any more, and no user deleted this Machine. Its Node is not drained and its VM is kept. To delete both, set the annotation %s=true", s.Collected, machinev1alpha1.AnnotationConfirmDeletion)
	case machinev1alpha1.DeletionPreDrainHooks:
		return op(machinev1alpha1.OperationDrain, "Waiting for pre-drain hooks: %s", strings.Join(at.hooks, ", "))
	case machinev1alpha1.DeletionDraining:
		if len(at.pods) > 0 {
			p := at.pods[0]
			return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: pod %s/%s: %s", s.Node.Name, p.Namespace, p.Name, p.Reason)
		}
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is drained and deleted", s.Node.Name)
	case machinev1alpha1.DeletionDetachingVolumes:
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: its volumes are detached", s.Node.Name)
	case machinev1alpha1.DeletionDeletingNode:
		if len(s.Node.Finalizers) > 0 {
			return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is deleted, and the finalizers %s of other controllers hold it; from %s it is left behind",
				s.Node.Name, strings.Join(s.finalizers(at.stage), ", "), s.Node.Until.UTC().Format(time.RFC3339))
		}
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is deleted", s.Node.Name)
	case machinev1alpha1.DeletionPreTerminateHooks:
		return op(machinev1alpha1.OperationDelete, "Waiting for pre-terminate hooks: %s", strings.Join(at.hooks, ", "))
	case machinev1alpha1.DeletionDeletingDependents:
		last := s.Dependents[len(s.Dependents)-1]
		until := s.sinceOf(at.stage).Add(DependentsTimeout).UTC().Format(time.RFC3339)
		return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: it depends on the VM, and is deleted before it; from %s the VM does not wait for it%s", last.Kind, last.Name, until, s.hold(last))
	case machinev1alpha1.DeletionDeletingVM:
		if len(s.VMs) > 0 {
			return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: the VM is deleted%s", s.VMs[0].Kind, s.VMs[0].Name, s.hold(s.VMs[0]))
		}
	case machinev1alpha1.DeletionDeletingCompanions:
		all := slices.Concat(s.Companions, s.Dependents)
		last := all[len(all)-1]
		return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: the VM is gone, and what it had beside it is deleted%s", last.Kind, last.Name, s.hold(last))
	case machinev1alpha1.DeletionFinalizers:
		if len(s.Foreign) == 0 {
			return nil
		}
		return op(machinev1alpha1.OperationDelete, "Everything is deleted, and the finalizers %s of other controllers hold the Machine", strings.Join(s.finalizers(at.stage), ", "))
	}
	if s.Unreadable != "" {
		return op(machinev1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: %s", s.Unreadable)
	}
	return nil
}

// isBefore reports whether the deletion has not begun.
func (s State) isBefore() bool {
	return !s.Stage.HasBegun()
}

// IsHeld reports whether only the garbage collector deleted the Machine. A MachineSet outlives its Machines. If
// it does not exist, it did not decide on the deletion: it lost its finalizers, or was restored from a backup
// with another UID.
func (s State) IsHeld() bool {
	return s.Collected != "" && s.isBefore()
}

// HasLeftNode reports whether the deletion is past the Node: the VM was released, or the status has a later
// stage.
func (s State) HasLeftNode() bool { return s.Stage.IsPastNode() }
