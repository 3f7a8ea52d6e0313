package vsphere

import (
	"time"

	"github.com/drover-dev/drover/internal/attempt"
)

// A note is the state of a VM that is kept in memory between reconciles. All of it can be lost: a
// lost task is started again, which the vCenter refuses while it runs.
type note struct {
	// task that changes the VM, other than its clone.
	task string
	// failedClone is the clone task that failed.
	failedClone string
	// hasJoined reports whether the VM is in its anti-affinity rule.
	hasJoined bool
	// isLeaving reports whether the attribute of a VM to delete is set, and hasLeft whether its
	// anti-affinity rule needs no change.
	isLeaving, hasLeft bool
	attempt.Failures
}

// fail records a failure. It returns the delay until the next attempt.
func (n *note) fail(now time.Time, err error, generation int64, v *vcenter) time.Duration {
	return n.Add(now, err, classOf(err), generation, v)
}
