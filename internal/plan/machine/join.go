package machine

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/identity"
	"github.com/drover-dev/drover/internal/plan"
)

// joinStatus adds the milestones that are reached now to the recorded ones: each is set once. It
// stays nil for a Machine that ran before milestones were recorded.
func joinStatus(f facts) *machinev1alpha1.JoinStatus {
	before := f.before.Join
	if before == nil && f.hasRun {
		return nil
	}
	reached := f.reached()
	out := &machinev1alpha1.JoinStatus{}
	for _, name := range machinev1alpha1.JoinMilestones() {
		if at := cmp.Or(before.At(name), reached[name]); at != nil {
			out.Milestones = append(out.Milestones, machinev1alpha1.ReachedMilestone{Name: name, Time: *at})
		}
	}
	out.Bootstrap = f.bootstrapProgress()
	if len(out.Milestones) == 0 && out.Bootstrap == nil {
		return before
	}
	return out
}

// withConsole adds the console of a Machine that failed. If the failure is revoked, it removes the
// console.
func withConsole(join *machinev1alpha1.JoinStatus, text string) *machinev1alpha1.JoinStatus {
	if join == nil && text == "" || join != nil && join.Console == text {
		return join
	}
	out := &machinev1alpha1.JoinStatus{}
	if join != nil {
		*out = *join
	}
	out.Console = text
	return out
}

// reached returns the milestones that are reached by the observed state, nil for each of the
// remaining ones.
func (f facts) reached() map[machinev1alpha1.JoinMilestone]*metav1.Time {
	now := whole(f.now)
	out := map[machinev1alpha1.JoinMilestone]*metav1.Time{
		machinev1alpha1.JoinCertificateRequested: f.node.Join.CertificateRequested,
		machinev1alpha1.JoinCertificateApproved:  f.node.Join.CertificateApproved,
		machinev1alpha1.JoinNodeRegistered:       f.node.Join.UnprovenSince,
	}
	if f.VM.State == plan.VMRunning {
		out[machinev1alpha1.JoinVMRunning] = now
	}
	if f.node.Present {
		out[machinev1alpha1.JoinNodeRegistered] = cmp.Or(f.node.Created, now)
		if f.node.HasProviderID {
			out[machinev1alpha1.JoinProviderIDMatched] = now
		}
		if f.node.ready {
			out[machinev1alpha1.JoinNodeReady] = cmp.Or(f.node.since, now)
		}
	}
	return out
}

// describeJoin names the last milestone that was reached, and explains the next one. It is empty if
// none was reached, because the Machine then waits for the VM itself.
func describeJoin(f facts) string {
	s := joinStatus(f)
	var last, missing machinev1alpha1.JoinMilestone
	for _, name := range machinev1alpha1.JoinMilestones() {
		if s.At(name) != nil {
			// A skipped milestone was not observed: the Node exists without a watched certificate
			// request.
			last, missing = name, ""
		} else if missing == "" {
			missing = name
		}
	}
	if last == "" {
		return ""
	}
	text := fmt.Sprintf("; last milestone: %s", last)
	if why := f.explainMissing(missing); why != "" {
		text += fmt.Sprintf("; missing: %s, %s", missing, why)
	}
	return text
}

// explainMissing explains a milestone that was not reached, and where to look.
func (f facts) explainMissing(name machinev1alpha1.JoinMilestone) string {
	switch name {
	case machinev1alpha1.JoinVMRunning:
		return "the cloud does not report the VM as running"
	case machinev1alpha1.JoinCertificateRequested:
		if f.VM.Console != nil && f.VM.Console.Excerpt != "" {
			return "no certificate request with the join token was seen: read status.join.console"
		}
		return "no certificate request with the join token was seen: read the console of the VM"
	case machinev1alpha1.JoinCertificateApproved:
		return "the certificate request was not approved: see kubectl get csr in the target cluster"
	case machinev1alpha1.JoinNodeRegistered:
		if f.CloudNamesNodes {
			return "the kubelet registered no Node: read its log on the VM"
		}
		return fmt.Sprintf("no Node is called %s: read the log of the kubelet on the VM", identity.NodeName(f.Machine))
	case machinev1alpha1.JoinProviderIDMatched:
		return "the Node does not have the providerID of the VM"
	case machinev1alpha1.JoinNodeReady:
		return "the Node was never Ready: read its conditions"
	}
	return ""
}
