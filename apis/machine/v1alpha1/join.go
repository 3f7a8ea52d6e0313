package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A JoinMilestone is a point that a VM passes on its way to a Ready Node.
// +kubebuilder:validation:Enum=VMRunning;CertificateRequested;CertificateApproved;NodeRegistered;ProviderIDMatched;NodeReady
type JoinMilestone string

// Milestones of a join, in their order.
const (
	// JoinVMRunning means that the cloud reports the VM as running.
	JoinVMRunning JoinMilestone = "VMRunning"
	// JoinCertificateRequested means that the join token was used: a kubelet has requested
	// its client certificate with it.
	JoinCertificateRequested JoinMilestone = "CertificateRequested"
	// JoinCertificateApproved means that this request was approved.
	JoinCertificateApproved JoinMilestone = "CertificateApproved"
	// JoinNodeRegistered means that there is a Node with the name of the Machine's Node.
	JoinNodeRegistered JoinMilestone = "NodeRegistered"
	// JoinProviderIDMatched means that the Node has the providerID of the VM.
	JoinProviderIDMatched JoinMilestone = "ProviderIDMatched"
	// JoinNodeReady means that the Node was Ready.
	JoinNodeReady JoinMilestone = "NodeReady"
)

// JoinMilestones returns all milestones in their order.
func JoinMilestones() []JoinMilestone {
	return []JoinMilestone{JoinVMRunning, JoinCertificateRequested, JoinCertificateApproved, JoinNodeRegistered, JoinProviderIDMatched, JoinNodeReady}
}

// A ReachedMilestone is a milestone and when it was reached.
type ReachedMilestone struct {
	// Name of the milestone.
	Name JoinMilestone `json:"name"`
	// Time when it was reached first, by the clock of the component that reports it.
	Time metav1.Time `json:"time"`
}

// JoinStatus is how far the VM has come on its way to a Ready Node. It informs users, and
// decides nothing.
type JoinStatus struct {
	// Milestones that were reached, each once. Those of certificates are missing if Drover may not
	// watch the certificate requests of the target cluster, or if the VM joined with another
	// credential than its join token.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Milestones []ReachedMilestone `json:"milestones,omitempty"`
}

// At returns when a milestone was reached, nil if it was not.
func (s *JoinStatus) At(name JoinMilestone) *metav1.Time {
	if s == nil {
		return nil
	}
	for i := range s.Milestones {
		if s.Milestones[i].Name == name {
			return &s.Milestones[i].Time
		}
	}
	return nil
}
