package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machinev1alpha1 "github.com/drover-dev/drover/apis/machine/v1alpha1"
	"github.com/drover-dev/drover/internal/healthprofile"
	"github.com/drover-dev/drover/internal/plan"
	"github.com/drover-dev/drover/internal/workernode"
)

// Observed is the view of the step.
type Observed struct {
	Machine *machinev1alpha1.Machine
	// Bootstrap and VM are the outputs of the earlier steps.
	Bootstrap plan.Bootstrap
	VM        plan.VM
	// WorkerNode is the observed Node, nil until parameters for it were decided.
	WorkerNode *workernode.WorkerNode
	// HealthProfiles are those of spec.health.
	HealthProfiles plan.HealthProfiles
	// Devices that the Machine's class names. They are nil if it names none or is not known, or if spec.health does not judge
	// them.
	Devices machinev1alpha1.Devices
	// CloudNamesNodes means that the cloud sets the name of the Node, so that it differs from the
	// Machine's.
	CloudNamesNodes bool
	// TargetUnreachable means that the target cluster is unreachable. The observation of the Node
	// is stale then, and no Machine fails because of it.
	TargetUnreachable bool
	// JudgeAfter is the time from which a Node may make its Machine Failed again after an outage of
	// the cluster. It is zero if there was none.
	JudgeAfter time.Time
}

// JudgesDevices reports whether the health of a Machine judges the devices of its Node. Only then is its class requested.
func (o Observed) JudgesDevices() bool {
	return plan.JudgesDevices(healthprofile.Rules(o.Machine.Spec.Health, o.HealthProfiles.Found))
}

// Requests to the provider of a VM. They are annotations of the VM resource.
type Requests struct {
	// Console means that the provider shall report the console of the VM.
	Console bool
	// Reboot is the request of a reboot: see [machinev1alpha1.RebootRequest]. It is "" if there is none.
	Reboot string
}

// Desired is the output of the step.
type Desired struct {
	// WorkerNode is the desired state of the Node. It is nil until the VM's providerID is known.
	WorkerNode *workernode.Parameters
	// Requests to the provider of the VM.
	Requests Requests

	Status machinev1alpha1.MachineStatus
	plan.Report
}

const (
	isTrue    = string(corev1.ConditionTrue)
	isFalse   = string(corev1.ConditionFalse)
	isUnknown = string(corev1.ConditionUnknown)
)

// whole truncates a time to whole seconds, as a status stores it.
func whole(t time.Time) *metav1.Time {
	w := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &w
}
