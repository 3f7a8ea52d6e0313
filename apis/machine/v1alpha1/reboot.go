package v1alpha1

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A RebootState is the progress of a reboot.
// +kubebuilder:validation:Enum=Waiting;Draining;Rebooting;Succeeded;Failed
type RebootState string

// States of a reboot.
const (
	// RebootWaiting has not begun: the message has the cause.
	RebootWaiting RebootState = "Waiting"
	// RebootDraining cordons and drains the Node.
	RebootDraining RebootState = "Draining"
	// RebootRebooting has requested the reboot from the provider of the VM, and waits for the proof: the Node
	// reports another boot ID, and is healthy.
	RebootRebooting RebootState = "Rebooting"
	// RebootSucceeded is proven by the Node.
	RebootSucceeded RebootState = "Succeeded"
	// RebootFailed was refused, or was not proven in time.
	RebootFailed RebootState = "Failed"
)

// A RebootMode is how the cloud reboots a VM.
// +kubebuilder:validation:Enum=Soft;Hard
type RebootMode string

// Modes of a reboot.
const (
	// RebootSoft asks the operating system of the VM to restart.
	RebootSoft RebootMode = "Soft"
	// RebootHard resets the VM, as the button of a computer does.
	RebootHard RebootMode = "Hard"
)

// What happens to the pods of a Node before a reboot.
const (
	// RebootDrainDefault drains the Node by spec.drain of the Machine.
	RebootDrainDefault = "Default"
	// RebootDrainNever only cordons the Node. It is the only value of the annotation
	// machine.drover.dev/reboot-drain.
	RebootDrainNever = "Never"
)

// RebootStatus is how far the current reboot of a Machine is, or how the last one ended.
type RebootStatus struct {
	// ID of the request: the value of the annotation machine.drover.dev/reboot, or one that begins with health-
	// for a reboot that the health of the Node caused. The Machine is rebooted once for each ID.
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// State of the reboot.
	State RebootState `json:"state"`
	// Since when the reboot is in this state and mode.
	Since metav1.Time `json:"since"`
	// StartTime is when Drover observed the request.
	StartTime metav1.Time `json:"startTime"`
	// Mode in which the reboot was requested last from the provider of the VM. It is absent before that.
	// +optional
	Mode RebootMode `json:"mode,omitempty"`
	// BootID of the Node before the reboot was requested from the provider.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`
	// SkipDrain means that the Node is not drained, as the annotation machine.drover.dev/reboot-drain requests.
	// +optional
	SkipDrain bool `json:"skipDrain,omitempty"`
	// Message for people.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
	// ByHealth is the condition of the Node that caused the reboot. It is absent if a user requested it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ByHealth string `json:"byHealth,omitempty"`
	// HealthTimes are when reboots that health caused were requested from the provider, the last one first, ten
	// at most. spec.health.reboot limits their number.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	HealthTimes []metav1.Time `json:"healthTimes,omitempty"`
	// EarlierIDs are those of earlier requests, the last one first, ten at most. A request with one of them is not
	// carried out again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	EarlierIDs []string `json:"earlierIDs,omitempty"`
}

// IsInProgress reports whether the reboot has begun and has not ended.
func (s *RebootStatus) IsInProgress() bool {
	return s != nil && (s.State == RebootDraining || s.State == RebootRebooting)
}

// IsDone reports whether the reboot has ended.
func (s *RebootStatus) IsDone() bool {
	return s != nil && (s.State == RebootSucceeded || s.State == RebootFailed)
}

// Has reports whether this reboot, or an earlier one, is that of a request.
func (s *RebootStatus) Has(id string) bool {
	return s != nil && (s.ID == id || slices.Contains(s.EarlierIDs, id))
}

// FormOfRebootID describes the values that IsRebootID accepts.
const FormOfRebootID = "1 to 63 letters, digits, '-', '_' or '.', such as 2026-01-31.1"

var rebootID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// IsRebootID reports whether a value of the annotation machine.drover.dev/reboot of a Machine is valid.
func IsRebootID(value string) bool { return rebootID.MatchString(value) }

// RebootRequest returns the value of AnnotationReboot of a VM resource. A provider carries each value out once.
func RebootRequest(mode RebootMode, id string) string { return string(mode) + "/" + id }

// ParseRebootRequest returns the mode and the ID of a value that RebootRequest returned. ok is false for any other
// value.
func ParseRebootRequest(value string) (mode RebootMode, id string, ok bool) {
	m, id, _ := strings.Cut(value, "/")
	mode = RebootMode(m)
	return mode, id, (mode == RebootSoft || mode == RebootHard) && IsRebootID(id)
}
