package terminator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/drover-dev/drover/apis/machine/v1alpha1"
)

const (
	// tellNodeAfter so long it is told that a Node is being deleted. It takes no time,
	// as a rule, and each thing that is told is a write.
	tellNodeAfter = 3 * time.Second

	// forceDeleteAfter is what the provider of a VM has, once it is released, before a
	// Machine that shall be deleted by force is let go without it.
	forceDeleteAfter = 10 * time.Second
)

// self is what a decision over a MachineDeployment, MachineSet or Machine depends on.
type self struct {
	deleting   bool
	held       bool // has FinalizerTerminator
	foreground bool // is deleted in the foreground
}

// A step is what is done to the object itself.
type step string

const (
	nothing     step = "Nothing"
	hold        step = "Hold"        // add FinalizerTerminator
	deleteAgain step = "DeleteAgain" // in the foreground
	letGo       step = "LetGo"       // take FinalizerTerminator off
)

func (s self) next(somethingLeft bool) step {
	switch {
	case !s.deleting && !s.held:
		return hold
	case !s.deleting, !s.held:
		return nothing
	case !somethingLeft:
		return letGo
	case !s.foreground:
		return deleteAgain
	}
	return nothing
}

// machineState is what is known of a Machine and of what it composes.
type machineState struct {
	self
	now       time.Time
	deletedAt time.Time
	// stage that was told last, and since when, zero if none.
	stage v1alpha1.DeletionStage
	since time.Time

	skipDrain, forceDrain, forceDelete bool

	preDrain, preTerminate []string // hooks
	hookTimeout            time.Duration

	workerNodes []workerNode
	vms         []vm
	// companions of the VMs, in the order in which they were made.
	companions []vm
	// unreadable says why VMs may be left that cannot be seen.
	unreadable string
}

type workerNode struct {
	name                  string
	uid                   types.UID
	created               time.Time
	deleting              bool
	skipDrain, forceDrain bool
	// stage of its drain, "" before it began, and since when.
	stage   v1alpha1.DeletionStage
	since   time.Time
	hooks   []string
	pods    []v1alpha1.DrainedPod // that block the drain
	trouble string                // with the target cluster
}

// A vm is the resource of a VM, or of a companion.
type vm struct {
	kind     string
	name     string
	held     bool // has FinalizerDrain
	deleting bool
	// uncertain means that its creation began, and that nobody knows whether it ended.
	uncertain bool
	order     int // of a companion
}

// machinePlan is what to do to a Machine and to what it composes.
type machinePlan struct {
	step
	pass    map[string][]string // annotations that WorkerNodes shall have too
	collect []workerNode        // that the garbage collector does not delete
	release []vm
	abandon []vm // without waiting for their provider
	forget  []vm // the creation of which keeps their provider from deleting them
	// timedOut are hooks that are not waited for any more.
	timedOut []string
	// operation and deletion are what the Machine's status shall say, nil if nothing.
	operation *v1alpha1.LastOperation
	deletion  *v1alpha1.DeletionStatus
	// again is when to look again if nothing happens, 0 for never.
	again time.Duration
}

// irrevocable plans must not come from an old view.
func (p machinePlan) irrevocable() bool {
	return p.step == letGo || len(p.release) > 0 || len(p.abandon) > 0
}

func plan(s machineState) machinePlan {
	p := machinePlan{step: s.next(s.left() || s.unreadable != "" && !s.forceDelete)}
	if !s.deleting {
		return p
	}
	p.pass, p.collect = passOn(s), late(s)
	at := s.place()
	p.timedOut, p.again = at.timedOut, at.again
	p.operation, p.deletion = operation(s, at), s.deletion(at)
	for _, v := range s.due(at.stage) {
		switch {
		case v.held:
			p.release = append(p.release, v)
		case v.uncertain && v.deleting && !s.forceDelete:
			p.forget = append(p.forget, v)
		case !s.forceDelete || !v.deleting:
		case s.stage == at.stage && !s.now.Before(s.since.Add(forceDeleteAfter)):
			p.abandon = append(p.abandon, v)
		default:
			p.again = forceDeleteAfter
		}
	}
	return p
}

// left says whether anything is that the Machine waits for.
func (s machineState) left() bool { return len(s.workerNodes)+len(s.vms)+len(s.companions) > 0 }

// due are the resources that are deleted in a stage: of companions those that were made
// last, which those before them do not need. By force it is all of them at once.
func (s machineState) due(stage v1alpha1.DeletionStage) []vm {
	switch {
	case stage == v1alpha1.DeletionDeletingVM:
		return s.vms
	case stage == v1alpha1.DeletionDeletingCompanions && s.forceDelete:
		return s.companions
	case stage == v1alpha1.DeletionDeletingCompanions:
		last := s.companions[len(s.companions)-1].order
		return s.companions[slices.IndexFunc(s.companions, func(c vm) bool { return c.order == last }):]
	}
	return nil
}

// passOn the wishes of the Machine to WorkerNodes that do not have them yet.
func passOn(s machineState) map[string][]string {
	out := map[string][]string{}
	for _, wn := range s.workerNodes {
		if s.skipDrain && !wn.skipDrain {
			out[wn.name] = append(out[wn.name], v1alpha1.AnnotationSkipDrain)
		}
		if s.forceDrain && !wn.forceDrain {
			out[wn.name] = append(out[wn.name], v1alpha1.AnnotationForceDrain)
		}
	}
	return out
}

// late WorkerNodes were made when the Machine was being deleted already, by a reconcile of
// Crossplane's with a view from before. The garbage collector has looked at what the
// Machine owns, and looks again only when some of that is gone: which the VM is after its
// WorkerNode.
func late(s machineState) []workerNode {
	var out []workerNode
	for _, wn := range s.workerNodes {
		if !wn.deleting && !wn.created.Before(s.deletedAt) {
			out = append(out, wn)
		}
	}
	return out
}

// A place in a deletion.
type place struct {
	stage v1alpha1.DeletionStage
	hooks []string
	pods  []v1alpha1.DrainedPod
	// quiet means that it is not worth telling yet.
	quiet    bool
	timedOut []string
	again    time.Duration
}

// place where the deletion is. It never goes back to hooks that it has passed.
func (s machineState) place() place {
	if len(s.workerNodes) > 0 {
		return s.draining(s.workerNodes[0])
	}
	at := place{stage: v1alpha1.DeletionDeletingVM}
	if len(s.vms) == 0 {
		// What cannot be seen may be a VM that needs its companions.
		if len(s.companions) > 0 && (s.unreadable == "" || s.forceDelete) {
			at.stage = v1alpha1.DeletionDeletingCompanions
		}
		return at
	}
	// Without a WorkerNode nobody else waits for these.
	if s.stage == "" || s.stage == v1alpha1.DeletionPreDrainHooks {
		if left := s.deletedAt.Add(s.hookTimeout).Sub(s.now); len(s.preDrain) > 0 && left > 0 {
			return place{stage: v1alpha1.DeletionPreDrainHooks, hooks: s.preDrain, again: left}
		}
		at.timedOut = append(at.timedOut, s.preDrain...)
	}
	if s.stage != v1alpha1.DeletionDeletingVM {
		since := s.now
		if s.stage == v1alpha1.DeletionPreTerminateHooks {
			since = s.since
		}
		if left := since.Add(s.hookTimeout).Sub(s.now); len(s.preTerminate) > 0 && left > 0 {
			return place{stage: v1alpha1.DeletionPreTerminateHooks, hooks: s.preTerminate, timedOut: at.timedOut, again: left}
		}
		at.timedOut = append(at.timedOut, s.preTerminate...)
	}
	return at
}

// draining is where a Machine is whose WorkerNode is there.
func (s machineState) draining(wn workerNode) place {
	at := place{stage: wn.stage, hooks: wn.hooks, pods: wn.pods}
	switch {
	case wn.stage == "" && len(s.preDrain) > 0 && (s.stage == "" || s.stage == v1alpha1.DeletionPreDrainHooks):
		at.stage, at.hooks = v1alpha1.DeletionPreDrainHooks, s.preDrain
	case wn.stage == "":
		at.stage = v1alpha1.DeletionDraining
	case wn.stage == v1alpha1.DeletionDeletingNode && s.stage != "" && s.stage != wn.stage:
		if left := wn.since.Add(tellNodeAfter).Sub(s.now); left > 0 {
			at.quiet, at.again = true, left
		}
	}
	return at
}

// deletion is what the status shall say, nil if nothing new.
func (s machineState) deletion(at place) *v1alpha1.DeletionStatus {
	if at.quiet || !s.left() && s.unreadable == "" {
		return nil
	}
	since := s.now
	if s.stage == at.stage {
		since = s.since
	}
	d := &v1alpha1.DeletionStatus{Stage: at.stage, Hooks: at.hooks, Pods: at.pods}
	d.Since.Time = since.UTC().Truncate(time.Second)
	return d
}

// operation says what a Machine that is being deleted waits for.
func operation(s machineState, at place) *v1alpha1.LastOperation {
	op := func(t v1alpha1.OperationType, format string, args ...any) *v1alpha1.LastOperation {
		return &v1alpha1.LastOperation{Type: t, State: v1alpha1.OperationProcessing, Description: fmt.Sprintf(format, args...)}
	}
	if at.quiet {
		return nil
	}
	if len(s.workerNodes) > 0 && s.workerNodes[0].trouble != "" {
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: %s", s.workerNodes[0].name, s.workerNodes[0].trouble)
	}
	switch at.stage {
	case v1alpha1.DeletionPreDrainHooks:
		return op(v1alpha1.OperationDrain, "Waiting for pre-drain hooks: %s", strings.Join(at.hooks, ", "))
	case v1alpha1.DeletionDraining:
		if len(at.pods) > 0 {
			p := at.pods[0]
			return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: pod %s/%s: %s", s.workerNodes[0].name, p.Namespace, p.Name, p.Reason)
		}
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: its Node is drained and deleted", s.workerNodes[0].name)
	case v1alpha1.DeletionDetachingVolumes:
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: volumes are detached from its Node", s.workerNodes[0].name)
	case v1alpha1.DeletionDeletingNode:
		return op(v1alpha1.OperationDrain, "Waiting for WorkerNode %s: its Node is deleted", s.workerNodes[0].name)
	case v1alpha1.DeletionPreTerminateHooks:
		return op(v1alpha1.OperationDelete, "Waiting for pre-terminate hooks: %s", strings.Join(at.hooks, ", "))
	case v1alpha1.DeletionDeletingVM:
		if len(s.vms) > 0 {
			return op(v1alpha1.OperationDelete, "Waiting for %s %s: the VM is deleted", s.vms[0].kind, s.vms[0].name)
		}
	case v1alpha1.DeletionDeletingCompanions:
		last := s.companions[len(s.companions)-1]
		return op(v1alpha1.OperationDelete, "Waiting for %s %s: the VM is gone, and what it had beside it is deleted", last.kind, last.name)
	}
	if s.unreadable != "" {
		return op(v1alpha1.OperationDelete, "Waiting for a VM that cannot be seen: %s", s.unreadable)
	}
	return nil
}
