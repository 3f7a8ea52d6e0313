package native

import (
	"time"

	"github.com/drover-dev/drover/internal/attempt"
)

// A note is the state of a VM that is kept in memory between reconciles. No decision depends on it.
type note struct {
	// changed is the time of the provider's last change of the VM.
	changed time.Time
	attempt.Failures
}

// fail records a failure. It returns the delay until the next attempt.
func (n *note) fail(now time.Time, err error, generation int64, account any) time.Duration {
	return n.Add(now, err, classOf(err), generation, account)
}
