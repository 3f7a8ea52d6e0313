// Package planner has one function that its tests hold, and one that they do not.
package planner

import "time"

const (
	// most of a count.
	most    = 3
	timeout = 2 * time.Minute
)

// held by the tests. With a mutant it does not end.
func held(n int32) (int32, time.Duration) {
	count := int32(0)
	for count < n && count != most {
		count++
	}
	return count, timeout
}

func neglected(a, b int) int {
	return a + b
}
