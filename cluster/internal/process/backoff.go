package process

import "time"

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 30 * time.Second
	// healthy is how long a process has to live for its next crash to count as
	// the first one.
	healthy = time.Minute
)

// nextDelay is how long to wait before a process is started again, given the
// delay before (0 for none) and how long it lived.
func nextDelay(previous, lived time.Duration) time.Duration {
	if previous == 0 || lived >= healthy {
		return firstDelay
	}
	return min(2*previous, maxDelay)
}
