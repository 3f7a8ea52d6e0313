package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/kubectl/advice"
	"github.com/drover-dev/drover/internal/kubectl/view"
)

// ofFailure returns the finding of a Failed Machine. Its set replaces it: only a Machine that is preserved, or
// that neither a set nor Karpenter controls, needs a user.
func ofFailure(v *view.View, m *machinev1alpha1.Machine, ref view.Ref) (Finding, bool) {
	if m.Status.Phase != machinev1alpha1.MachineFailed {
		return Finding{}, false
	}
	f, a := failureOf(m, ref)
	preserved := view.Is(m.Status.Conditions, machinev1alpha1.ConditionPreserved, metav1.ConditionTrue)
	by := metav1.GetControllerOf(m)
	claim := view.NodeClaimName(m)
	switch held := heldBy(v, m); {
	case preserved != nil:
		f.Do = sentences(f.Do, "The Machine is kept for analysis; to have it replaced, undo that.")
		f.Commands = []string{fmt.Sprintf("kubectl drover preserve %s -n %s --undo", ref, ref.Namespace)}
		if p := m.Status.Preservation; p != nil {
			f.Until = &p.Until
		}
	case claim != "":
		f.Do = sentences(f.Do, "drover-karpenter deletes its NodeClaim, or Karpenter's node repair does if the Node is unhealthy.", a.Keep)
	case by == nil:
		f.Do = sentences(f.Do, "Delete the Machine: no set controls it, and nothing replaces it.", a.Keep)
	case held != "":
		f.Do = sentences(f.Do, "The replacement waits: "+held+".", a.Keep)
	default:
		f.Do = a.OfTheUsualCase().Do
	}
	f.NeedsUser = preserved != nil || by == nil && claim == ""
	return f, true
}

// failedBefore returns why a Machine that is being deleted was Failed: it is the reason of its deletion in most cases.
func failedBefore(m *machinev1alpha1.Machine, ref view.Ref) []Finding {
	if m.Status.FailureReason == "" {
		return nil
	}
	f, _ := failureOf(m, ref)
	return []Finding{f}
}

// failureOf returns the finding of the failure of a Machine, and the whole advice for it.
func failureOf(m *machinev1alpha1.Machine, ref view.Ref) (Finding, advice.Advice) {
	reason := string(m.Status.FailureReason)
	a := advice.ForFailure(reason)
	return Finding{Subjects: []view.Ref{ref}, Reason: reason, Cause: m.Status.Failure(), Meaning: a.Meaning, Do: a.Do}, a
}

// sentences joins those that are not empty.
func sentences(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

// heldBy returns the reason why the set of a Machine replaces none, "" if it does.
func heldBy(v *view.View, m *machinev1alpha1.Machine) string {
	by := metav1.GetControllerOf(m)
	if by == nil {
		return ""
	}
	s := v.Set(m.Namespace, by.Name)
	if s == nil {
		return ""
	}
	for _, held := range []*metav1.Condition{
		view.Is(s.Status.Conditions, machinev1alpha1.ConditionFrozen, metav1.ConditionTrue),
		view.Is(s.Status.Conditions, machinev1alpha1.ConditionRemediationAllowed, metav1.ConditionFalse),
	} {
		if held != nil {
			return held.Reason
		}
	}
	return ""
}

// late returns a finding if the VM of a Machine has been running for long, and its Node has not joined.
func late(m *machinev1alpha1.Machine, ref view.Ref, now time.Time) (Finding, bool) {
	c := view.Is(m.Status.Conditions, machinev1alpha1.ConditionNodeReady, metav1.ConditionFalse)
	running := m.Status.Join.At(machinev1alpha1.JoinVMRunning)
	if c == nil || c.Reason != machinev1alpha1.ReasonNodeNotJoined || running == nil || now.Sub(running.Time) < lateAfter {
		return Finding{}, false
	}
	f := newFinding(ref, c)
	f.Do = cureOfMilestone(m)
	f.Commands = []string{fmt.Sprintf("kubectl drover why %s -n %s", ref, ref.Namespace)}
	return f, true
}

// cureOfMilestone returns where to look, by the last milestone that the VM passed: see docs/health.md.
func cureOfMilestone(m *machinev1alpha1.Machine) string {
	switch j := m.Status.Join; {
	case j.At(machinev1alpha1.JoinNodeRegistered) != nil:
		return "A Node of the name is there, and is not proven to be the Machine's: read the condition NodeIdentified."
	case j.At(machinev1alpha1.JoinCertificateApproved) != nil:
		return "The certificate of the kubelet is approved, and no Node was registered: read the log of the kubelet."
	case j.At(machinev1alpha1.JoinCertificateRequested) != nil:
		return "The certificate request of the kubelet is not approved: run kubectl get csr in the target cluster."
	}
	return "No kubelet has used the join token: read the console of the VM. The image, the user data, the mirror and the way to the API server are the usual causes."
}
