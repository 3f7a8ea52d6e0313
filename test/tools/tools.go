// Package tools finds the programs of the system by which tests judge.
package tools

import (
	"os"
	"os/exec"
	"testing"
)

// EnvRequire is set where all of them must be there, as in CI.
const EnvRequire = "REQUIRE_TOOLS"

// Path returns the path of a program. A test is skipped without it, and says what nothing checks.
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
