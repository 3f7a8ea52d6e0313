package simulator

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage rarely: a history has a small heap and creates much garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
