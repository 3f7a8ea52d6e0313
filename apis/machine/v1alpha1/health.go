package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Health defines when a Machine's Node is unhealthy, and for how long it may be. A Node
// is unhealthy while its condition Ready is not True, or one of Conditions has the
// status that is named here. Its Machine is then Unknown or, if it never was Running,
// Joining until creationTimeout.
//
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, c.type != 'Ready' || c.status != 'True')",message="conditions of type Ready must have the status False or Unknown: a Node whose Ready is True is healthy"
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, self.conditions.exists_one(o, o.type == c.type && o.status == c.status))",message="conditions must not repeat a type with the same status"
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, c.type != 'Ready' || !has(c.action) || c.action != 'Report')",message="conditions of type Ready must have the action Replace or Reboot: a Node that is not Ready is always unhealthy; to keep its Machine, set spec.health.disabled"
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, !has(c.action) || c.action != 'Report' || !has(c.timeout))",message="conditions with the action Report must have no timeout: they are reported at once"
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, c.type != 'DevicesMissing' || !has(c.timeout) || duration(c.timeout) >= duration('1m'))",message="conditions of type DevicesMissing must have a timeout of at least 1m: device plugins register their devices after the kubelet is Ready"
// +kubebuilder:validation:XValidation:rule="!has(self.conditions) || self.conditions.all(c, c.type != 'DevicesMissing' || c.status == 'True')",message="conditions of type DevicesMissing must have the status True: devices are missing or not"
type Health struct {
	// Timeout is how long a Machine may be Unknown. After it the Machine is Failed. It
	// counts from when the Node became unhealthy for the first of all conditions
	// that have no timeout of their own. A Node that was healthy for less than a minute
	// in between, or for less than this timeout if that is shorter, was not well again.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	// +kubebuilder:default="10m"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// Conditions of the Node that make it unhealthy. Ready is judged in any case; it
	// is named here to give it a timeout of its own. An empty list leaves Ready alone.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:default={{type: KernelDeadlock, status: "True"}, {type: ReadonlyFilesystem, status: "True"}, {type: DiskPressure, status: "True"}, {type: NetworkUnavailable, status: "True"}}
	Conditions []HealthCondition `json:"conditions,omitzero"`

	// Profiles are names of HealthProfiles, built-in ones or objects: further conditions with their actions. A field that an
	// entry of Conditions does not set is taken from the first profile that has its type and status.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Profiles []string `json:"profiles,omitempty"`

	// Reboot limits the reboots of conditions with the action Reboot. Its timeout is also that of reboots
	// that users request.
	// +optional
	Reboot *HealthReboot `json:"reboot,omitempty"`

	// Disabled keeps the Machine from ever becoming Failed because its Node is
	// unhealthy, and from being rebooted for that. It is Unknown meanwhile. That a Node never joins, is deleted, or that
	// its VM is lost makes it Failed nevertheless.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
}

// A HealthAction is what follows when a Node has a condition for the time of its timeout.
// +kubebuilder:validation:Enum=Replace;Reboot;Report
type HealthAction string

// NodeDevicesMissing is the type of the condition of Nodes that Drover itself determines: a device that the class names is
// missing. A condition of this type that a Node reports is ignored.
const NodeDevicesMissing = "DevicesMissing"

// Actions of health conditions.
const (
	// HealthReplace makes the Machine Failed: its set replaces it.
	HealthReplace HealthAction = "Replace"
	// HealthActionReboot reboots the VM, as often as [HealthReboot] allows. After that, the Machine is Failed.
	HealthActionReboot HealthAction = "Reboot"
	// HealthReport only reports the condition: the Node counts as healthy.
	HealthReport HealthAction = "Report"
)

// HealthReboot limits the reboots that the health of Nodes causes.
type HealthReboot struct {
	// Limit is the number of reboots within the window. A Machine whose Node is unhealthy again after them is Failed.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Limit int32 `json:"limit,omitempty"`

	// Window in which the reboots are counted.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="window must be at least 1m"
	// +kubebuilder:default="24h"
	Window metav1.Duration `json:"window,omitempty,omitzero"`

	// Timeout is how long a reboot may take, from its request to a Node that has booted and is healthy. Without
	// that, the reboot failed. It is never shorter than the Machine took from its running VM to its Ready Node.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="timeout must be at least 1m: a VM boots meanwhile"
	// +kubebuilder:default="15m"
	Timeout metav1.Duration `json:"timeout,omitempty,omitzero"`

	// Drain Never only cordons the Node before the reboot. With Default, it is drained by spec.drain.
	// +optional
	// +kubebuilder:validation:Enum=Default;Never
	// +kubebuilder:default=Default
	Drain string `json:"drain,omitempty"`
}

// A HealthCondition makes a Node unhealthy.
type HealthCondition struct {
	// Type of the Node's condition. DevicesMissing is a condition that Drover itself determines: it is True while the
	// allocatable of the Node has fewer of an extended resource, such as nvidia.com/gpu, than
	// spec.nodeCapacity.capacity of the class names. Until it joined, the Machine waits for its devices.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// Status of the condition that is unhealthy.
	// +kubebuilder:validation:Enum="True";"False";Unknown
	// +kubebuilder:default="True"
	Status string `json:"status,omitempty"`

	// Timeout is how long the condition may have the status until the Machine is
	// Failed. Without it health.timeout counts.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="timeout must be at least 1s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// Action after the timeout: Replace makes the Machine Failed, Reboot reboots it and makes it Failed if that
	// does not help, and Report only reports the condition, so that the Node counts as healthy. At a cloud
	// that cannot reboot VMs, Reboot means Replace. The default is Replace.
	// +optional
	Action HealthAction `json:"action,omitempty"`
}

// ActionOrDefault returns the action, Replace if there is none.
func (c HealthCondition) ActionOrDefault() HealthAction {
	if c.Action == "" {
		return HealthReplace
	}
	return c.Action
}

// Unhealthiness of a Machine's Node: the one that there is or, with an end, the last.
type Unhealthiness struct {
	// Since when the Node is unhealthy, without having been well again in between.
	Since metav1.Time `json:"since"`

	// Until when it was. It is absent while it is.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Conditions for which it is, or was.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []UnhealthyCondition `json:"conditions,omitempty"`

	// RebootID is the ID of the reboot that is due. It begins when the Machine's set allows it within
	// spec.remediation.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	RebootID string `json:"rebootID,omitempty"`
}

// An UnhealthyCondition is a Node's condition that makes it unhealthy.
type UnhealthyCondition struct {
	// Type of the condition.
	Type string `json:"type"`
	// Status of the condition.
	Status string `json:"status"`
	// Reason of the status, as the Node reports it.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Since when the Node is unhealthy for this condition, as Drover saw it. Another
	// status that is unhealthy too does not reset it.
	Since metav1.Time `json:"since"`
}
