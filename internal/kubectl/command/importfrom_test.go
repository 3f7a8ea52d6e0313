package command

import (
	"testing"
	"time"
)

// TestATimeoutThatIsOverIsRefused beside the other flags, which TestBadArgumentsAreRefusedBeforeAClusterIsRead gives on a command line.
func TestATimeoutThatIsOverIsRefused(t *testing.T) {
	for _, timeout := range []time.Duration{0, -time.Second} {
		err := importFlags{to: "md/a", dryRun: "none", timeout: timeout}.validate()
		if want := "--timeout=" + timeout.String() + ": must be positive"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
