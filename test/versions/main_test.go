// Package versions has target clusters of other versions of Kubernetes than the control cluster:
// Nodes of these versions join, are upgraded with their cluster, are drained, and go.
package versions

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

var (
	// plane has a target cluster of the first of the versions.
	plane *kit.Plane
	// versions that the target cluster has one after the other.
	versions []string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if versions, err = kit.TargetVersions(); err == nil && len(versions) < 2 {
		err = fmt.Errorf("there are pins of the versions %v: an upgrade needs two", versions)
	}
	if err == nil {
		plane, err = kit.Up(context.Background(), kit.Options{Target: true, TargetVersion: versions[0], Audit: true, Args: kit.Limits})
		defer plane.Down()
	}
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
