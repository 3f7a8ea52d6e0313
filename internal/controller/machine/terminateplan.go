package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/finalizer"
	"github.com/drover-dev/drover/internal/plan"
)

const (
	// reportNodeAfter is how long the deletion of a Node lasts before the status reports it. It usually takes no
	// time, and each stage in the status is a write.
	reportNodeAfter = 3 * time.Second

	// dependentsTimeout is how long the companions that depend on the VM may hold it: without them the deletion
	// of the VM usually succeeds, too.
	dependentsTimeout = 5 * time.Minute

	// unmadeAfter is how long the provider of a resource that it never began to create may take to let it go. It cannot
	// if it lacks its configuration.
	unmadeAfter = 10 * time.Second

	// forceDeleteAfter is how long the provider of a released VM may take. After that, a forced deletion of the
	// Machine abandons the VM.
	forceDeleteAfter = 10 * time.Second
)

// machineState has the facts about a Machine and its composed resources.
type machineState struct {
	self      finalizer.State
	now       time.Time
	deletedAt time.Time
	// stage is the last one in the status, since its start. Both are zero if there is none.
	stage machinev1alpha1.DeletionStage
	since time.Time
	// nodeDeleted is when the deletion left the stages of the Node, nil if it did not yet.
	nodeDeleted *metav1.Time

	forceDelete bool
	// collected is the MachineSet that controls the Machine and does not exist any more, empty if it exists or if
	// a user confirmed the deletion.
	collected string
	// restored means that the Machine had a VM before its status was lost, as in a restore.
	restored bool

	// foreign are the finalizers of other controllers that the Machine has.
	foreign []string
	// hadVM means that the Machine had a VM or a Node, or took one over.
	hadVM bool
	// providerError is why the provider of the resource that the deletion waits for cannot delete it, empty if it
	// reports no error.
	providerError string
	// resourcePaused means that an annotation keeps the provider from deleting that resource.
	resourcePaused bool

	// passedOver are the annotations whose value is neither true nor false, each with its value, empty if there are none.
	passedOver string

	preDrain, preTerminate []string // hooks
	hookTimeout            time.Duration

	// node is nil once the Node is gone.
	node *leavingNode
	vms  []vm
	// companions of the VMs that were created before them, and dependents that were created after them. Both are in
	// the order of their creation.
	companions, dependents []vm
	// unreadable is why there may be VMs that cannot be read, empty if all were read.
	unreadable string
}

// A leavingNode is the Node of a Machine that is being deleted.
type leavingNode struct {
	name string
	// stage of its drain since a time, "" before the drain starts.
	stage   machinev1alpha1.DeletionStage
	since   time.Time
	hooks   []string
	pods    []machinev1alpha1.DrainedPod // that block the drain
	trouble string                       // with the target cluster
	// finalizers hold the Node although it is deleted, until a time at which it is left behind.
	finalizers []string
	until      time.Time
}

// A vm is the resource of a VM, or of a companion.
type vm struct {
	kind     string
	name     string
	held     bool // has FinalizerDrain
	deleting bool
	// uncertain means that its creation began, and that its end was not recorded.
	uncertain bool
	order     int // of a companion
	// afterVM means that a companion depends on the VM.
	afterVM bool
	// unmade means that its provider never began to create it.
	unmade bool
	// heldBy are the finalizers of other controllers, separated by commas.
	heldBy string
}

// finalizers of other controllers.
func (v vm) finalizers() []string {
	if v.heldBy == "" {
		return nil
	}
	return strings.Split(v.heldBy, ", ")
}

// machinePlan has the actions on a Machine and its composed resources.
type machinePlan struct {
	step    finalizer.Step
	release []vm
	abandon []vm // without waiting for their provider
	forget  []vm // a mark of their creation keeps their provider from deleting them
	unmade  []vm // nothing exists that their provider would have to delete
	// timedOut are hooks that are no longer waited for.
	timedOut []string
	// overdue are the companions that depend on the VM, and that it no longer waits for.
	overdue []vm
	// operation and deletion are the changes of the Machine's status, nil for no change.
	operation *machinev1alpha1.LastOperation
	deletion  *machinev1alpha1.DeletionStatus
	// again is when to reconcile again if no event arrives, 0 for never.
	again time.Duration
}

// isIrrevocable reports whether the plan cannot be undone, and must not come from a stale view.
func (p machinePlan) isIrrevocable() bool {
	return p.step == finalizer.Remove || len(p.release) > 0 || len(p.abandon) > 0 || len(p.unmade) > 0
}

// requeueWithin requeues after d at the latest, unless d is 0.
func (p *machinePlan) requeueWithin(d time.Duration) {
	if d > 0 && (p.again == 0 || d < p.again) {
		p.again = d
	}
}

func planDeletion(s machineState) machinePlan {
	p := machinePlan{step: s.self.Next(s.hasResources() || s.unreadable != "" && !s.forceDelete)}
	if !s.self.Deleting {
		return p
	}
	if s.isHeld() && p.step == finalizer.DeleteAgain {
		p.step = finalizer.Nothing // In a foreground deletion its VM resource would be deleted too.
	}
	at := s.place()
	p.timedOut, p.overdue, p.again = at.timedOut, at.overdue, at.again
	p.operation, p.deletion = operation(s, at), s.deletion(at)
	for _, v := range s.due(at.stage) {
		switch {
		case v.held:
			p.release = append(p.release, v)
		case v.uncertain && v.deleting && !s.forceDelete:
			p.forget = append(p.forget, v)
		case v.unmade && v.deleting && !s.hadVM && s.stage == at.stage && !s.now.Before(s.since.Add(unmadeAfter)):
			p.unmade = append(p.unmade, v)
		case v.unmade && v.deleting && !s.hadVM && !s.forceDelete:
			p.requeueWithin(unmadeAfter)
		case !s.forceDelete || !v.deleting:
		case s.stage == at.stage && !s.now.Before(s.since.Add(forceDeleteAfter)):
			p.abandon = append(p.abandon, v)
		default:
			p.again = forceDeleteAfter
		}
	}
	return p
}

// hasResources reports whether the Machine has to wait for a resource. The VM resource of a restored Machine may be
// restored later.
func (s machineState) hasResources() bool {
	return s.isHeld() && s.restored || s.node != nil || len(s.vms)+len(s.companions)+len(s.dependents) > 0
}

// due returns the resources that are deleted in a stage. Of the companions, these are the last created ones, on
// which no remaining companion depends. A forced deletion deletes all at once.
func (s machineState) due(stage machinev1alpha1.DeletionStage) []vm {
	switch {
	case stage == machinev1alpha1.DeletionDeletingDependents:
		return lastOf(s.dependents)
	case stage == machinev1alpha1.DeletionDeletingVM && len(s.vms) == 0:
		return nil // There may be a VM that cannot be read.
	case stage == machinev1alpha1.DeletionDeletingVM && s.forceDelete:
		return slices.Concat(s.dependents, s.vms)
	case stage == machinev1alpha1.DeletionDeletingVM:
		// Dependents that no longer hold the VM are still deleted.
		return slices.Concat(lastOf(s.dependents), s.vms)
	case stage == machinev1alpha1.DeletionDeletingCompanions && s.forceDelete:
		return slices.Concat(s.companions, s.dependents)
	case stage == machinev1alpha1.DeletionDeletingCompanions && len(s.dependents) > 0:
		return lastOf(s.dependents)
	case stage == machinev1alpha1.DeletionDeletingCompanions:
		return lastOf(s.companions)
	}
	return nil
}

// lastOf returns the companions that were created last. Those with the same number were created together.
func lastOf(companions []vm) []vm {
	if len(companions) == 0 {
		return nil
	}
	last := companions[len(companions)-1].order
	return companions[slices.IndexFunc(companions, func(c vm) bool { return c.order == last }):]
}

// A place is the progress of a deletion.
type place struct {
	stage machinev1alpha1.DeletionStage
	hooks []string
	pods  []machinev1alpha1.DrainedPod
	// quiet means that the stage is not to be reported yet.
	quiet    bool
	timedOut []string
	overdue  []vm
	again    time.Duration
}

// place returns the progress of the deletion. It never returns to hooks that it has passed.
func (s machineState) place() place {
	if s.isHeld() {
		return place{stage: machinev1alpha1.DeletionHeld}
	}
	if s.node != nil {
		return s.draining(*s.node)
	}
	if !s.hasResources() && s.unreadable == "" {
		return place{stage: machinev1alpha1.DeletionFinalizers}
	}
	at := place{stage: machinev1alpha1.DeletionDeletingVM}
	if len(s.vms) == 0 {
		// A VM that cannot be read may need its companions.
		if len(s.companions)+len(s.dependents) > 0 && (s.unreadable == "" || s.forceDelete) {
			at.stage = machinev1alpha1.DeletionDeletingCompanions
		}
		return at
	}
	// Without a Node these hooks do not hold a drain.
	if s.isBefore() || s.stage == machinev1alpha1.DeletionPreDrainHooks {
		if left := s.deletedAt.Add(s.hookTimeout).Sub(s.now); len(s.preDrain) > 0 && left > 0 {
			return place{stage: machinev1alpha1.DeletionPreDrainHooks, hooks: s.preDrain, again: left}
		}
		at.timedOut = append(at.timedOut, s.preDrain...)
	}
	if !s.hasPassedHooks() {
		since := s.now
		if s.stage == machinev1alpha1.DeletionPreTerminateHooks {
			since = s.since
		}
		if left := since.Add(s.hookTimeout).Sub(s.now); len(s.preTerminate) > 0 && left > 0 {
			return place{stage: machinev1alpha1.DeletionPreTerminateHooks, hooks: s.preTerminate, timedOut: at.timedOut, again: left}
		}
		at.timedOut = append(at.timedOut, s.preTerminate...)
	}
	return s.deletingDependents(at)
}

// deletingDependents returns the progress of a deletion whose hooks no longer hold the VM. Companions that depend
// on the VM hold it for a limited time. A forced deletion does not wait for them.
func (s machineState) deletingDependents(at place) place {
	isWaiting := s.stage == machinev1alpha1.DeletionDeletingDependents
	if len(s.dependents) == 0 || s.forceDelete || s.hasPassedHooks() && !isWaiting {
		return at
	}
	since := s.now
	if isWaiting {
		since = s.since
	}
	if left := since.Add(dependentsTimeout).Sub(s.now); left > 0 {
		return place{stage: machinev1alpha1.DeletionDeletingDependents, timedOut: at.timedOut, again: left}
	}
	at.overdue = s.dependents
	return at
}

// hasPassedHooks reports whether the deletion has come so far that hooks hold it no longer.
func (s machineState) hasPassedHooks() bool {
	return slices.Contains([]machinev1alpha1.DeletionStage{
		machinev1alpha1.DeletionDeletingDependents, machinev1alpha1.DeletionDeletingVM, machinev1alpha1.DeletionDeletingCompanions, machinev1alpha1.DeletionFinalizers,
	}, s.stage)
}

// draining returns the progress of a deletion whose Node still exists.
func (s machineState) draining(wn leavingNode) place {
	at := place{stage: wn.stage, hooks: wn.hooks, pods: wn.pods}
	switch {
	case wn.stage == "" && len(s.preDrain) > 0 && (s.isBefore() || s.stage == machinev1alpha1.DeletionPreDrainHooks):
		at.stage, at.hooks = machinev1alpha1.DeletionPreDrainHooks, s.preDrain
	case wn.stage == "":
		at.stage = machinev1alpha1.DeletionDraining
	case wn.stage == machinev1alpha1.DeletionDeletingNode && !s.isBefore() && s.stage != wn.stage && len(wn.finalizers) == 0:
		if left := wn.since.Add(reportNodeAfter).Sub(s.now); left > 0 {
			at.quiet, at.again = true, left
		}
	}
	return at
}

// deletion returns the new deletion status, nil for no change.
func (s machineState) deletion(at place) *machinev1alpha1.DeletionStatus {
	if at.quiet || at.stage == machinev1alpha1.DeletionFinalizers && len(s.foreign) == 0 {
		return nil
	}
	d := &machinev1alpha1.DeletionStatus{Stage: at.stage, Hooks: at.hooks, Pods: at.pods, Finalizers: s.finalizers(at.stage)}
	d.Since.Time = s.sinceOf(at.stage)
	if d.NodeDeletedTime = s.nodeDeleted; d.NodeDeletedTime == nil && at.stage.IsPastNode() {
		d.NodeDeletedTime = d.Since.DeepCopy()
	}
	return d
}

// maxFinalizers is how many finalizers a status names.
const maxFinalizers = 10

// finalizers of other controllers that hold a stage.
func (s machineState) finalizers(stage machinev1alpha1.DeletionStage) []string {
	var out []string
	if s.node != nil && stage == machinev1alpha1.DeletionDeletingNode {
		out = s.node.finalizers
	}
	if v, ok := s.awaited(stage); ok && v.deleting {
		out = v.finalizers()
	}
	if stage == machinev1alpha1.DeletionFinalizers {
		out = s.foreign
	}
	return out[:min(len(out), maxFinalizers)]
}

// awaited returns the resource that a stage waits for.
func (s machineState) awaited(stage machinev1alpha1.DeletionStage) (vm, bool) {
	last := func(all []vm) (vm, bool) {
		if len(all) == 0 {
			return vm{}, false
		}
		return all[len(all)-1], true
	}
	switch stage {
	case machinev1alpha1.DeletionDeletingDependents:
		return last(s.dependents)
	case machinev1alpha1.DeletionDeletingVM:
		return last(s.vms[:min(1, len(s.vms))])
	case machinev1alpha1.DeletionDeletingCompanions:
		return last(slices.Concat(s.companions, s.dependents))
	case machinev1alpha1.DeletionHeld, machinev1alpha1.DeletionPaused, machinev1alpha1.DeletionPreDrainHooks, machinev1alpha1.DeletionDraining,
		machinev1alpha1.DeletionDetachingVolumes, machinev1alpha1.DeletionDeletingNode, machinev1alpha1.DeletionPreTerminateHooks, machinev1alpha1.DeletionFinalizers:
	}
	return vm{}, false
}

// hold describes what keeps a resource that is being deleted, and who can end that.
func (s machineState) hold(v vm) string {
	text := ""
	if v.deleting && v.heldBy != "" {
		text = fmt.Sprintf("; the finalizers %s of other controllers hold it", v.heldBy)
	}
	if s.resourcePaused {
		text += fmt.Sprintf("; its annotation %s keeps its provider from deleting it", annotationPaused)
	}
	if s.providerError == "" {
		return text
	}
	text += "; its provider reports: " + s.providerError
	if kind, name := plan.MissingConfigIn(s.providerError); name != "" {
		text += fmt.Sprintf("; create the %s %s again, or, if nothing of it exists at the cloud, set the annotation %s=true", kind, name, machinev1alpha1.AnnotationForceDelete)
	}
	return text
}

// sinceOf returns the start of a stage: now, unless it is the last one in the status.
func (s machineState) sinceOf(stage machinev1alpha1.DeletionStage) time.Time {
	if s.stage == stage {
		return s.since.UTC().Truncate(time.Second)
	}
	return s.now.UTC().Truncate(time.Second)
}

// operation returns a description of the event that the deletion waits for, and of the annotations that do not shorten the
// wait because of their value.
func operation(s machineState, at place) *machinev1alpha1.LastOperation {
	out := waitOf(s, at)
	if out != nil && s.passedOver != "" {
		out.Description += "; " + s.passedOver
	}
	return out
}

func waitOf(s machineState, at place) *machinev1alpha1.LastOperation {
	op := func(t machinev1alpha1.OperationType, format string, args ...any) *machinev1alpha1.LastOperation {
		return &machinev1alpha1.LastOperation{Type: t, State: machinev1alpha1.OperationProcessing, Description: fmt.Sprintf(format, args...)}
	}
	if at.quiet {
		return nil
	}
	if s.node != nil && s.node.trouble != "" {
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: %s", s.node.name, s.node.trouble)
	}
	switch at.stage {
	case machinev1alpha1.DeletionHeld:
		return op(machinev1alpha1.OperationDelete, "Held: MachineSet %s does not exist any more, and no user deleted this Machine. Its Node is not drained and its VM is kept. To delete both, set the annotation %s=true", s.collected, machinev1alpha1.AnnotationConfirmDeletion)
	case machinev1alpha1.DeletionPreDrainHooks:
		return op(machinev1alpha1.OperationDrain, "Waiting for pre-drain hooks: %s", strings.Join(at.hooks, ", "))
	case machinev1alpha1.DeletionDraining:
		if len(at.pods) > 0 {
			p := at.pods[0]
			return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: pod %s/%s: %s", s.node.name, p.Namespace, p.Name, p.Reason)
		}
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is drained and deleted", s.node.name)
	case machinev1alpha1.DeletionDetachingVolumes:
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: its volumes are detached", s.node.name)
	case machinev1alpha1.DeletionDeletingNode:
		if len(s.node.finalizers) > 0 {
			return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is deleted, and the finalizers %s of other controllers hold it; from %s it is left behind",
				s.node.name, strings.Join(s.finalizers(at.stage), ", "), s.node.until.UTC().Format(time.RFC3339))
		}
		return op(machinev1alpha1.OperationDrain, "Waiting for Node %s: it is deleted", s.node.name)
	case machinev1alpha1.DeletionPreTerminateHooks:
		return op(machinev1alpha1.OperationDelete, "Waiting for pre-terminate hooks: %s", strings.Join(at.hooks, ", "))
	case machinev1alpha1.DeletionDeletingDependents:
		last := s.dependents[len(s.dependents)-1]
		until := s.sinceOf(at.stage).Add(dependentsTimeout).UTC().Format(time.RFC3339)
		return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: it depends on the VM, and is deleted before it; from %s the VM does not wait for it%s", last.kind, last.name, until, s.hold(last))
	case machinev1alpha1.DeletionDeletingVM:
		if len(s.vms) > 0 {
			return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: the VM is deleted%s", s.vms[0].kind, s.vms[0].name, s.hold(s.vms[0]))
		}
	case machinev1alpha1.DeletionDeletingCompanions:
		all := slices.Concat(s.companions, s.dependents)
		last := all[len(all)-1]
		return op(machinev1alpha1.OperationDelete, "Waiting for %s %s: the VM is gone, and what it had beside it is deleted%s", last.kind, last.name, s.hold(last))
	case machinev1alpha1.DeletionFinalizers:
		if len(s.foreign) == 0 {
			return nil
		}
		return op(machinev1alpha1.OperationDelete, "Everything is deleted, and the finalizers %s of other controllers hold the Machine", strings.Join(s.finalizers(at.stage), ", "))
	}
	if s.unreadable != "" {
		return op(machinev1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: %s", s.unreadable)
	}
	return nil
}

// isBefore reports whether the deletion has not begun.
func (s machineState) isBefore() bool {
	return !s.stage.HasBegun()
}

// isHeld reports whether only the garbage collector deleted the Machine. A MachineSet outlives its Machines. If
// it does not exist, it did not decide on the deletion: it lost its finalizers, or was restored from a backup
// with another UID.
func (s machineState) isHeld() bool {
	return s.collected != "" && s.isBefore()
}

// hasLeftNode reports whether the deletion is past the Node: the VM was released, or the status has a later
// stage.
func (s machineState) hasLeftNode() bool { return s.stage.IsPastNode() }
