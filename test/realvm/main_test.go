// Package realvm lets machines join that boot a real operating system. In all other tests, the local cloud's simulator
// reads the user data. They have a control plane of their own, because their images are built while other tests run.
package realvm

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drover-dev/drover/test/kit"
)

// plane is shared by all tests of this package. It is nil if there are no images.
var plane *kit.Plane

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if !kit.HasRealVMs() {
		return m.Run()
	}
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
	if code != 0 {
		plane.KeepLogs()
	}
	return code
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
