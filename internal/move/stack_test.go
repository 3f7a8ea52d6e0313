package move

import (
	"runtime"
	"testing"
	"time"
)

// below calls f with n KiB of stack above it.
//
//go:noinline
func below(n int, f func()) byte {
	var frame [1024]byte
	if n == 0 {
		f()
	} else {
		frame[n%len(frame)] = below(n-1, f)
	}
	return frame[0]
}

// TestAMoveKnowsItsFieldsAfterItsStackMoved keeps the Move on a stack, as the command does, that must grow in each call of Log.
// The collector then ends the program if anything on the heap still has a pointer to where the stack was.
func TestAMoveKnowsItsFieldsAfterItsStackMoved(t *testing.T) {
	left := -1
	source, destination := here(t, &left, fleet()...), newCluster(t, "there", &left, installed("there")...)
	result, kib := make(chan error), 50
	log := func(string, ...any) {
		kib *= 2
		below(min(kib, 5000), func() { runtime.GC(); runtime.GC() })
	}
	go below(kib, func() {
		m := &Move{Source: source, Destination: destination, Namespace: "ns", Timeout: time.Minute, Log: log, every: time.Millisecond}
		result <- m.Run(t.Context())
	})
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}
