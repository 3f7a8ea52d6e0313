package machine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// update returns the state of the update in place that the spec requests, nil if it requests none.
//
//	Candidate -> Draining -> Updating -> Succeeded
//	                                  -> Failed -> Succeeded
//
// Another ID starts a new update. An update that is no longer requested ends when the Node is
// uncordoned.
func update(f facts) *machinev1alpha1.UpdateStatus {
	want, before := f.Machine.Spec.InPlaceUpdate, f.before.Update
	if want == nil {
		if begun(before) && !uncordoned(f.WorkerNode) {
			return before
		}
		return nil
	}
	s := machinev1alpha1.UpdateStatus{ID: want.ID, State: machinev1alpha1.UpdateCandidate}
	if before != nil && before.ID == want.ID {
		s = *before
		s.Requested = false
	}
	switch {
	case !want.Selected:
		s.State, s.Message = machinev1alpha1.UpdateCandidate, ""
		s.Requested = machinev1alpha1.SelectsUpdate(f.node.Labels[machinev1alpha1.LabelUpdateSelected], want.ID)
	case s.State == machinev1alpha1.UpdateCandidate && f.before.Reboot.IsInProgress():
		s.Message = "waits for the reboot of the VM"
	default:
		s.State, s.Message = next(f.now, s, want, f.WorkerNode)
	}
	if before == nil || before.ID != s.ID || before.State != s.State {
		s.Since = *whole(f.now)
	}
	return &s
}

// next returns the next state and message of an update that is selected.
func next(now time.Time, s machinev1alpha1.UpdateStatus, want *machinev1alpha1.MachineUpdate, wn *workernode.WorkerNode) (machinev1alpha1.UpdateState, string) {
	switch s.State {
	case machinev1alpha1.UpdateSucceeded:
		return s.State, s.Message
	case machinev1alpha1.UpdateUpdating, machinev1alpha1.UpdateFailed:
		said := answer(wn, want.ID)
		switch {
		case said.succeeded:
			return machinev1alpha1.UpdateSucceeded, ""
		case said.failed:
			return machinev1alpha1.UpdateFailed, cmp.Or(said.message, "the node's agent gave no reason")
		case s.State == machinev1alpha1.UpdateUpdating && !now.Before(updateDeadline(s, want)):
			return machinev1alpha1.UpdateFailed, fmt.Sprintf("the node's agent did not answer within %s", updateTimeout(want))
		}
		return s.State, s.Message
	}
	if wn != nil && wn.Parameters.Drained && wn.Observation.Drained {
		return machinev1alpha1.UpdateUpdating, ""
	}
	return machinev1alpha1.UpdateDraining, ""
}

// An agentAnswer is the result of an update that a node's agent reports.
type agentAnswer struct {
	succeeded, failed bool
	message           string
}

// answer returns the agent's answer to this request only. Before the Node has the labels of this
// request, an observed answer belongs to an earlier one.
func answer(wn *workernode.WorkerNode, id string) agentAnswer {
	if wn == nil || !upToDate(wn) {
		return agentAnswer{}
	}
	asked, said := wn.Parameters.Labels, wn.Observation
	if asked[machinev1alpha1.LabelUpdate] != machinev1alpha1.UpdateLabelReady || asked[machinev1alpha1.LabelUpdateTo] != id {
		return agentAnswer{}
	}
	return agentAnswer{
		succeeded: said.Labels[machinev1alpha1.LabelUpdatedTo] == id,
		failed:    said.Labels[machinev1alpha1.LabelUpdateFailed] == id,
		message:   said.Annotations[machinev1alpha1.AnnotationUpdateMessage],
	}
}

// upToDate reports whether the Node was observed with all of its parameters.
func upToDate(wn *workernode.WorkerNode) bool {
	return wn.Observation.Error == "" && wn.Observation.Synced
}

func uncordoned(wn *workernode.WorkerNode) bool {
	return wn == nil || !wn.Parameters.Drained && !wn.Observation.Drained && upToDate(wn)
}

// begun reports whether the Node is, or may be, cordoned for the update.
func begun(s *machinev1alpha1.UpdateStatus) bool {
	return s != nil && s.State != machinev1alpha1.UpdateCandidate
}

// beingUpdated reports whether the Node is drained for an update or under the control of its agent.
// Its conditions are then no sign of its health.
func beingUpdated(s *machinev1alpha1.UpdateStatus) bool {
	return begun(s) && s.State != machinev1alpha1.UpdateFailed
}

func updateDeadline(s machinev1alpha1.UpdateStatus, want *machinev1alpha1.MachineUpdate) time.Time {
	return s.Since.Add(updateTimeout(want))
}

func updateTimeout(want *machinev1alpha1.MachineUpdate) time.Duration {
	return plan.Timeout(want.Timeout, machinev1alpha1.DefaultUpdateTimeout)
}

// onNode adds the labels, annotations and the taint by which the agent and users follow an update.
func onNode(p *workernode.Parameters, want *machinev1alpha1.MachineUpdate, s *machinev1alpha1.UpdateStatus) {
	if want == nil || s == nil {
		return
	}
	p.Labels[machinev1alpha1.LabelUpdate] = machinev1alpha1.UpdateLabelCandidate
	p.Labels[machinev1alpha1.LabelUpdateTo] = want.ID
	p.Annotations[machinev1alpha1.AnnotationUpdateVersion] = want.Version
	p.Annotations[machinev1alpha1.AnnotationUpdateClass] = want.ClassRef.Key()
	if want.Selected && s.State != machinev1alpha1.UpdateDraining && s.State != machinev1alpha1.UpdateCandidate {
		p.Labels[machinev1alpha1.LabelUpdate] = machinev1alpha1.UpdateLabelReady
	}
	// The same taint is on Nodes that are replaced: pods that leave another Node prefer a Node that
	// they will not have to leave again. It is removed with the request.
	outdated := workernode.Taint{Key: machinev1alpha1.TaintOutdated, Effect: string(corev1.TaintEffectPreferNoSchedule)}
	if !slices.ContainsFunc(p.Taints, func(t workernode.Taint) bool { return t.Key == outdated.Key && t.Effect == outdated.Effect }) {
		p.Taints = append(p.Taints, outdated)
	}
}

// reasonsOfUpdates are the reasons of conditions and events, by the state of an update in place.
var reasonsOfUpdates = map[machinev1alpha1.UpdateState]string{
	machinev1alpha1.UpdateCandidate: machinev1alpha1.ReasonUpdateCandidate,
	machinev1alpha1.UpdateDraining:  machinev1alpha1.ReasonUpdateDraining,
	machinev1alpha1.UpdateUpdating:  machinev1alpha1.ReasonUpdateUpdating,
	machinev1alpha1.UpdateSucceeded: machinev1alpha1.ReasonUpdateSucceeded,
	machinev1alpha1.UpdateFailed:    machinev1alpha1.ReasonUpdateFailed,
}

// describe an update in place for an event or condition.
func describe(m *machinev1alpha1.Machine, u *machinev1alpha1.UpdateStatus) string {
	to := u.ID
	if want := m.Spec.InPlaceUpdate; want != nil {
		to = fmt.Sprintf("%s, to version %s of class %q", want.ID, want.Version, want.ClassRef.Key())
	}
	switch u.State {
	case machinev1alpha1.UpdateCandidate:
		return fmt.Sprintf("Waits to be selected for update %s", to)
	case machinev1alpha1.UpdateDraining:
		return fmt.Sprintf("Draining the Node for update %s", to)
	case machinev1alpha1.UpdateUpdating:
		return fmt.Sprintf("The Node is drained, and its agent is awaited: update %s", to)
	case machinev1alpha1.UpdateSucceeded:
		return fmt.Sprintf("The node's agent has done update %s", to)
	default:
		return fmt.Sprintf("Update %s failed: %s", to, u.Message)
	}
}
