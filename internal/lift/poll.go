package lift

import "time"

// minPoll is the shortest interval of the observations of a resource that changes.
const minPoll = 250 * time.Millisecond

// pollWhileChanging returns when to observe a resource again that began to change at since. The interval starts
// short and grows, up to interval.
func pollWhileChanging(now, since time.Time, interval time.Duration) time.Duration {
	return min(max(now.Sub(since)/4, minPoll), interval)
}
