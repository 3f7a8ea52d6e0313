// Package recovery restores, moves and starves the control plane of fleets that are in use. It
// checks that no Node with pods is drained, that no VM in use is deleted, and that each VM has a
// Machine or is reported.
package recovery

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// here is a control plane with a local cloud and a target cluster. there is another control plane
// that uses the same two.
var here, there *kit.Plane

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	here, err = kit.Up(context.Background(), kit.Options{Target: true, Args: kit.Limits})
	defer here.Down()
	if err == nil {
		there, err = kit.Up(context.Background(), kit.Options{CloudOf: here, Args: kit.Limits})
		defer there.Down()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		here.KeepLogs()
		there.KeepLogs()
	}
	return code
}
