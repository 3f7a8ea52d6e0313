// Package karpenter tests drover-karpenter end to end: the unmodified core of Karpenter makes Machines at the local cloud for
// pods of a target cluster, with exactly the rights of the example.
package karpenter

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// plane is shared by the tests. Karpenter is for all pods of a target cluster, so that they run one after the other.
var plane *kit.Plane

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	plane, err = kit.Up(context.Background(), kit.Options{Target: true})
	defer plane.Down()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code != 0 {
		plane.KeepLogs()
	}
	return code
}
