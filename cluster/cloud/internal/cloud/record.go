// Package cloud is the local cloud: its VMs and their life cycles, quota, settings and faults. It
// does not depend on HTTP.
package cloud

import (
	"time"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
)

// Record is the stored state of a VM.
type Record struct {
	VM       localcloud.VM `json:"vm"`
	UserData []byte        `json:"userData,omitempty"`
	// Network is a number that the VM's addresses derive from. It is unique per VM.
	Network int `json:"network"`

	// RunAt is when the VM is powered on, and BootAt is when it reads its user data.
	RunAt  time.Time `json:"runAt"`
	BootAt time.Time `json:"bootAt"`
	// FailAt is when the creation fails with Failure, instead of RunAt.
	FailAt  *time.Time          `json:"failAt,omitempty"`
	Failure *localcloud.VMError `json:"failure,omitempty"`
	// GoneAt is when a Terminating VM is deleted.
	GoneAt *time.Time `json:"goneAt,omitempty"`

	// Real is true if the VM has a real image.
	Real           bool `json:"real,omitempty"`
	NeverBoots     bool `json:"neverBoots,omitempty"`
	NoProviderID   bool `json:"noProviderID,omitempty"`
	KubeletStopped bool `json:"kubeletStopped,omitempty"`
	// Booted is true from the time when the VM reads its user data.
	Booted bool `json:"booted,omitempty"`
	// Boots is how often the VM was rebooted.
	Boots   int           `json:"boots,omitempty"`
	Kubelet kubelet.State `json:"kubelet,omitzero"`
}

// on reports whether a guest runs in the VM.
func (r *Record) on() bool {
	return r.VM.State == localcloud.StateRunning && r.Booted && !r.KubeletStopped
}
