// Package versions tests target clusters of other versions of Kubernetes than the control cluster: Nodes of
// these versions join, are upgraded with their cluster, are drained, and are deleted.
package versions

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

var (
	// plane is shared by all tests. Its target cluster starts with the first of the versions.
	plane *kit.Plane
	// versions of the target cluster, one after the other.
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
