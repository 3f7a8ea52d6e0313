package kit

import (
	"os"
	"testing"
)

// envShort requests the short form of the tests that need a control plane, which make test runs. The
// long form is make test-long.
const envShort = "DROVER_SHORT"

// IsShort reports whether the short form runs.
func IsShort() bool { return os.Getenv(envShort) != "" }

// OnlyInLong skips a test in the short form. The reason names what the short form has instead.
func OnlyInLong(t *testing.T, instead string) {
	t.Helper()
	if IsShort() {
		t.Skipf("only make test-long runs it; the short form has %s", instead)
	}
}
