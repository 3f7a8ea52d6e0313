package planner

import (
	"testing"
	"time"
)

func TestHeld(t *testing.T) {
	for n, want := range []int32{0, 1, 2, 3, 3} {
		if got, within := held(int32(n)); got != want || within != 2*time.Minute {
			t.Errorf("%d: %d within %s, want %d", n, got, within, want)
		}
	}
	neglected(0, 0)
}
