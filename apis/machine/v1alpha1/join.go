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

	// Bootstrap is the step of drover-bootstrap that the VM reported last on its console. It is
	// missing if the console is not known, as at clouds that do not report it, for a VM that joins
	// within a minute, and for user data of the user's own.
	// +optional
	Bootstrap *BootstrapProgress `json:"bootstrap,omitempty"`

	// Console is the end of the output of the VM's console when the Machine became Failed
	// before it ran: at most 40 lines and 4 KiB. Control characters are removed, and what looks
	// like a secret is masked. The programs of the VM write it: nothing in it is proven.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Console string `json:"console,omitempty"`
}

// A BootstrapState is the state of a bootstrap step.
// +kubebuilder:validation:Enum=Running;Failed;Done
type BootstrapState string

// States of a bootstrap step.
const (
	// BootstrapRunning means that the step was started.
	BootstrapRunning BootstrapState = "Running"
	// BootstrapFailed means that the step failed. The VM tries it again.
	BootstrapFailed BootstrapState = "Failed"
	// BootstrapDone means that the step is done, or all steps if none is named.
	BootstrapDone BootstrapState = "Done"
)

// BootstrapProgress is how far the bootstrap of a VM has come, as its console shows it.
type BootstrapProgress struct {
	// Step is the name of a step of the user data. It is empty if all steps are done.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Step string `json:"step,omitempty"`
	// State of the step.
	State BootstrapState `json:"state"`
	// ExitCode of a step that failed.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// Since is when Drover saw this first.
	Since metav1.Time `json:"since"`
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
