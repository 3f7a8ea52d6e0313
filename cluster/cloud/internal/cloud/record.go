// Package cloud is the local cloud: its VMs and their lives, quota, settings and
// faults. It knows no HTTP.
package cloud

import (
	"time"

	"github.com/drover-dev/drover/internal/localcloud"

	"github.com/drover-dev/drover/cluster/cloud/internal/kubelet"
)

// Record is all that the cloud keeps of a VM.
type Record struct {
	VM       localcloud.VM `json:"vm"`
	UserData []byte        `json:"userData,omitempty"`
	// Network numbers the VM's addresses; no two VMs have the same.
	Network int `json:"network"`

	// RunAt and BootAt are when it is powered on, and when it reads its user data.
	RunAt  time.Time `json:"runAt"`
	BootAt time.Time `json:"bootAt"`
	// FailAt is when its creation fails with Failure, instead of RunAt.
	FailAt  *time.Time          `json:"failAt,omitempty"`
	Failure *localcloud.VMError `json:"failure,omitempty"`
	// GoneAt is when it is gone, once it is Terminating.
	GoneAt *time.Time `json:"goneAt,omitempty"`

	// Real is true for a VM of an image of that kind.
	Real           bool `json:"real,omitempty"`
	NeverBoots     bool `json:"neverBoots,omitempty"`
	NoProviderID   bool `json:"noProviderID,omitempty"`
	KubeletStopped bool `json:"kubeletStopped,omitempty"`
	// Booted is true from the moment when it reads its user data.
	Booted  bool          `json:"booted,omitempty"`
	Kubelet kubelet.State `json:"kubelet,omitzero"`
}

// on says whether anything runs in the VM.
func (r *Record) on() bool {
	return r.VM.State == localcloud.StateRunning && r.Booted && !r.KubeletStopped
}
