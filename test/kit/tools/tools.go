// Package tools finds the programs of the system that tests run to check files.
package tools

import (
	"os"
	"os/exec"
	"testing"
)

// EnvRequire is set if a missing program shall fail a test, as in CI.
const EnvRequire = "REQUIRE_TOOLS"

// Path returns the path of a program. If it is missing, the test is skipped and reports which
// check is missing.
func Path(t testing.TB, name, debianPackage, unchecked string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err == nil {
		return file
	}
	skip := t.Skipf
	if os.Getenv(EnvRequire) != "" {
		skip = t.Fatalf
	}
	skip("%s is missing, so that NOTHING CHECKS %s with it: apt-get install %s", name, unchecked, debianPackage)
	return ""
}
