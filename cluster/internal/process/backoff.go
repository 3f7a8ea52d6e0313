package process

import "time"

const (
	firstDelay = 500 * time.Millisecond
	maxDelay   = 30 * time.Second
	// healthy is how long a process must run for its next crash to count as the first one.
	healthy = time.Minute
)

// nextDelay returns how long to wait before a process is restarted, from the previous delay (0 for
// none) and the time that it ran.
func nextDelay(previous, lived time.Duration) time.Duration {
	if previous == 0 || lived >= healthy {
		return firstDelay
	}
	return min(2*previous, maxDelay)
}
