// Package e2e tests Drover end to end, as a user has it: installed from its
// packages into a real control plane, with Machines at the local cloud.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// plane is shared by all tests of this package: each has a namespace of its own.
var plane *kit.Plane

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	plane, err = kit.Up(context.Background(), kit.Options{Target: true, Witness: true})
	defer plane.Down()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, leak := range plane.Leaks() {
		fmt.Fprintln(os.Stderr, "leak:", leak)
		code = 1
	}
	if code != 0 && plane != nil {
		plane.KeepLogs()
	}
	return code
}
