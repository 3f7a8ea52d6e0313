package simulator

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage seldom: a history leaves much of it, and a little heap.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
