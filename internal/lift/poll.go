package lift

import "time"

// minPoll is how soon something that changes is looked at again.
const minPoll = 250 * time.Millisecond

// pollWhileChanging is when to look again at something that began to change at
// since: often at first, then less and less, at the latest after interval.
func pollWhileChanging(now, since time.Time, interval time.Duration) time.Duration {
	return min(max(now.Sub(since)/4, minPoll), interval)
}
